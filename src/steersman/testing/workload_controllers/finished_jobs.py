"""Cleanup after Jobs: the ttl-after-finished-controller, and the finalizers of Pods whose Job is gone.

Guarantees
- A finished Job is deleted with its Pods after ``ttlSecondsAfterFinished``.
- A Job that can no longer count a Pod does not block the Pod's deletion.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from steersman.aio import utc_now
from steersman.client import StrategicPatch
from steersman.controller import (
    Blueprint,
    Context,
    Done,
    Outcome,
    Reconciler,
    Request,
    RequeueAfter,
    Stores,
    View,
    controller_for,
)
from steersman.errors import Conflict, NotFound
from steersman.kinds.batch_v1 import Job
from steersman.kinds.core_v1 import Pod
from steersman.objects import Key, controller_of
from steersman.testing.workload_controllers import job_status
from steersman.testing.workload_controllers.job_status import FINALIZER


class FinishedJobs(Reconciler[Job]):
    """Deletes Jobs whose time to live is over."""

    def blueprint(self) -> Blueprint:
        """The controller's blueprint."""
        return controller_for(Job, name="ttl-after-finished-controller").run_with(self)

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Delete a finished Job, or requeue it for later."""
        job = await ctx.client.find(Job, request.key)
        if job is None or job.metadata.deletion_timestamp is not None:
            return Done()
        end, ttl = job_status.finished_at(job), job.spec.ttl_seconds_after_finished
        if end is None or ttl is None:
            return Done()
        left = (end + timedelta(seconds=ttl) - utc_now()).total_seconds()
        if left > 0:
            return RequeueAfter(left)
        try:
            await ctx.client.delete(
                job, propagation="Foreground", resource_version=job.metadata.resource_version, missing_ok=True
            )
        except Conflict:
            # It changed: re-read it, since its time to live may be longer now.
            return RequeueAfter(0.0)
        return Done()


class OrphanPods(Reconciler[Pod]):
    """Releases Pods that no Job counts."""

    def blueprint(self) -> Blueprint:
        """The controller's blueprint."""
        return controller_for(Pod, name="job-orphan-pods").watches(Job, map=_pods_of).run_with(self)

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Remove the finalizer of a Pod whose Job is gone or has finished."""
        pod = await ctx.client.find(Pod, request.key)
        if pod is None or not job_status.is_tracked(pod):
            return Done()
        reference = controller_of(pod)
        if reference is not None:
            if reference.kind != "Job":
                return Done()
            job = await ctx.client.find(Job, Key(request.key.namespace, reference.name))
            if job is not None and job.metadata.uid == reference.uid and not job_status.is_finished(job):
                return Done()
        patch = {"metadata": {"uid": pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
        try:
            await ctx.client.patch(Pod, pod.key, StrategicPatch(patch))
        except NotFound:
            return Done()
        return Done()


def _pods_of(view: View[Job], stores: Stores) -> Iterable[Key]:
    return [each.key for each in stores.owned_by(Pod, view)]
