"""The progress of a Job: its counts, its completion indexes and its conditions. Pure: time is passed in.

Guarantees
- Every Pod is counted once, even if counting is interrupted: the status lists its uid until its finalizer is gone.
- Conditions have kube-controller-manager's types, reasons and messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from steersman.kinds.batch_v1 import Job, JobCondition, JobStatus
from steersman.kinds.core_v1 import Pod
from steersman.objects import find_condition, is_true, replace
from steersman.testing.workload_controllers import pods

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
#: The delay after the first failure of a Pod, and the maximum.
_BACKOFF_SECONDS, _BACKOFF_MAX = 10, 600


def is_finished(job: Job) -> bool:
    """Whether a Job is complete or has failed."""
    conditions = job.status.conditions if job.status is not None else None
    return is_true(conditions, "Complete") or is_true(conditions, "Failed")


def finished_at(job: Job) -> datetime | None:
    """When a Job finished; None if it has not."""
    for condition in (job.status.conditions if job.status is not None else None) or ():
        if condition.type in {"Complete", "Failed"} and condition.status == "True":
            return condition.last_transition_time
    return None


def is_indexed(job: Job) -> bool:
    """Whether each Pod has an index."""
    return job.spec.completion_mode == "Indexed"


def is_tracked(pod: Pod) -> bool:
    """Whether a Pod may still need counting."""
    return FINALIZER in (pod.metadata.finalizers or ())


def only_failed_are_replaced(job: Job) -> bool:
    """Whether a terminating Pod must end before it is replaced."""
    return job.spec.pod_replacement_policy == "Failed"


def has_failed(job: Job, pod: Pod) -> bool:
    """Whether a Pod counts as a failure."""
    if pods.phase(pod) == "Failed":
        return True
    leaving = pod.metadata.deletion_timestamp is not None and pods.phase(pod) != "Succeeded"
    return leaving and not only_failed_are_replaced(job)


def index_of(pod: Pod) -> int | None:
    """The completion index of a Pod."""
    text = (pod.metadata.annotations or {}).get(INDEX, "")
    return int(text) if text.isdecimal() else None


def parse_indexes(text: str | None) -> set[int]:
    """Parse indexes such as ``0-2,5``."""
    indexes: set[int] = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        indexes.update(range(int(first), int(last or first) + 1))
    return indexes


def print_indexes(indexes: Iterable[int]) -> str:
    """Format indexes as ``0-2,5``."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def condition(kind: str, reason: str, message: str, moment: datetime, *, status: str = "True") -> JobCondition:
    """A condition whose times are now."""
    moment = moment.replace(microsecond=0)
    return JobCondition(
        type=kind, status=status, reason=reason, message=message, last_probe_time=moment, last_transition_time=moment
    )


def with_condition(status: JobStatus, new: JobCondition) -> bool:
    """Put a condition into a status; returns whether that changed it. A new false condition is not added."""
    present = find_condition(status.conditions, new.type)
    if present is None:
        if new.status == "False":
            return False
        status.conditions = [*(status.conditions or ()), new]
        return True
    if (present.status, present.reason, present.message) == (new.status, new.reason, new.message):
        return False
    status.conditions = [new if condition is present else condition for condition in status.conditions or ()]
    return True


class Tally:
    """The Pods of a Job, added to what its status has already counted."""

    def __init__(self, job: Job, ours: Sequence[Pod]) -> None:
        status = job.status or JobStatus()
        uncounted = status.uncounted_terminated_pods
        self.job = job
        self.pods = ours
        self.active = [pod for pod in ours if pods.is_active(pod)]
        self.ready = sum(map(pods.is_ready, self.active))
        self.terminating = sum(map(pods.is_terminating_pod, ours))
        self._succeeded = set((uncounted.succeeded if uncounted is not None else None) or ())
        self._failed = set((uncounted.failed if uncounted is not None else None) or ())
        tracked = [pod for pod in ours if is_tracked(pod) and self._has_place(pod)]
        succeeded = [p for p in tracked if pods.phase(p) == "Succeeded" and p.metadata.uid not in self._succeeded]
        failed = [p for p in tracked if has_failed(job, p) and p.metadata.uid not in self._failed]
        self.failed = (status.failed or 0) + len(failed) + len(self._failed)
        self.succeeded = (status.succeeded or 0) + len(succeeded) + len(self._succeeded)
        self.indexes = parse_indexes(status.completed_indexes)
        if is_indexed(job):
            self.indexes |= {index for p in succeeded if (index := index_of(p)) is not None}
            self.succeeded = len(self.indexes)

    def _has_place(self, pod: Pod) -> bool:
        """Whether a Pod has one of the requested indexes; always true without indexes."""
        index = index_of(pod)
        return not is_indexed(self.job) or (index is not None and index < (self.job.spec.completions or 0))

    def counted(self, pod: Pod, *, failing: bool) -> str:
        """How a Pod counts when its finalizer is removed: ``succeeded``, ``failed``, or empty if it does not count."""
        uid = pod.metadata.uid or ""
        if pods.phase(pod) == "Succeeded" and uid not in self._failed:
            return "" if uid in self._succeeded or is_indexed(self.job) else "succeeded"
        if (has_failed(self.job, pod) or failing) and uid not in self._failed and self._has_place(pod):
            return "failed"
        return ""

    def backoff(self, moment: datetime) -> float:
        """The seconds to wait before creating another Pod, after consecutive failures."""
        succeeded = [_finished(pod) for pod in self.pods if pods.phase(pod) == "Succeeded"]
        since = max((each for each in succeeded if each is not None), default=None)
        failures = [at for pod in self.pods if has_failed(self.job, pod) and (at := _finished(pod)) is not None]
        recent = [each for each in failures if since is None or each > since]
        if not recent:
            return 0.0
        delay = min(_BACKOFF_SECONDS * 2 ** min(len(recent) - 1, 10), _BACKOFF_MAX)
        return max(0.0, (max(recent) + timedelta(seconds=delay) - moment).total_seconds())


def _finished(pod: Pod) -> datetime | None:
    ends = [
        container.state.terminated.finished_at
        for container in (pod.status.container_statuses if pod.status is not None else None) or ()
        if container.state is not None and container.state.terminated is not None
    ]
    known = [moment for moment in ends if moment is not None]
    return max(known) if known else pod.metadata.deletion_timestamp or pod.metadata.creation_timestamp


def failure(tally: Tally, moment: datetime) -> JobCondition | None:
    """Why a Job fails; None if it does not fail."""
    job = tally.job
    limit = 6 if job.spec.backoff_limit is None else job.spec.backoff_limit
    if tally.failed > limit or _restarts_too_often(tally, limit):
        return condition("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit", moment)
    deadline = deadline_of(job)
    if deadline is not None and deadline <= moment:
        return condition("FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline", moment)
    return None


def deadline_of(job: Job) -> datetime | None:
    """When an active Job exceeds its deadline; None without a deadline."""
    begin = job.status.start_time if job.status is not None else None
    if job.spec.active_deadline_seconds is None or begin is None or job.spec.suspend:
        return None
    return begin + timedelta(seconds=job.spec.active_deadline_seconds)


def _restarts_too_often(tally: Tally, limit: int) -> bool:
    if tally.job.spec.template.spec.restart_policy != "OnFailure":
        return False
    restarts = 0
    for pod in tally.pods:
        if pods.phase(pod) in {"Running", "Pending"} and pod.status is not None:
            statuses = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
            restarts += sum(container.restart_count or 0 for container in statuses)
    return restarts > 0 if limit == 0 else restarts >= limit


def is_complete(tally: Tally, active: int) -> bool:
    """Whether enough Pods succeeded, and no active Pod is left."""
    wanted = tally.job.spec.completions
    enough = tally.succeeded > 0 if wanted is None else tally.succeeded >= wanted
    return enough and active == 0


def wanted_active(tally: Tally) -> int:
    """How many Pods should be active now."""
    spec = tally.job.spec
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is None:
        return len(tally.active) if tally.succeeded > 0 else parallelism
    return max(0, min(parallelism, spec.completions - tally.succeeded))


def settled(status: JobStatus, gone: set[str]) -> JobStatus:
    """The status after Pods lost their finalizers: the listed ones are added to the counts."""
    uncounted = status.uncounted_terminated_pods
    if uncounted is None:
        return status
    succeeded, failed = uncounted.succeeded or [], uncounted.failed or []
    left = replace(
        uncounted,
        succeeded=[uid for uid in succeeded if uid not in gone] or None,
        failed=[uid for uid in failed if uid not in gone] or None,
    )
    return replace(
        status,
        uncounted_terminated_pods=left,
        succeeded=(status.succeeded or 0) + len(succeeded) - len(left.succeeded or ()) or None,
        failed=(status.failed or 0) + len(failed) - len(left.failed or ()) or None,
    )
