"""The PostgresCluster operator on the bare runtime: conditions, finalizer and pruning are written by hand.

Run it with `steersman run examples.postgres_cluster.bare --install-crds`; operator.py is the same with patterns.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Literal, NamedTuple

from examples.postgres_cluster.children import (
    PORT,
    backup,
    config,
    credentials,
    replicas_of,
    service,
    stateful_set,
    volume,
)
from examples.postgres_cluster.types import PostgresCluster

from steersman import Condition, Context, Done, Manager, Object, Request, find_condition, set_condition, utc_now
from steersman.errors import ApiError, NotFound
from steersman.kinds.apps_v1 import StatefulSet
from steersman.kinds.batch_v1 import CronJob
from steersman.kinds.core_v1 import ConfigMap, PersistentVolumeClaim, Secret, Service
from steersman.objects import controller_of

FINALIZER = "postgres.example.com/ordered-deletion"
PHASE = "postgres.example.com/phase"
KINDS: tuple[type[Object], ...] = (CronJob, StatefulSet, Service, PersistentVolumeClaim, ConfigMap, Secret)


class Problem(NamedTuple):
    """Why a phase is not complete."""

    reason: str
    message: str


# children, phase by phase


def storage(cluster: PostgresCluster) -> list[Object]:
    return [config(cluster), credentials(cluster), volume(cluster, "primary")]


def primary(cluster: PostgresCluster) -> list[Object]:
    return [service(cluster, "primary"), stateful_set(cluster, "primary")]


def replicas(cluster: PostgresCluster) -> list[Object]:
    """Return the replicas with their volumes: a replica's volume goes with the replica, not earlier."""
    members = replicas_of(cluster)
    shared: list[Object] = [service(cluster, "replica")] if members else []
    return shared + [part for name in members for part in (volume(cluster, name), stateful_set(cluster, name))]


def backups(cluster: PostgresCluster) -> list[Object]:
    schedule = cluster.spec.backup_schedule
    return [backup(cluster, schedule)] if schedule else []


PHASES: dict[str, tuple[str, Callable[[PostgresCluster], list[Object]]]] = {
    "storage": ("StorageReady", storage),
    "primary": ("PrimaryReady", primary),
    "replicas": ("ReplicasReady", replicas),
    "backups": ("BackupsReady", backups),
}


# readiness


def lacks(child: Object) -> Problem | None:
    """Return why a child blocks the next phase. A claim never does, because it may wait for its Pod."""
    if isinstance(child, StatefulSet):
        wanted, seen = child.spec.replicas or 0, child.status
        if seen is None or (seen.observed_generation or 0) < child.generation:
            return Problem("ChildrenNotReady", f"StatefulSet {child.key.name}: its controller has not seen it yet")
        if min(seen.updated_replicas or 0, seen.ready_replicas or 0) < wanted:
            return Problem("ChildrenNotReady", f"StatefulSet {child.key.name}: its Pod is not ready")
    if child.deleting:
        return Problem("ChildrenNotReady", f"{child.kind} {child.key.name}: it is being deleted")
    return None


# status


def report(
    cluster: PostgresCluster, kind: str, status: Literal["True", "False", "Unknown"], reason: str, message: str = ""
) -> None:
    condition = Condition(
        type=kind, status=status, reason=reason, message=message, observed_generation=cluster.generation
    )
    set_condition(cluster.ensure_status(), condition, now=utc_now())


def conclude(cluster: PostgresCluster) -> None:
    """Derive Ready from the conditions of the phases: the first that is not true says why."""
    assert cluster.status is not None
    for name, _ in PHASES.values():
        condition = find_condition(cluster.status.conditions, name)
        if condition is not None and condition.status != "True":
            report(cluster, "Ready", "False", condition.reason, condition.message)
            break
    else:
        report(cluster, "Ready", "True", "Ready")
    cluster.status.observed_generation = cluster.generation


# actions


async def make(ctx: Context, cluster: PostgresCluster, phase: str, child: Object) -> Object | Problem:
    """Apply one child, unless another program owns an object of that name."""
    present = await ctx.client.find(type(child), child.key) or await ctx.client.live.find(type(child), child.key)
    if present is not None:
        owner = controller_of(present)
        if owner is None or owner.uid != cluster.uid:
            return Problem("NotOurs", f"{child.kind} {child.key.name} exists and belongs to another owner")
        if isinstance(child, Secret):
            return present  # never generate a second password
    child.metadata.labels = (child.metadata.labels or {}) | {PHASE: phase}
    return await ctx.client.apply(child, owner=cluster, force=True)


async def owned(ctx: Context, cluster: PostgresCluster, phase: str) -> list[Object]:
    return [
        child
        for kind in KINDS
        for child in await ctx.client.owned_by(kind, cluster)
        if (child.metadata.labels or {}).get(PHASE) == phase
    ]


async def remove(ctx: Context, children: Iterable[Object]) -> None:
    for child in children:
        if not child.deleting:
            await ctx.client.delete(child, propagation="Background", missing_ok=True)


async def bring_up(ctx: Context, cluster: PostgresCluster, phase: str) -> Problem | None:
    """Apply one phase; prune it only when it is complete, so that an unready primary never deletes a replica."""
    declared = PHASES[phase][1](cluster)
    made = [await make(ctx, cluster, phase, child) for child in declared]
    problem = next((each if isinstance(each, Problem) else lacks(each) for each in made if _lacking(each)), None)
    if phase == "replicas":
        assert cluster.status is not None
        sets = [child for child in made if isinstance(child, StatefulSet)]
        cluster.status.ready_replicas = sum(lacks(child) is None for child in sets)
    if problem is None:
        names = {(child.kind, child.key) for child in declared}
        await remove(ctx, [child for child in await owned(ctx, cluster, phase) if (child.kind, child.key) not in names])
    return problem


def _lacking(child: Object | Problem) -> bool:
    return isinstance(child, Problem) or lacks(child) is not None


async def bring_up_all(ctx: Context, cluster: PostgresCluster) -> None:
    assert cluster.status is not None
    cluster.status.endpoint = f"{cluster.key.name}.{cluster.key.namespace}.svc:{PORT}"
    stopped_at = ""
    for phase, (condition, _) in PHASES.items():
        if stopped_at:
            report(cluster, condition, "Unknown", "NotReached", f"waits for {stopped_at}")
            continue
        try:
            problem = await bring_up(ctx, cluster, phase)
        except ApiError as error:
            report(cluster, condition, "False", "Error", str(error))
            raise
        if problem is None:
            report(cluster, condition, "True", "Complete")
        else:
            report(cluster, condition, "False", *problem)
            stopped_at = condition


async def take_down(ctx: Context, cluster: PostgresCluster) -> None:
    """Delete phase by phase, the last one first; remove the finalizer when nothing is left."""
    finalizers = cluster.metadata.finalizers or []
    if FINALIZER not in finalizers:
        return
    for phase in reversed(PHASES):
        await remove(ctx, await owned(ctx, cluster, phase))
        left = await owned(ctx, cluster, phase)
        if left:  # a finalizer holds them; their deletion triggers us
            words = ", ".join(f"{child.kind} {child.key.name}" for child in left)
            report(cluster, "Ready", "False", "Deleting", f"waits for the end of {words}")
            with suppress(NotFound):
                await ctx.client.save(cluster)
            return
    cluster.metadata.finalizers = [each for each in finalizers if each != FINALIZER]
    with suppress(NotFound):  # it is already gone
        await ctx.client.save(cluster)


async def reconcile(ctx: Context, request: Request) -> Done:
    cluster = await ctx.client.find(PostgresCluster, request.key)
    if cluster is None:
        return Done()
    if cluster.deleting:
        await take_down(ctx, cluster)
        return Done()
    finalizers = cluster.metadata.finalizers or []
    if FINALIZER not in finalizers:  # before it has anything to guard
        cluster.metadata.finalizers = [*finalizers, FINALIZER]
        cluster = (await ctx.client.save(cluster)).object
    cluster.ensure_status()
    try:
        await bring_up_all(ctx, cluster)
    finally:
        conclude(cluster)
        with suppress(NotFound):
            await ctx.client.save(cluster)
    return Done()


manager = Manager(name="postgres-cluster")
builder = manager.controller(PostgresCluster)
for kind in KINDS:
    builder.owns(kind)
builder.run_with(reconcile)
