"""The statefulset-controller: named Pods, in order, each with its claims.

Guarantees
- With ``OrderedReady``, a Pod is created when all before it are available, and deleted when none after it is left.
- An update goes from the last ordinal down to the partition, ``maxUnavailable`` at a time.
- Claims stay when Pods are deleted, unless the retention policy says otherwise.
- A converged StatefulSet is not written.
"""

from __future__ import annotations

from datetime import datetime

from steersman.aio import utc_now
from steersman.controller import Blueprint, Context, Done, Outcome, Request, Requeue, controller_for
from steersman.errors import AlreadyExists, Conflict, Forbidden, StatusError
from steersman.kinds.apps_v1 import ControllerRevision, StatefulSet, StatefulSetStatus
from steersman.kinds.core_v1 import PersistentVolumeClaim, Pod
from steersman.objects import Key, replace, scaled_value
from steersman.testing.workload_controllers import pods, stateful_pods
from steersman.testing.workload_controllers.claims import adopters, candidates, claim
from steersman.testing.workload_controllers.revisions import History, by_name, template_of
from steersman.testing.workload_controllers.workload_reconciler import WorkloadReconciler, write_status

_STEPS = 100


class StatefulSets(WorkloadReconciler[StatefulSet]):
    """Reconciles StatefulSets."""

    def blueprint(self) -> Blueprint:
        """The controller's blueprint."""
        return (
            controller_for(StatefulSet, name="statefulset-controller")
            .owns(Pod)
            .watches(Pod, map=adopters(StatefulSet, lambda each: each.spec.selector))
            .owns(ControllerRevision)
            .options(concurrency=5)
            .run_with(self)
        )

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Take steps until there is nothing left to write, or something to wait for."""
        for _ in range(_STEPS):
            owner = await ctx.client.find(StatefulSet, request.key)
            if owner is None:
                return Done()
            step = _Step(ctx, owner)
            try:
                if await step.take():
                    continue
            except Conflict:
                raise
            except StatusError as error:
                if isinstance(error, Forbidden) and error.namespace_terminating:
                    return Done()
                await step.report()
                return self.rejected(owner)
            return self.after(owner, pods.next_available(step.pods, owner.spec.min_ready_seconds or 0, step.moment))
        return Requeue()


class _Step:
    """One step of one StatefulSet."""

    def __init__(self, ctx: Context, owner: StatefulSet) -> None:
        self._ctx = ctx
        self._owner = owner
        self._status = owner.status or StatefulSetStatus(replicas=0)
        self._history = History(ctx, owner, owner.spec.template, self._status.collision_count or 0)
        self.moment: datetime = utc_now()
        self.pods: list[Pod] = []
        self._current: ControllerRevision | None = None
        self._update: ControllerRevision | None = None

    async def take(self) -> bool:
        """Take the next step; returns whether it wrote anything."""
        owner = self._owner
        found = await candidates(self._ctx, Pod, owner)
        await self._history.read(owner.spec.selector)
        self.pods = await claim(
            self._ctx, owner, found, owner.spec.selector, matches=lambda pod: stateful_pods.ordinal(owner, pod) >= 0
        )
        self._update = await self._history.newest()
        self._current = by_name(self._history.revisions, self._status.current_revision) or self._update
        if owner.metadata.deletion_timestamp is None and await self._manage():
            return True
        return await self.report() or await self._truncate()

    # Pods

    async def _manage(self) -> bool:
        owner, ordered = self._owner, self._owner.spec.pod_management_policy != "Parallel"
        wanted = range(stateful_pods.start(owner), stateful_pods.start(owner) + stateful_pods.replicas(owner))
        by_ordinal = {stateful_pods.ordinal(owner, pod): pod for pod in self.pods}
        acted = False
        for number in wanted:
            done, blocked = await self._keep(number, by_ordinal.get(number))
            acted = acted or done
            if ordered and (done or blocked):
                return acted
        condemned = [by_ordinal[number] for number in sorted(by_ordinal, reverse=True) if number not in wanted]
        living = [by_ordinal[number] for number in wanted if number in by_ordinal]
        if acted:
            return True
        for pod in condemned:
            acted = await self._keep_claims(pod) or acted
        return acted or await self._condemn(condemned, living, ordered=ordered) or await self._roll(by_ordinal)

    async def _keep(self, number: int, pod: Pod | None) -> tuple[bool, bool]:
        """Maintain the Pod of an ordinal; returns whether it wrote anything, and whether the next ones must wait."""
        owner = self._owner
        if pod is None:
            return await self._create(number), True
        if pods.phase(pod) in {"Failed", "Succeeded"}:
            if pod.metadata.deletion_timestamp is None:
                await self._delete(pod)
                return True, True
            return False, True
        if pods.phase(pod) == "Pending" and await self._create_claims(pod, number):
            return True, True
        if self._is_unavailable(pod):
            return False, True
        acted = await self._keep_claims(pod)
        if not stateful_pods.matches(owner, pod):
            stateful_pods.give_identity(owner, pod, number)
            await self._ctx.client.update(pod)
            acted = True
        return acted, False

    async def _create(self, number: int) -> bool:
        ctx, owner = self._ctx, self._owner
        assert self._current is not None
        assert self._update is not None
        revision = self._current if self._is_partitioned(number) else self._update
        pod = stateful_pods.new_pod(owner, template_of(revision), revision.metadata.name or "", number)
        if await self._has_stale_claim(pod, number):
            return False
        await self._create_claims(pod, number)
        try:
            made = await ctx.client.create(pod)
        except AlreadyExists:
            # An orphan or another owner's Pod has the name: its deletion triggers another reconcile.
            return False
        except StatusError as error:
            self._tell(
                "FailedCreate", f"create Pod {pod.key.name} in StatefulSet {owner.key.name} failed error: {error}"
            )
            raise
        await self._keep_claims(made)
        self._tell("SuccessfulCreate", f"create Pod {made.key.name} in StatefulSet {owner.key.name} successful", made)
        return True

    def _is_partitioned(self, number: int) -> bool:
        """Whether the Pod of an ordinal still gets the current revision."""
        owner = self._owner
        strategy = owner.spec.update_strategy
        if strategy is None or strategy.type == "OnDelete":
            return False
        first = stateful_pods.start(owner)
        if strategy.rolling_update is None:
            return number < first + (self._status.current_replicas or 0)
        return number < first + (strategy.rolling_update.partition or 0)

    async def _delete(self, pod: Pod) -> None:
        await self._ctx.client.delete(pod, missing_ok=True)
        self._tell(
            "SuccessfulDelete", f"delete Pod {pod.key.name} in StatefulSet {self._owner.key.name} successful", pod
        )

    async def _condemn(self, condemned: list[Pod], living: list[Pod], *, ordered: bool) -> bool:
        """Delete Pods above the last ordinal, the highest first."""
        unhealthy = [pod for pod in (*living, *reversed(condemned)) if self._is_unavailable(pod)]
        acted = False
        for pod in condemned:
            if pod.metadata.deletion_timestamp is None:
                if ordered and self._is_unavailable(pod) and pod is not unhealthy[0]:
                    return acted
                await self._delete(pod)
                acted = True
            if ordered:
                return acted
        return acted

    async def _roll(self, by_ordinal: dict[int, Pod]) -> bool:
        """Delete Pods of an old revision, to recreate them with the new one."""
        owner, strategy = self._owner, self._owner.spec.update_strategy
        assert self._update is not None
        if strategy is not None and strategy.type == "OnDelete":
            return False
        rolling = strategy.rolling_update if strategy is not None else None
        partition = (rolling.partition or 0) if rolling is not None else 0
        unavailable = rolling.max_unavailable if rolling is not None and rolling.max_unavailable is not None else 1
        most = max(1, scaled_value(unavailable, stateful_pods.replicas(owner), rounding="down"))
        first, size = stateful_pods.start(owner), stateful_pods.replicas(owner)
        living = [pod for number in range(first, first + size) if (pod := by_ordinal.get(number)) is not None]
        room = most - (size - len(living)) - sum(map(self._is_unavailable, living))
        old = [
            pod
            for pod in reversed(living)
            if stateful_pods.ordinal(owner, pod) - first >= partition
            and stateful_pods.revision(pod) != self._update.metadata.name
            and pod.metadata.deletion_timestamp is None
        ]
        for pod in old[: max(0, room)]:
            await self._delete(pod)
        return room > 0 and bool(old)

    def _is_unavailable(self, pod: Pod) -> bool:
        seconds = self._owner.spec.min_ready_seconds or 0
        return pod.metadata.deletion_timestamp is not None or not pods.is_available(pod, seconds, self.moment)

    # claims

    async def _create_claims(self, pod: Pod, number: int) -> bool:
        """Create the missing claims of an ordinal; returns whether any was missing."""
        ctx, owner, acted = self._ctx, self._owner, False
        for template in stateful_pods.templates(owner):
            wanted = stateful_pods.new_claim(owner, template, number)
            if await ctx.client.find(PersistentVolumeClaim, wanted.key) is not None:
                continue
            made = await ctx.client.create(wanted)
            note = f"create Claim {made.key.name} Pod {pod.key.name} in StatefulSet {owner.key.name} success"
            self._tell("SuccessfulCreate", note, made)
            acted = True
        return acted

    async def _claims(self, number: int) -> list[PersistentVolumeClaim]:
        owner, found = self._owner, list[PersistentVolumeClaim]()
        for template in stateful_pods.templates(owner):
            key = Key(owner.key.namespace, stateful_pods.claim_name(owner, template, number))
            each = await self._ctx.client.find(PersistentVolumeClaim, key)
            found += [each] if each is not None else []
        return found

    async def _keep_claims(self, pod: Pod) -> bool:
        """Give the claims of a Pod the owners that the retention policy requires."""
        acted = False
        for each in await self._claims(stateful_pods.ordinal(self._owner, pod)):
            owners = stateful_pods.claim_owners(self._owner, each, pod)
            if owners != (each.metadata.owner_references or []):
                each.metadata.owner_references = owners or None
                await self._ctx.client.update(each)
                acted = True
        return acted

    async def _has_stale_claim(self, pod: Pod, number: int) -> bool:
        policy = self._owner.spec.persistent_volume_claim_retention_policy
        if policy is None or policy.when_scaled != "Delete":
            return False
        return any(stateful_pods.is_stale(each, pod) for each in await self._claims(number))

    # status

    async def report(self) -> bool:
        """Write the status if it changed."""
        owner = self._owner
        if self._update is None or self._current is None:
            return False
        created = [pod for pod in self.pods if pods.phase(pod)]
        ready = [pod for pod in created if pods.phase(pod) == "Running" and pods.is_ready(pod)]
        staying = [stateful_pods.revision(pod) for pod in created if pod.metadata.deletion_timestamp is None]
        seconds = owner.spec.min_ready_seconds or 0
        status = replace(
            self._status,
            observed_generation=owner.metadata.generation,
            replicas=len(created),
            ready_replicas=len(ready) or None,
            available_replicas=sum(pods.is_available(pod, seconds, self.moment) for pod in ready),
            current_replicas=staying.count(self._current.metadata.name or "") or None,
            updated_replicas=staying.count(self._update.metadata.name or "") or None,
            current_revision=self._current.metadata.name,
            update_revision=self._update.metadata.name,
            collision_count=self._history.collisions,
        )
        size = stateful_pods.replicas(owner)
        rolling = owner.spec.update_strategy is None or owner.spec.update_strategy.type != "OnDelete"
        if rolling and {status.updated_replicas or 0, status.ready_replicas or 0, status.replicas} == {size}:
            status.current_replicas, status.current_revision = status.updated_replicas, status.update_revision
        return await write_status(self._ctx, owner, status)

    async def _truncate(self) -> bool:
        assert self._current is not None
        assert self._update is not None
        live = {stateful_pods.revision(pod) for pod in self.pods}
        live |= {self._current.metadata.name or "", self._update.metadata.name or ""}
        return await self._history.truncate(live, self._owner.spec.revision_history_limit)

    def _tell(self, reason: str, note: str, related: Pod | PersistentVolumeClaim | None = None) -> None:
        kind = "Normal" if reason.startswith("Successful") else "Warning"
        action = reason.removeprefix("Successful").removeprefix("Failed")
        # kube-controller-manager's messages begin with the verb in title case.
        self._ctx.events.record(self._owner, kind, reason, action, note[:1].upper() + note[1:], related)
