"""Stands in for those of Kubernetes' controllers that a server does not have: volumes are bound, quotas
are counted, StatefulSets run.

Plans for ``plane.running(...)`` or a `Manager`. Both write only what changes: they are as quiet as their world.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from steersman import Context, Done, Quantity, Request
from steersman.controller import Blueprint, ChannelSource, controller_for
from steersman.errors import NotFound
from steersman.kinds.apps_v1 import StatefulSet, StatefulSetStatus
from steersman.kinds.core_v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    ResourceQuota,
    ResourceQuotaStatus,
)

#: What the server puts on every claim, for a controller that takes it away when no Pod uses the claim.
PROTECTION = "kubernetes.io/pvc-protection"


def claims_are_bound() -> Blueprint:
    """Every claim is bound at once, and let go when it is deleted, where no controllers look after volumes."""

    async def reconcile(ctx: Context, request: Request) -> Done:
        claim = await ctx.client.find(PersistentVolumeClaim, request.key)
        if claim is None:
            return Done()
        if claim.deleting:
            claim.metadata.finalizers = [each for each in claim.metadata.finalizers or () if each != PROTECTION]
        elif claim.status is None or claim.status.phase != "Bound":
            claim.status = PersistentVolumeClaimStatus(phase="Bound")
        with suppress(NotFound):  # it has just gone
            await ctx.client.save(claim)
        return Done()

    return controller_for(PersistentVolumeClaim, name="claims-are-bound").run_with(reconcile)


def quotas_are_counted() -> Blueprint:
    """Every quota has been counted: nothing is used."""

    async def reconcile(ctx: Context, request: Request) -> Done:
        quota = await ctx.client.find(ResourceQuota, request.key)
        if quota is not None and not quota.deleting and quota.spec is not None:
            used = {name: Quantity("0") for name in quota.spec.hard or {}}
            quota.status = ResourceQuotaStatus(hard=quota.spec.hard, used=used)
            with suppress(NotFound):
                await ctx.client.save(quota)
        return Done()

    return controller_for(ResourceQuota, name="quotas-are-counted").run_with(reconcile)


def stateful_sets_run(
    ready: Callable[[StatefulSet], bool] = lambda _: True, *, again: ChannelSource | None = None
) -> Blueprint:
    """Every StatefulSet has the Pods that it asks for, and they are ready where ``ready`` says so."""

    async def reconcile(ctx: Context, request: Request) -> Done:
        found = await ctx.client.find(StatefulSet, request.key)
        if found is None or found.deleting:
            return Done()
        number = found.spec.replicas or 0
        up = number if ready(found) else 0
        revision = f"{found.key.name}-{found.generation}"
        found.status = StatefulSetStatus(
            observed_generation=found.generation,
            replicas=number,
            ready_replicas=up,
            available_replicas=up,
            current_replicas=number,
            updated_replicas=number,
            current_revision=revision,
            update_revision=revision,
        )
        with suppress(NotFound):
            await ctx.client.save(found)
        return Done()

    builder = controller_for(StatefulSet, name="stateful-sets-run")
    return (builder.on(again) if again is not None else builder).run_with(reconcile)
