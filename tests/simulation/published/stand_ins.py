"""What the published bugs share: a kind, and ConfigMaps in place of StatefulSets, Pods, claims and Secrets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from steersman import Context, Done, Manager, MergePatch, ObjectMeta, Request, Requeue, Resource, Spec, Status
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.simulation import FaultName, ScenarioUser, StateCheck

CRASHES: tuple[FaultName, ...] = ("crash-before-sending", "crash-after-commit", "crash-after-reply")
UNOBSERVED: tuple[FaultName, ...] = ("coalesced-events",)


class ClusterSpec(Spec):
    nodes: int = 1
    size: int = 10
    config: str = "old"
    labels: dict[str, str] | None = None


class ClusterStatus(Status):
    nodes: int = 0
    phase: str = ""
    states: dict[str, str] | None = None


class Cluster(Resource[ClusterSpec, ClusterStatus], group="published.example.com", version="v1"):
    """A cluster of some database."""


Reconcile = Callable[[Context, Cluster], Awaitable[Done | Requeue | None]]


class Bug(NamedTuple):
    """A published bug: the wrong operator, its corrected twin, and what shows the difference."""

    wrong: Reconcile
    right: Reconcile
    workload: Callable[[ScenarioUser], Awaitable[None]]
    #: The kinds of faults that show it; none if a check shows it without any.
    faults: tuple[FaultName, ...] = ()
    checks: tuple[StateCheck, ...] = ()


def operator(reconcile: Reconcile) -> Manager:
    """A new manager for one of the twins."""

    async def reconciled(ctx: Context, request: Request) -> Done | Requeue:
        cluster = await ctx.client.find(Cluster, request.key)
        if cluster is None or (cluster.deleting and not cluster.metadata.finalizers):
            return Done()
        return await reconcile(ctx, cluster) or Done()

    manager = Manager(name="published")
    manager.controller(Cluster).owns(ConfigMap).owns(Secret).run_with(reconciled)
    return manager


def name_of(cluster: Cluster, part: str) -> str:
    return f"{cluster.key.name}-{part}"


async def part(ctx: Context, cluster: Cluster, name: str) -> ConfigMap | None:
    """A part of the cluster, if it exists."""
    return await ctx.client.find(ConfigMap, f"{cluster.key.namespace}/{name_of(cluster, name)}")


async def put(ctx: Context, cluster: Cluster, name: str, **data: Any) -> None:
    """Create a part of the cluster, or make it so."""
    metadata = ObjectMeta(name=name_of(cluster, name), namespace=cluster.key.namespace)
    wanted = ConfigMap(metadata=metadata, data={field: str(value) for field, value in data.items()})
    await ctx.client.apply(wanted, owner=cluster, force=True)


async def drop(ctx: Context, cluster: Cluster, name: str) -> None:
    """Delete a part of the cluster."""
    await ctx.client.delete(ConfigMap, f"{cluster.key.namespace}/{name_of(cluster, name)}", missing_ok=True)


async def new_cluster(user: ScenarioUser, **spec: Any) -> None:
    """A user creates a cluster."""
    await user.client.create(Cluster(metadata=ObjectMeta(name="data"), spec=ClusterSpec(**spec)))


async def change(user: ScenarioUser, **spec: Any) -> None:
    """A user changes the cluster."""
    await user.client.patch(Cluster, "data", MergePatch({"spec": spec}))
