"""The deployment-controller: ReplicaSets for the templates of a Deployment, and rollouts from one to the next.

Guarantees
- Rollouts, undo, pause, scaling during a rollout and the cleanup of old revisions follow kube-controller-manager.
- The last template wins, however often it changes on the way; a runner that starts during a rollout continues it.
- Reconciles continue until there is nothing left to write, so a converged Deployment is not written.
"""

from __future__ import annotations

import copy

from steersman.aio import utc_now
from steersman.controller import (
    Blueprint,
    Context,
    Done,
    Outcome,
    Request,
    Requeue,
    controller_for,
    owners_through,
    when,
)
from steersman.errors import AlreadyExists, Forbidden, StatusError
from steersman.kinds.apps_v1 import Deployment, DeploymentStatus, ReplicaSet, ReplicaSetSpec
from steersman.kinds.core_v1 import Pod
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import ObjectMeta, controller_of, find_condition, owner_reference, replace
from steersman.testing.workload_controllers import deployment_annotations, deployment_status, pods, rollouts
from steersman.testing.workload_controllers.claims import adopters, candidates, claim
from steersman.testing.workload_controllers.hashes import canonical, template_hash
from steersman.testing.workload_controllers.workload_reconciler import WorkloadReconciler

#: The maximum number of steps in one reconcile; more follow later.
_STEPS = 30
_NAME_CHARACTERS = 253
_UNLIMITED = 2**31 - 1


class Deployments(WorkloadReconciler[Deployment]):
    """Reconciles Deployments."""

    def blueprint(self) -> Blueprint:
        """The controller's blueprint."""
        return (
            controller_for(Deployment, name="deployment-controller")
            .owns(ReplicaSet)
            .watches(ReplicaSet, map=adopters(Deployment, lambda replica_set: replica_set.spec.selector))
            # Recreate waits for the last old Pod.
            .watches(Pod, map=owners_through(ReplicaSet), when=when(lambda event: event.type == "vanished"))
            .options(concurrency=5)
            .run_with(self)
        )

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Take steps until there is nothing left to write."""
        for _ in range(_STEPS):
            owner = await ctx.client.find(Deployment, request.key)
            if owner is None:
                return Done()
            try:
                if await _Rollout(ctx, owner).step():
                    continue
            except _Refused:
                return self.rejected(owner)
            wait = deployment_status.next_check(owner, owner.status or DeploymentStatus(), utc_now())
            return self.after(owner, None if owner.spec.paused else wait)
        return Requeue()


class _Refused(Exception):
    """The server rejected a ReplicaSet."""


class _Rollout:
    """One step of one Deployment."""

    def __init__(self, ctx: Context, owner: Deployment) -> None:
        self._ctx = ctx
        self._owner = owner
        self._sets: list[ReplicaSet] = []
        self._new: ReplicaSet | None = None
        self._old: list[ReplicaSet] = []

    async def step(self) -> bool:
        """Take the next step; returns whether it wrote anything."""
        ctx, owner = self._ctx, self._owner
        candidate_sets = await candidates(ctx, ReplicaSet, owner)
        self._sets = await claim(ctx, owner, candidate_sets, owner.spec.selector)
        self._new = new = rollouts.find_new(owner, self._sets)
        self._old = [old for old in self._sets if old is not new]
        leaving = owner.metadata.deletion_timestamp is not None
        if not leaving:
            status = deployment_status.paused(owner, utc_now())
            if status is not None:
                return await self._write(status)
        if new is not None and await self._sync_revision(new):
            return True
        if leaving:
            return await self._report()
        return await self._advance()

    async def _advance(self) -> bool:
        owner = self._owner
        if owner.spec.paused:
            return await self._scale() or await self._clean_up() or await self._report()
        if rollouts.is_scaled(owner, self._sets):
            return await self._scale() or await self._report()
        return await self._roll() if rollouts.is_rolling(owner) else await self._recreate()

    # strategies

    async def _roll(self) -> bool:
        owner, new = self._owner, self._new
        if new is None:
            return await self._create()
        wanted = rollouts.replicas(owner)
        if rollouts.replicas(new) != wanted:
            size = (
                wanted
                if rollouts.replicas(new) > wanted
                else rollouts.new_size(owner, self._sets, rollouts.replicas(new))
            )
            if await self._resize(new, size):
                return True
        sizes = rollouts.old_sizes(owner, new, self._old)
        resized = [await self._resize(old, sizes[name]) for old in self._old if (name := old.metadata.name) in sizes]
        return any(resized) or await self._finish()

    async def _recreate(self) -> bool:
        resized = [await self._resize(old, 0) for old in rollouts.active(self._old)]
        if any(resized):
            return True
        if await self._old_pods_run():
            return await self._report(progress=True)
        if self._new is None:
            return await self._create()
        return await self._resize(self._new, rollouts.replicas(self._owner)) or await self._finish()

    async def _old_pods_run(self) -> bool:
        if any(old.status is not None and old.status.replicas for old in self._old):
            return True
        for old in self._old:
            left = await self._ctx.client.owned_by(Pod, old)
            if any(pods.phase(pod) not in {"Succeeded", "Failed"} for pod in left):
                return True
        return False

    async def _finish(self) -> bool:
        owner = self._owner
        if deployment_status.is_complete(owner, owner.status) and await self._clean_up():
            return True
        return await self._report(progress=True)

    # writing

    async def _report(self, *, progress: bool = False) -> bool:
        judge = deployment_status.rolled if progress else deployment_status.counted
        return await self._write(judge(self._owner, self._new, self._sets, utc_now()))

    async def _write(self, status: DeploymentStatus, *, revision: str | None = None) -> bool:
        owner = self._owner
        annotations = owner.metadata.annotations or {}
        renamed = revision is not None and annotations.get(deployment_annotations.REVISION) != revision
        if status == owner.status and not renamed:
            return False
        if renamed and revision is not None:
            owner.metadata.annotations = {**annotations, deployment_annotations.REVISION: revision}
        owner.status = status
        await self._ctx.client.update(owner, subresource="status")
        return True

    async def _sync_revision(self, new: ReplicaSet) -> bool:
        """Sync the annotations of the newest ReplicaSet and the Deployment."""
        owner = self._owner
        present = new.metadata.annotations or {}
        number = max(map(deployment_annotations.revision, self._old), default=0) + 1
        wanted = deployment_annotations.new_annotations(owner, present, number)
        if wanted != present or (new.spec.min_ready_seconds or 0) != (owner.spec.min_ready_seconds or 0):
            new.metadata.annotations = wanted
            new.spec.min_ready_seconds = owner.spec.min_ready_seconds
            await self._ctx.client.update(new)
            return True
        status = owner.status or DeploymentStatus()
        if deployment_status.has_deadline(owner) and find_condition(status.conditions, "Progressing") is None:
            message = f'Found new replica set "{new.metadata.name}"'
            status = deployment_status.progressing(owner, "True", "FoundNewReplicaSet", message, utc_now())
        return (
            status != (owner.status or DeploymentStatus())
            or _revision(owner) != present.get(deployment_annotations.REVISION)
        ) and (await self._write(status, revision=present.get(deployment_annotations.REVISION)))

    async def _create(self) -> bool:
        """Create the ReplicaSet of the newest template."""
        ctx, owner = self._ctx, self._owner
        new = self._new_set(max(map(deployment_annotations.revision, self._old), default=0) + 1)
        size = rollouts.new_size(owner, self._old, 0)
        new.spec.replicas = size
        name = new.metadata.name
        try:
            await ctx.client.create(new)
        except AlreadyExists:
            return await self._resolve_collision(new)
        except StatusError as error:
            if isinstance(error, Forbidden) and error.namespace_terminating:
                return False
            message = f'Failed to create new replica set "{name}": {error.status.message}'
            ctx.events.record(owner, "Warning", "ReplicaSetCreateError", "Create", message)
            if deployment_status.has_deadline(owner):
                await self._write(
                    deployment_status.progressing(owner, "False", "ReplicaSetCreateError", message, utc_now())
                )
            raise _Refused from error
        if size:
            note = f"Scaled up replica set {name} from 0 to {size}"
            ctx.events.record(owner, "Normal", "ScalingReplicaSet", "Scale", note)
        status = owner.status or DeploymentStatus()
        if deployment_status.has_deadline(owner):
            message = f'Created new replica set "{name}"'
            status = deployment_status.progressing(owner, "True", "NewReplicaSetCreated", message, utc_now())
        await self._write(status, revision=(new.metadata.annotations or {})[deployment_annotations.REVISION])
        return True

    def _new_set(self, number: int) -> ReplicaSet:
        owner = self._owner
        template = copy.deepcopy(owner.spec.template)
        digest = template_hash(template, owner.status.collision_count if owner.status is not None else None)
        metadata = template.metadata or ObjectMeta()
        labels = {**(metadata.labels or {}), rollouts.HASH: digest}
        template.metadata = replace(metadata, labels=labels)
        selector = owner.spec.selector
        expressions = copy.deepcopy(selector.match_expressions)
        matched = {**(selector.match_labels or {}), rollouts.HASH: digest}
        prefix = (owner.metadata.name or "")[: _NAME_CHARACTERS - len(digest) - 1]
        return ReplicaSet(
            metadata=ObjectMeta(
                name=f"{prefix}-{digest}",
                namespace=owner.metadata.namespace,
                labels=dict(labels),
                annotations=deployment_annotations.new_annotations(owner, {}, number) | _sizes_of(owner),
                owner_references=[owner_reference(owner)],
            ),
            spec=ReplicaSetSpec(
                min_ready_seconds=owner.spec.min_ready_seconds,
                selector=LabelSelector(match_labels=matched, match_expressions=expressions),
                template=template,
            ),
        )

    async def _resolve_collision(self, new: ReplicaSet) -> bool:
        owner = self._owner
        present = await self._ctx.client.live.find(ReplicaSet, new.key)
        if present is None:
            return True
        reference = controller_of(present)
        if (
            reference is not None
            and reference.uid == owner.metadata.uid
            and rollouts.same_template(canonical(owner.spec.template), present)
        ):
            # The cache has not received it yet.
            raise _Refused
        status = owner.status or DeploymentStatus()
        return await self._write(replace(status, collision_count=(status.collision_count or 0) + 1))

    async def _scale(self) -> bool:
        sizes = rollouts.scaled_sizes(self._owner, self._new, self._old)
        known = {replica_set.metadata.name or "": replica_set for replica_set in self._sets}
        # With several active ones, even those that keep their size get the Deployment's new size as annotation.
        several = len(rollouts.active(self._sets)) > 1
        written = [await self._resize(known[name], size, always=several) for name, size in sizes.items()]
        return any(written)

    async def _resize(self, replica_set: ReplicaSet, size: int, *, always: bool = False) -> bool:
        owner, before = self._owner, rollouts.replicas(replica_set)
        annotations = {**(replica_set.metadata.annotations or {}), **_sizes_of(owner)}
        if before == size and (not always or annotations == replica_set.metadata.annotations):
            return False
        replica_set.spec.replicas, replica_set.metadata.annotations = size, annotations
        await self._ctx.client.update(replica_set)
        if before != size:
            way = "up" if before < size else "down"
            note = f"Scaled {way} replica set {replica_set.metadata.name} from {before} to {size}"
            self._ctx.events.record(owner, "Normal", "ScalingReplicaSet", "Scale", note)
        return True

    async def _clean_up(self) -> bool:
        """Delete the oldest ReplicaSets beyond the history limit."""
        limit = self._owner.spec.revision_history_limit
        if limit is None or limit == _UNLIMITED:
            return False
        alive = [replica_set for replica_set in self._old if replica_set.metadata.deletion_timestamp is None]
        alive.sort(key=lambda replica_set: (deployment_annotations.revision(replica_set), rollouts.age(replica_set)))
        gone = [replica_set for replica_set in alive[: max(0, len(alive) - limit)] if _is_spent(replica_set)]
        for replica_set in gone:
            await self._ctx.client.delete(replica_set, missing_ok=True)
        return bool(gone)


def _sizes_of(owner: Deployment) -> dict[str, str]:
    return deployment_annotations.size_annotations(rollouts.replicas(owner), rollouts.maximum(owner))


def _is_spent(replica_set: ReplicaSet) -> bool:
    status = replica_set.status
    seen = status is not None and (status.observed_generation or 0) >= (replica_set.metadata.generation or 0)
    return seen and status is not None and not status.replicas and rollouts.replicas(replica_set) == 0


def _revision(owner: Deployment) -> str | None:
    return (owner.metadata.annotations or {}).get(deployment_annotations.REVISION)
