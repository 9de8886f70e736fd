"""The job-controller: Pods that run to completion, as many as a Job requests.

Guarantees
- A Pod is counted once: it keeps a finalizer until the Job's status lists it.
- Failed Pods are replaced with growing delays, up to the backoff limit.
- A finished Job is not written again; only its time to live ends it.
- A Job with an unsupported policy is ignored, with an event that says so.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import datetime

from steersman.aio import utc_now
from steersman.client import StrategicPatch
from steersman.controller import Blueprint, Context, Done, Outcome, Request, Requeue, controller_for
from steersman.errors import NotFound
from steersman.kinds.batch_v1 import Job, JobCondition, JobStatus, UncountedTerminatedPods
from steersman.kinds.core_v1 import EnvVar, EnvVarSource, ObjectFieldSelector, Pod
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import ObjectMeta, find_condition, is_true, replace
from steersman.testing.workload_controllers import job_status, pods
from steersman.testing.workload_controllers.claims import adopters, candidates, claim
from steersman.testing.workload_controllers.job_status import FINALIZER, INDEX, Tally
from steersman.testing.workload_controllers.workload_reconciler import WorkloadReconciler

_STEPS = 30
_ENVIRONMENT = "JOB_COMPLETION_INDEX"
_MANAGER = "kubernetes.io/job-controller"
#: A generated name keeps this many characters of its prefix.
_PREFIX_CHARACTERS = 58


class Jobs(WorkloadReconciler[Job]):
    """Reconciles Jobs."""

    def blueprint(self) -> Blueprint:
        """The controller's blueprint."""
        return (
            controller_for(Job, name="job-controller")
            .owns(Pod)
            .watches(Pod, map=adopters(Job, lambda each: each.spec.selector))
            .options(concurrency=5)
            .run_with(self)
        )

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Take steps until there is nothing left to write."""
        for _ in range(_STEPS):
            job = await ctx.client.find(Job, request.key)
            if job is None or job_status.is_finished(job) or job.spec.managed_by not in {None, _MANAGER}:
                return Done()
            if unknown := _unknown_policy(job):
                note = f"WorkloadRunner does not support spec.{unknown}: it ignores the Job"
                ctx.events.record(job, "Warning", "NotSupported", "Reconcile", note)
                return Done()
            step = _Step(ctx, job)
            try:
                if await step.take():
                    continue
            except NotFound:
                # A Pod was deleted during the write.
                continue
            return self.rejected(job) if step.refused else self.after(job, step.wait)
        return Requeue()


def _unknown_policy(job: Job) -> str:
    policies = {
        "podFailurePolicy": job.spec.pod_failure_policy,
        "successPolicy": job.spec.success_policy,
        "backoffLimitPerIndex": job.spec.backoff_limit_per_index,
    }
    return next((name for name, value in policies.items() if value is not None), "")


class _Step:
    """One step of one Job."""

    def __init__(self, ctx: Context, job: Job) -> None:
        self._ctx = ctx
        self._job = job
        self._moment: datetime = utc_now()
        #: The seconds until the next step is due.
        self.wait: float | None = None
        #: Whether the server rejected a Pod.
        self.refused = False
        self._wrote = False

    async def take(self) -> bool:
        """Take the next step; returns whether it wrote anything."""
        ctx, job = self._ctx, self._job
        selector = job.spec.selector or LabelSelector()
        ours = await claim(ctx, job, await candidates(ctx, Pod, job), selector, finalizer=FINALIZER)
        status = replace(job.status) if job.status is not None else JobStatus()
        if status.start_time is None and not job.spec.suspend:
            status.start_time = self._moment.replace(microsecond=0)
        tally = Tally(job, ours)
        finished = self._finished(tally)
        if finished is not None:
            error = await pods.together(self._delete(pod) for pod in tally.active)
            self._wrote = self._wrote or bool(tally.active)
            finished = None if error is not None else finished
        else:
            await self._manage(tally)
            if self._wrote:
                return True
            finished = self._completion(tally, status)
        await self._track(tally, status, finished)
        return self._wrote

    # Pods

    async def _delete(self, pod: Pod) -> None:
        await pods.delete(self._ctx, self._job, pod)

    async def _manage(self, tally: Tally) -> None:
        job = self._job
        if job.metadata.deletion_timestamp is not None:
            return
        wanted = 0 if job.spec.suspend else job_status.wanted_active(tally)
        excess = _excess(tally, len(tally.active) - wanted, self._moment)
        if excess:
            error = await pods.together(self._forget(pod) for pod in excess)
            self._wrote, self.refused = True, error is not None
            return
        missing = wanted - len(tally.active)
        if job_status.only_failed_are_replaced(job):
            missing -= tally.terminating
        if missing <= 0:
            return
        if (delay := tally.backoff(self._moment)) > 0:
            self.wait = delay
            return
        await self._create(tally, min(missing, pods.BURST))

    async def _forget(self, pod: Pod) -> None:
        """Delete a Pod that must not be counted."""
        await self._release(pod)
        await self._delete(pod)

    async def _create(self, tally: Tally, number: int) -> None:
        job, ctx = self._job, self._ctx
        indexes: Sequence[int | None] = [None] * number
        if job_status.is_indexed(job):
            blocking = tally.pods if job_status.only_failed_are_replaced(job) else tally.active
            taken = {job_status.index_of(pod) for pod in blocking if pods.phase(pod) != "Failed"} | tally.indexes
            indexes = [each for each in range(job.spec.completions or 0) if each not in taken][:number]
        following = iter(indexes)
        error = await pods.slow_start(len(indexes), lambda: pods.create(ctx, job, new_pod(job, next(following))))
        self.refused = error is not None
        self._wrote = error is None and bool(indexes)

    async def _release(self, pod: Pod) -> None:
        patch = {"metadata": {"uid": pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
        try:
            await self._ctx.client.patch(Pod, pod.key, StrategicPatch(patch))
        except NotFound:
            return

    # status

    def _finished(self, tally: Tally) -> JobCondition | None:
        """The condition that ends a Job regardless of its Pods; None if it continues."""
        conditions = self._job.status.conditions if self._job.status is not None else None
        for kind in ("SuccessCriteriaMet", "FailureTarget"):
            if is_true(conditions, kind):
                return find_condition(conditions, kind)
        found = job_status.failure(tally, self._moment)
        deadline = job_status.deadline_of(self._job)
        if found is None and deadline is not None:
            self.wait = (deadline - self._moment).total_seconds()
        return found

    def _completion(self, tally: Tally, status: JobStatus) -> JobCondition | None:
        """The condition of success; otherwise records that the Job was suspended or resumed."""
        job, moment = self._job, self._moment
        if job_status.is_complete(tally, len(tally.active)):
            message = "Reached expected number of succeeded pods"
            return job_status.condition("SuccessCriteriaMet", "CompletionsReached", message, moment)
        if job.metadata.deletion_timestamp is not None:
            return None
        if job.spec.suspend:
            new = job_status.condition("Suspended", "JobSuspended", "Job suspended", moment)
            if job_status.with_condition(status, new):
                status.start_time = None
                self._ctx.events.record(job, "Normal", "Suspended", "Suspend", "Job suspended")
        else:
            new = job_status.condition("Suspended", "JobResumed", "Job resumed", moment, status="False")
            if job_status.with_condition(status, new):
                status.start_time = moment.replace(microsecond=0)
                self._ctx.events.record(job, "Normal", "Resumed", "Resume", "Job resumed")
        return None

    async def _track(self, tally: Tally, status: JobStatus, finished: JobCondition | None) -> None:
        """Count the Pods that ended: list them, remove their finalizers, then add them up."""
        job = self._job
        deleted = len(tally.active) if finished is not None else 0
        status.active = len(tally.active) - deleted or None
        status.ready = 0 if deleted else tally.ready
        status.terminating = tally.terminating + deleted
        released = [pod for pod in tally.pods if self._may_release(pod, finished)]
        failing = finished is not None and finished.type == "FailureTarget"
        listed = {"succeeded": list[str](), "failed": list[str]()}
        for pod in released:
            if kind := tally.counted(pod, failing=failing):
                listed[kind].append(pod.metadata.uid or "")
        before = status.uncounted_terminated_pods or UncountedTerminatedPods()
        status.uncounted_terminated_pods = replace(
            before,
            succeeded=[*(before.succeeded or ()), *listed["succeeded"]] or None,
            failed=[*(before.failed or ()), *listed["failed"]] or None,
        )
        if job_status.is_indexed(job):
            status.completed_indexes = job_status.print_indexes(tally.indexes) or None
            status.succeeded = len(tally.indexes) or None
        if finished is not None:
            job_status.with_condition(status, finished)
        await self._write(status)
        error = await pods.together(self._release(pod) for pod in released)
        if error is not None:
            raise error
        tracked = {pod.metadata.uid for pod in tally.pods if job_status.is_tracked(pod)}
        gone = {pod.metadata.uid or "" for pod in released}
        listed_uids = {
            *(status.uncounted_terminated_pods.succeeded or ()),
            *(status.uncounted_terminated_pods.failed or ()),
        }
        after = job_status.settled(status, gone | (listed_uids - tracked))
        await self._write(self._concluded(after, finished, waiting=tally.terminating + deleted > 0))

    def _may_release(self, pod: Pod, finished: JobCondition | None) -> bool:
        if not job_status.is_tracked(pod):
            return False
        over = finished is not None or self._job.metadata.deletion_timestamp is not None
        return over or pods.phase(pod) == "Succeeded" or job_status.has_failed(self._job, pod)

    def _concluded(self, status: JobStatus, finished: JobCondition | None, *, waiting: bool) -> JobStatus:
        """The status with its final condition, once nothing is left to count or to wait for."""
        uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
        if finished is None or waiting or uncounted.succeeded or uncounted.failed:
            return status
        kind = "Failed" if finished.type == "FailureTarget" else "Complete"
        last = job_status.condition(kind, finished.reason or "", finished.message or "", self._moment)
        found = replace(status, completion_time=last.last_transition_time if kind == "Complete" else None)
        job_status.with_condition(found, last)
        if kind == "Complete":
            self._ctx.events.record(self._job, "Normal", "Completed", "Complete", "Job completed")
        else:
            self._ctx.events.record(self._job, "Warning", finished.reason or "", "Fail", finished.message or "")
        return found

    async def _write(self, status: JobStatus) -> None:
        if status == (self._job.status or JobStatus()):
            return
        self._job.status = status
        self._job = await self._ctx.client.update(self._job, subresource="status")
        self._wrote = True


def _excess(tally: Tally, number: int, moment: datetime) -> list[Pod]:
    """The active Pods to delete: those with a duplicate index first, then the surplus."""
    chosen: list[Pod] = []
    left = list(tally.active)
    if job_status.is_indexed(tally.job):
        seen: set[int | None] = set()
        for pod in sorted(left, key=lambda each: str(each.metadata.creation_timestamp)):
            index = job_status.index_of(pod)
            if index is None or index >= (tally.job.spec.completions or 0) or index in seen:
                chosen.append(pod)
            seen.add(index)
        left = [pod for pod in left if pod not in chosen]
    more = number - len(chosen)
    return [*chosen, *(pods.to_delete(left, (), more, moment) if more > 0 else ())]


def new_pod(job: Job, index: int | None) -> Pod:
    """A Pod of a Job, with an index if the Job is indexed."""
    template = copy.deepcopy(job.spec.template)
    metadata = template.metadata or ObjectMeta()
    finalizers = list(metadata.finalizers or ())
    template.metadata = replace(
        metadata, finalizers=finalizers if FINALIZER in finalizers else [*finalizers, FINALIZER]
    )
    if index is not None:
        mark = {INDEX: str(index)}
        template.metadata.annotations = {**(metadata.annotations or {}), **mark}
        template.metadata.labels = {**(metadata.labels or {}), **mark}
        template.spec.hostname = f"{job.metadata.name}-{index}"
        for container in (*(template.spec.init_containers or ()), *template.spec.containers):
            if all(each.name != _ENVIRONMENT for each in container.env or ()):
                source = EnvVarSource(field_ref=ObjectFieldSelector(field_path=f"metadata.labels['{INDEX}']"))
                container.env = [*(container.env or ()), EnvVar(name=_ENVIRONMENT, value_from=source)]
    pod = pods.from_template(job, template)
    if index is not None:
        end = f"-{index}-"
        pod.metadata.generate_name = (job.metadata.name or "")[: _PREFIX_CHARACTERS - len(end)] + end
    return pod
