"""The persistentvolumeclaim-protection-controller: releases a deleted claim when no Pod uses it.

Guarantee: a deleted claim stays while a Pod that has not ended mounts it, and is removed after that.
"""

from __future__ import annotations

from steersman.controller import Blueprint, Context, Done, Reconciler, Request, View, controller_for
from steersman.kinds.core_v1 import PersistentVolumeClaim, Pod
from steersman.objects import Key
from steersman.testing.workload_controllers import pods

FINALIZER = "kubernetes.io/pvc-protection"


class ClaimProtection(Reconciler[PersistentVolumeClaim]):
    """Releases claims that were deleted."""

    def blueprint(self) -> Blueprint:
        """The controller's blueprint."""
        return (
            controller_for(PersistentVolumeClaim, name="persistentvolumeclaim-protection-controller")
            .watches(Pod, map=_claims_of)
            .run_with(self)
        )

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Remove the finalizer of a deleted claim that is no longer used."""
        claim = await ctx.client.find(PersistentVolumeClaim, request.key)
        if claim is None or claim.metadata.deletion_timestamp is None:
            return Done()
        finalizers = claim.metadata.finalizers or []
        if FINALIZER not in finalizers:
            return Done()
        around = await ctx.client.list(Pod, namespace=request.key.namespace)
        if not any(_mounts(pod, request.key.name) for pod in around):
            claim.metadata.finalizers = [each for each in finalizers if each != FINALIZER]
            await ctx.client.update(claim)
        return Done()


def _mounts(pod: Pod, name: str) -> bool:
    return pods.phase(pod) not in {"Succeeded", "Failed"} and name in _names(pod)


def _names(pod: Pod) -> list[str]:
    sources = [each.persistent_volume_claim for each in pod.spec.volumes or ()]
    return [each.claim_name for each in sources if each is not None]


def _claims_of(view: View[Pod]) -> list[Key]:
    return [Key(view.key.namespace, name) for name in _names(view.object)]
