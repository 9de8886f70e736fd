"""The status of a Deployment, from its ReplicaSets. Pure: time is passed in.

Guarantees
- Conditions have kube-controller-manager's types, reasons and messages.
- Unchanged objects give an unchanged status.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from steersman.kinds.apps_v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from steersman.objects import find_condition, replace
from steersman.testing.workload_controllers import rollouts

#: Kubernetes' value for "no deadline".
_FOREVER = 2**31 - 1
TIMED_OUT = "ProgressDeadlineExceeded"
_COMPLETE = "NewReplicaSetAvailable"


def has_deadline(owner: Deployment) -> bool:
    """Whether a rollout without progress is reported."""
    return owner.spec.progress_deadline_seconds not in {None, _FOREVER}


def condition(kind: str, status: str, reason: str, message: str, moment: datetime) -> DeploymentCondition:
    """A condition whose times are now."""
    moment = moment.replace(microsecond=0)
    return DeploymentCondition(
        type=kind, status=status, reason=reason, message=message, last_transition_time=moment, last_update_time=moment
    )


def with_condition(status: DeploymentStatus, new: DeploymentCondition) -> None:
    """Put a condition into a status, unless the current one has the same status and reason."""
    present = find_condition(status.conditions, new.type)
    if present is not None and present.status == new.status:
        if present.reason == new.reason:
            return
        new = replace(new, last_transition_time=present.last_transition_time)
    _without(status, new.type)
    status.conditions = [*(status.conditions or ()), new]


def _without(status: DeploymentStatus, kind: str) -> None:
    status.conditions = [condition for condition in status.conditions or () if condition.type != kind] or None


def progressing(owner: Deployment, status: str, reason: str, message: str, moment: datetime) -> DeploymentStatus:
    """The Deployment's current status with another condition Progressing."""
    found = replace(owner.status) if owner.status is not None else DeploymentStatus()
    with_condition(found, condition("Progressing", status, reason, message, moment))
    return found


def paused(owner: Deployment, moment: datetime) -> DeploymentStatus | None:
    """The status of a Deployment that was just paused or resumed; None if it already says so."""
    present = find_condition(owner.status.conditions, "Progressing") if owner.status is not None else None
    reason = present.reason if present is not None else None
    if not has_deadline(owner) or reason == TIMED_OUT:
        return None
    if owner.spec.paused and reason != "DeploymentPaused":
        return progressing(owner, "Unknown", "DeploymentPaused", "Deployment is paused", moment)
    if not owner.spec.paused and reason == "DeploymentPaused":
        return progressing(owner, "Unknown", "DeploymentResumed", "Deployment is resumed", moment)
    return None


def counted(
    owner: Deployment, new: ReplicaSet | None, sets: Sequence[ReplicaSet], moment: datetime
) -> DeploymentStatus:
    """The status, without evaluating progress."""
    reports = [replica_set.status for replica_set in sets if replica_set.status is not None]
    ready = sum(report.available_replicas or 0 for report in reports)
    updated = new.status.replicas if new is not None and new.status is not None else 0
    counts = replace(
        owner.status or DeploymentStatus(),
        observed_generation=owner.metadata.generation,
        replicas=sum(report.replicas or 0 for report in reports) or None,
        updated_replicas=updated or None,
        ready_replicas=sum(report.ready_replicas or 0 for report in reports) or None,
        available_replicas=ready or None,
        unavailable_replicas=max(0, rollouts.total(sets) - ready) or None,
        terminating_replicas=_terminating(sets),
    )
    if ready >= rollouts.replicas(owner) - rollouts.fenceposts(owner)[1]:
        judged = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        judged = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    with_condition(counts, condition("Available", *judged, moment))
    return counts


def _terminating(sets: Sequence[ReplicaSet]) -> int | None:
    """How many Pods are terminating; None until every ReplicaSet has counted them."""
    number = 0
    for replica_set in sets:
        status = replica_set.status
        if status is None or (not status.observed_generation and status.terminating_replicas is None):
            continue
        if status.terminating_replicas is None:
            return None
        number += status.terminating_replicas
    return number


def rolled(owner: Deployment, new: ReplicaSet | None, sets: Sequence[ReplicaSet], moment: datetime) -> DeploymentStatus:
    """The status during and after a rollout."""
    result = counted(owner, new, sets, moment)
    present = find_condition(owner.status.conditions, "Progressing") if owner.status is not None else None
    if not has_deadline(owner):
        _without(result, "Progressing")
    elif present is None or present.reason != _COMPLETE or result.replicas != result.updated_replicas:
        _judge_progress(owner, new, result, present, moment)
    failures = [
        each
        for which in ([new] if new is not None else [], sets)
        for owned in which
        for each in (owned.status.conditions if owned.status is not None else None) or ()
        if each.type == "ReplicaFailure"
    ]
    if not failures:
        _without(result, "ReplicaFailure")
    else:
        first = failures[0]
        since = first.last_transition_time
        moved = condition("ReplicaFailure", first.status, first.reason or "", first.message or "", since or moment)
        with_condition(result, moved)
    return result


def _judge_progress(
    owner: Deployment,
    new: ReplicaSet | None,
    result: DeploymentStatus,
    present: DeploymentCondition | None,
    moment: datetime,
) -> None:
    who = f'ReplicaSet "{new.metadata.name}"' if new is not None else f'Deployment "{owner.metadata.name}"'
    if is_complete(owner, result):
        with_condition(
            result, condition("Progressing", "True", _COMPLETE, f"{who} has successfully progressed.", moment)
        )
    elif _has_progressed(owner.status or DeploymentStatus(), result):
        progress = condition("Progressing", "True", "ReplicaSetUpdated", f"{who} is progressing.", moment)
        if present is not None and present.status == "True":
            progress.last_transition_time = present.last_transition_time
        _without(result, "Progressing")
        with_condition(result, progress)
    elif present is not None and (present.reason == TIMED_OUT or _is_late(owner, present, moment)):
        message = f"{who} has timed out progressing."
        with_condition(result, condition("Progressing", "False", TIMED_OUT, message, moment))


def is_complete(owner: Deployment, status: DeploymentStatus | None) -> bool:
    """Whether all Pods have the new template and are available, and no old Pod is left."""
    if status is None or (status.observed_generation or 0) < (owner.metadata.generation or 0):
        return False
    numbers = (status.updated_replicas, status.replicas, status.available_replicas)
    return all((number or 0) == rollouts.replicas(owner) for number in numbers)


def _has_progressed(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    def old(status: DeploymentStatus) -> int:
        return (status.replicas or 0) - (status.updated_replicas or 0)

    return (
        (after.updated_replicas or 0) > (before.updated_replicas or 0)
        or old(after) < old(before)
        or (after.ready_replicas or 0) > (before.ready_replicas or 0)
        or (after.available_replicas or 0) > (before.available_replicas or 0)
    )


def _is_late(owner: Deployment, present: DeploymentCondition, moment: datetime) -> bool:
    deadline = _deadline(owner, present)
    return present.reason != _COMPLETE and deadline is not None and deadline < moment


def _deadline(owner: Deployment, present: DeploymentCondition) -> datetime | None:
    if present.last_update_time is None:
        return None
    return present.last_update_time + timedelta(seconds=owner.spec.progress_deadline_seconds or 0)


def next_check(owner: Deployment, status: DeploymentStatus, moment: datetime) -> float | None:
    """The seconds until a rollout without progress is overdue; None if there is nothing to wait for."""
    present = find_condition(status.conditions, "Progressing")
    if not has_deadline(owner) or present is None or present.reason == TIMED_OUT or is_complete(owner, status):
        return None
    deadline = _deadline(owner, present)
    return None if deadline is None else max(0.0, (deadline - moment).total_seconds()) + 0.01
