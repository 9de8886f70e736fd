"""What is to be said of workloads and Pods: a tree, the verdict, and the words."""

from __future__ import annotations

from typing import Any

from patterns.readiness_forms import FAILED, READY, WAITS, condition, with_status


def deployment(asked: int = 3, *, spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    counts = {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3, "observedGeneration": 2}
    return with_status("apps/v1", "Deployment", spec={"replicas": asked, **(spec or {})}, status={**counts, **status})


STUCK = condition("Progressing", "False", "ProgressDeadlineExceeded", 'ReplicaSet "web-5d4" has timed out progressing.')
QUOTA = condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota: pods=2")

DEPLOYMENTS = {
    "complete": (deployment(), READY, "3 of 3 replicas are ready"),
    "new": (with_status("apps/v1", "Deployment", spec={}), WAITS, "its controller has not looked at it yet"),
    "changed": (
        deployment(observedGeneration=1),
        WAITS,
        "its controller has not seen the last change yet (generation 2, seen 1)",
    ),
    "updating": (deployment(updatedReplicas=1), WAITS, "1 of 3 replicas are updated"),
    "growing": (deployment(5), WAITS, "3 of 5 replicas are updated"),
    "old left": (deployment(replicas=4), WAITS, "1 old replica is still there"),
    "unready": (deployment(readyReplicas=1, availableReplicas=1), WAITS, "1 of 3 replicas are ready"),
    "alone": (
        deployment(1, replicas=1, updatedReplicas=1, readyReplicas=None, availableReplicas=None),
        WAITS,
        "0 of 1 replica is ready",
    ),
    "not long enough": (
        deployment(availableReplicas=1, spec={"minReadySeconds": 30}),
        WAITS,
        "1 of 3 replicas are available (they count after 30 s)",
    ),
    "too many": (deployment(1), WAITS, "2 replicas too many are still there"),
    "none": (
        deployment(0, replicas=0, updatedReplicas=0, readyReplicas=0, availableReplicas=0),
        READY,
        "no replicas are requested",
    ),
    "not yet none": (deployment(0), WAITS, "3 replicas too many are still there"),
    "default": (
        with_status(
            "apps/v1",
            "Deployment",
            spec={},
            status={
                "observedGeneration": 2,
                "replicas": 1,
                "updatedReplicas": 1,
                "readyReplicas": 1,
                "availableReplicas": 1,
            },
        ),
        READY,
        "1 of 1 replica is ready",
    ),
    "paused": (
        deployment(updatedReplicas=0, spec={"paused": True}),
        WAITS,
        "its rollout is paused: 0 of 3 replicas are updated",
    ),
    "paused when done": (deployment(spec={"paused": True}), READY, "3 of 3 replicas are ready"),
    "stuck": (
        deployment(updatedReplicas=1, conditions=[STUCK]),
        FAILED,
        "the rollout is stuck: ProgressDeadlineExceeded: " + STUCK["message"],
    ),
    "quota": (
        deployment(updatedReplicas=1, conditions=[QUOTA]),
        WAITS,
        "1 of 3 replicas are updated; Pods cannot be created: FailedCreate: exceeded quota: pods=2",
    ),
}


def stateful_set(*, spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    counts = {
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "observedGeneration": 2,
        "currentRevision": "db-2",
        "updateRevision": "db-2",
    }
    return with_status("apps/v1", "StatefulSet", spec={"replicas": 3, **(spec or {})}, status={**counts, **status})


def rolling(partition: int) -> dict[str, Any]:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}}


def daemon_set(desired: int = 2, *, spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    counts = {
        "desiredNumberScheduled": desired,
        "updatedNumberScheduled": 2,
        "numberReady": 2,
        "numberAvailable": 2,
        "observedGeneration": 2,
    }
    return with_status("apps/v1", "DaemonSet", spec=spec or {}, status={**counts, **status})


def replica_set(**status: Any) -> dict[str, Any]:
    counts = {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "observedGeneration": 2}
    return with_status("apps/v1", "ReplicaSet", spec={"replicas": 2}, status={**counts, **status})


OTHER_WORKLOADS = {
    "ReplicaSet": (replica_set(), READY, "2 of 2 replicas are ready"),
    "ReplicaSet, one": (replica_set(readyReplicas=1), WAITS, "1 of 2 replicas are ready"),
    "ReplicaSet, refused": (
        replica_set(replicas=0, readyReplicas=0, conditions=[QUOTA]),
        WAITS,
        "0 of 2 replicas are ready; Pods cannot be created: FailedCreate: exceeded quota: pods=2",
    ),
    "ReplicationController": (
        with_status("v1", "ReplicationController", spec={"replicas": 1}, status={"observedGeneration": 2}),
        WAITS,
        "0 of 1 replica is ready",
    ),
    "StatefulSet": (stateful_set(), READY, "3 of 3 replicas are ready"),
    "StatefulSet, growing": (stateful_set(replicas=1, readyReplicas=1), WAITS, "1 of 3 replicas are created"),
    "StatefulSet, unready": (stateful_set(readyReplicas=2), WAITS, "2 of 3 replicas are ready"),
    "StatefulSet, unseen": (
        stateful_set(observedGeneration=1),
        WAITS,
        "its controller has not seen the last change yet (generation 2, seen 1)",
    ),
    "StatefulSet, rolling": (
        stateful_set(updatedReplicas=1, currentRevision="db-1"),
        WAITS,
        "1 of 3 replicas are updated",
    ),
    "StatefulSet, last act": (
        stateful_set(currentRevision="db-1"),
        WAITS,
        "its controller has not finished the rollout from db-1 to db-2",
    ),
    "StatefulSet, partition": (
        stateful_set(spec=rolling(2), updatedReplicas=0, currentRevision="db-1"),
        WAITS,
        "0 of 1 replica is updated (2 kept back by its partition)",
    ),
    "StatefulSet, partition reached": (
        stateful_set(spec=rolling(2), updatedReplicas=1, currentRevision="db-1"),
        READY,
        "3 of 3 replicas are ready",
    ),
    "StatefulSet, partition of all": (
        stateful_set(spec=rolling(9), updatedReplicas=0, currentRevision="db-1"),
        READY,
        "3 of 3 replicas are ready",
    ),
    "StatefulSet, on delete": (
        stateful_set(spec={"updateStrategy": {"type": "OnDelete"}}, updatedReplicas=0, currentRevision="db-1"),
        READY,
        "3 of 3 replicas are ready",
    ),
    "StatefulSet, on delete, unready": (
        stateful_set(spec={"updateStrategy": {"type": "OnDelete"}}, readyReplicas=1),
        WAITS,
        "1 of 3 replicas are ready",
    ),
    "DaemonSet": (daemon_set(), READY, "its Pods are ready on 2 nodes"),
    "DaemonSet, no node": (daemon_set(0), READY, "no node should run it"),
    "DaemonSet, updating": (daemon_set(updatedNumberScheduled=1), WAITS, "its Pods are updated on 1 of 2 nodes"),
    "DaemonSet, on delete": (
        daemon_set(updatedNumberScheduled=1, spec={"updateStrategy": {"type": "OnDelete"}}),
        READY,
        "its Pods are ready on 2 nodes",
    ),
    "DaemonSet, unready": (daemon_set(numberReady=1), WAITS, "its Pods are ready on 1 of 2 nodes"),
    "DaemonSet, not long": (
        daemon_set(numberAvailable=1, spec={"minReadySeconds": 5}),
        WAITS,
        "its Pods are available on 1 of 2 nodes (they count after 5 s)",
    ),
    "DaemonSet, unseen": (
        with_status("apps/v1", "DaemonSet", spec={}),
        WAITS,
        "its controller has not looked at it yet",
    ),
}


def job(*conditions: dict[str, Any], spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    parts = {"spec": {"completions": 3, **(spec or {})}, "status": {"conditions": [*conditions], **status}}
    return with_status("batch/v1", "Job", **parts)


BACKOFF = ("True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
BACKOFF_WORDS = "it failed: BackoffLimitExceeded: Job has reached the specified backoff limit"

JOBS = {
    "new": (job(), WAITS, "none of its Pods has started yet"),
    "running": (job(active=1, succeeded=1), WAITS, "1 of 3 Pods have succeeded, 1 active"),
    "running, badly": (job(active=1, failed=2), WAITS, "0 of 3 Pods have succeeded, 1 active, 2 failed"),
    "between two": (job(failed=1), WAITS, "1 Pod has failed, none runs"),
    "queue": (job(active=2, spec={"completions": None}), WAITS, "0 Pods have succeeded, 2 active"),
    "about to be complete": (
        job(condition("SuccessCriteriaMet"), active=1),
        WAITS,
        "0 of 3 Pods have succeeded, 1 active",
    ),
    "complete": (job(condition("SuccessCriteriaMet"), condition("Complete")), READY, "it has completed"),
    "failed": (job(condition("Failed", *BACKOFF)), FAILED, BACKOFF_WORDS),
    "about to fail": (job(condition("FailureTarget", *BACKOFF), active=1), FAILED, BACKOFF_WORDS),
    "suspended": (job(spec={"suspend": True}), WAITS, "it is suspended"),
    "CronJob": (with_status("batch/v1", "CronJob", spec={"schedule": "@daily"}), READY, "it exists"),
    "CronJob, suspended": (
        with_status("batch/v1", "CronJob", spec={"suspend": True}),
        READY,
        "it is suspended: no Job is started",
    ),
}


def pod(phase: str, *conditions: dict[str, Any], spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return with_status("v1", "Pod", spec=spec or {}, status={"phase": phase, "conditions": [*conditions], **status})


def container(name: str, *, ready: bool = False, **state: Any) -> dict[str, Any]:
    last = state.pop("last", {})
    return {"name": name, "ready": ready, "state": state, "lastState": last}


NOT_READY = condition("Ready", "False", "ContainersNotReady", "containers with unready status: [web]")
PULL = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "nginx:nope"'}
RUNS = {"startedAt": "2026-01-01T00:00:00Z"}

PODS = {
    "new": (with_status("v1", "Pod", spec={}), WAITS, "no node has reported on it yet"),
    "pending": (pod("Pending"), WAITS, "its phase is Pending"),
    "ready": (pod("Running", condition("Ready")), READY, "it runs and is ready"),
    "succeeded": (pod("Succeeded", condition("Ready", "False", "PodCompleted")), READY, "it has succeeded"),
    "evicted": (
        pod("Failed", reason="Evicted", message="The node was low on resource: memory."),
        FAILED,
        "it failed: Evicted: The node was low on resource: memory.",
    ),
    "ended": (
        pod("Failed", containerStatuses=[container("web", terminated={"exitCode": 3, "reason": "Error"})]),
        FAILED,
        "it failed: container web ended with exit code 3: Error",
    ),
    "failed silently": (pod("Failed"), FAILED, "it failed: no message"),
    "unschedulable": (
        pod("Pending", condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available: 3 too small.")),
        WAITS,
        "it cannot be scheduled: 0/3 nodes are available: 3 too small.",
    ),
    "gated": (
        pod(
            "Pending",
            condition("PodScheduled", "False", "SchedulingGated", "gated"),
            spec={"schedulingGates": [{"name": "example.com/quota"}]},
        ),
        WAITS,
        "it waits for its scheduling gates: example.com/quota",
    ),
    "creating": (
        pod("Pending", NOT_READY, containerStatuses=[container("web", waiting={"reason": "ContainerCreating"})]),
        WAITS,
        "container web is being created",
    ),
    "image": (
        pod("Pending", NOT_READY, containerStatuses=[container("web", waiting=PULL)]),
        WAITS,
        'container web cannot start: ImagePullBackOff: Back-off pulling image "nginx:nope"',
    ),
    "the one that cannot comes first": (
        pod(
            "Pending",
            containerStatuses=[container("a", waiting={"reason": "ContainerCreating"}), container("b", waiting=PULL)],
        ),
        WAITS,
        'container b cannot start: ImagePullBackOff: Back-off pulling image "nginx:nope"',
    ),
    "image name": (
        pod("Pending", containerStatuses=[container("web", waiting={"reason": "InvalidImageName"})]),
        FAILED,
        "container web cannot start: InvalidImageName",
    ),
    "config": (
        pod(
            "Pending",
            containerStatuses=[
                container("web", waiting={"reason": "CreateContainerConfigError", "message": 'secret "s" not found'})
            ],
        ),
        WAITS,
        'container web cannot start: CreateContainerConfigError: secret "s" not found',
    ),
    "crashing": (
        pod(
            "Running",
            NOT_READY,
            containerStatuses=[
                container(
                    "web",
                    waiting={"reason": "CrashLoopBackOff", "message": "back-off 40s"},
                    last={"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                )
            ],
        ),
        WAITS,
        "container web crashes: CrashLoopBackOff: back-off 40s; the last time it ended with exit code 137: OOMKilled",
    ),
    "init container": (
        pod(
            "Pending",
            initContainerStatuses=[container("migrate", waiting=PULL)],
            containerStatuses=[container("web", waiting={"reason": "PodInitializing"})],
        ),
        WAITS,
        'container migrate cannot start: ImagePullBackOff: Back-off pulling image "nginx:nope"',
    ),
    "initializing": (
        pod("Pending", NOT_READY, initContainerStatuses=[container("migrate", running=RUNS)]),
        WAITS,
        "init container migrate runs",
    ),
    "probe": (
        pod("Running", NOT_READY, containerStatuses=[container("web", running=RUNS)]),
        WAITS,
        "container web is not ready",
    ),
    "probes": (
        pod("Running", NOT_READY, containerStatuses=[container("a", running=RUNS), container("b", running=RUNS)]),
        WAITS,
        "containers a, b are not ready",
    ),
    "readiness gate": (
        pod(
            "Running",
            condition("Ready", "False", "ReadinessGatesNotReady", 'corresponding condition of pod readiness gate "x"'),
            containerStatuses=[container("web", ready=True, running=RUNS)],
        ),
        WAITS,
        'it is not ready: ReadinessGatesNotReady: corresponding condition of pod readiness gate "x"',
    ),
}
