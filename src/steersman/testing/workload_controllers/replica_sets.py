"""The replicaset-controller: as many Pods as a ReplicaSet requests.

Guarantees
- The status counts the Pods that the ReplicaSet controls, as reported by `PodRunner` or a kubelet.
- A rejected Pod sets the condition ``ReplicaFailure`` with the server's message, and is retried.
- A converged ReplicaSet is not written.
"""

from __future__ import annotations

from datetime import datetime

from steersman.aio import utc_now
from steersman.controller import Blueprint, Context, Done, Outcome, Request, controller_for
from steersman.errors import StatusError
from steersman.kinds.apps_v1 import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus
from steersman.kinds.core_v1 import Pod, PodTemplateSpec
from steersman.objects import Selector, controller_of, find_condition, replace
from steersman.testing.workload_controllers import pods
from steersman.testing.workload_controllers.claims import adopters, candidates, claim
from steersman.testing.workload_controllers.workload_reconciler import WorkloadReconciler, write_status


class ReplicaSets(WorkloadReconciler[ReplicaSet]):
    """Reconciles ReplicaSets."""

    def blueprint(self) -> Blueprint:
        """The controller's blueprint."""
        return (
            controller_for(ReplicaSet, name="replicaset-controller")
            .owns(Pod)
            .watches(Pod, map=adopters(ReplicaSet, lambda each: each.spec.selector))
            .options(concurrency=5)
            .run_with(self)
        )

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Create or delete Pods, then count them."""
        owner = await ctx.client.find(ReplicaSet, request.key)
        if owner is None:
            return Done()
        ours = await _pods_of(ctx, owner)
        error = None
        if owner.metadata.deletion_timestamp is None:
            difference = len(ours) - _replicas(owner)
            error = await _manage(ctx, owner, ours)
            if difference:
                ours = await _pods_of(ctx, owner)
        moment = utc_now()
        everything = await ctx.client.owned_by(Pod, owner)
        selector = Selector.from_label_selector(owner.spec.selector)
        terminating = [
            pod for pod in everything if pods.is_terminating_pod(pod) and selector.matches(pod.metadata.labels)
        ]
        status = status_of(owner, ours, len(terminating), error, moment)
        await write_status(ctx, owner, status)
        if error is not None:
            return self.rejected(owner)
        return self.after(owner, pods.next_available(ours, owner.spec.min_ready_seconds or 0, moment))


def _replicas(owner: ReplicaSet) -> int:
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def _template(owner: ReplicaSet) -> PodTemplateSpec:
    assert owner.spec.template is not None, "the server requires a template"
    return owner.spec.template


async def _pods_of(ctx: Context, owner: ReplicaSet) -> list[Pod]:
    active = [pod for pod in await candidates(ctx, Pod, owner) if pods.is_active(pod)]
    return await claim(ctx, owner, active, owner.spec.selector)


async def _manage(ctx: Context, owner: ReplicaSet, ours: list[Pod]) -> StatusError | None:
    missing = _replicas(owner) - len(ours)
    if missing > 0:
        template = _template(owner)
        return await pods.slow_start(
            min(missing, pods.BURST), lambda: pods.create(ctx, owner, pods.from_template(owner, template))
        )
    if missing < 0:
        related = await _related(ctx, owner)
        chosen = pods.to_delete(ours, related, min(-missing, pods.BURST), utc_now())
        return await pods.together(pods.delete(ctx, owner, pod) for pod in chosen)
    return None


async def _related(ctx: Context, owner: ReplicaSet) -> list[Pod]:
    """The Pods of all ReplicaSets with the same owner."""
    reference = controller_of(owner)
    siblings = await ctx.client.owned_by(ReplicaSet, reference.uid) if reference is not None else [owner]
    return [pod for sibling in siblings for pod in await ctx.client.owned_by(Pod, sibling)]


def status_of(
    owner: ReplicaSet, ours: list[Pod], terminating: int, error: StatusError | None, moment: datetime
) -> ReplicaSetStatus:
    """The status of a ReplicaSet with these active Pods and this many terminating ones."""
    before = owner.status or ReplicaSetStatus(replicas=0)
    metadata = _template(owner).metadata
    labels = Selector.of((metadata.labels if metadata is not None else None) or {})
    seconds = owner.spec.min_ready_seconds or 0
    return replace(
        before,
        replicas=len(ours),
        fully_labeled_replicas=sum(labels.matches(pod.metadata.labels) for pod in ours) or None,
        ready_replicas=sum(map(pods.is_ready, ours)) or None,
        available_replicas=sum(pods.is_available(pod, seconds, moment) for pod in ours) or None,
        terminating_replicas=terminating,
        observed_generation=owner.metadata.generation,
        conditions=_conditions(before, len(ours) - _replicas(owner), error, moment),
    )


def _conditions(
    before: ReplicaSetStatus, difference: int, error: StatusError | None, moment: datetime
) -> list[ReplicaSetCondition] | None:
    present = find_condition(before.conditions, "ReplicaFailure")
    if error is not None and present is None:
        failure = ReplicaSetCondition(
            type="ReplicaFailure",
            status="True",
            reason="FailedCreate" if difference < 0 else "FailedDelete",
            message=error.status.message,
            last_transition_time=moment.replace(microsecond=0),
        )
        return [*(before.conditions or ()), failure]
    if error is None and present is not None:
        return [each for each in before.conditions or () if each is not present] or None
    return before.conditions
