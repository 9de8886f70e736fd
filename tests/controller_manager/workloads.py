"""Scenarios of workloads: what the controllers make of them, on any server that is one."""

from __future__ import annotations

from typing import Any

from controller_manager.manifests import deployment, job, stateful_set, template
from controller_manager.stage import Stage

from samples.raw_api import MERGE


def _rolled_out(replicas: int, revision: int) -> Any:
    def question(tree: dict[str, Any]) -> bool:
        status = tree.get("status", {})
        return (
            status.get("observedGeneration") == tree["metadata"]["generation"]
            and [status.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")] == [replicas] * 3
            and tree["metadata"]["annotations"].get("deployment.kubernetes.io/revision") == str(revision)
        )

    return question


def _half_way(updated: int, old: int) -> Any:
    """Only the Pods of the old template are available."""

    def question(tree: dict[str, Any]) -> bool:
        status = tree.get("status", {})
        counts = [status.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")]
        seen = status.get("observedGeneration") == tree["metadata"]["generation"]
        return seen and counts == [updated + old, updated, old]

    return question


def _condition(kind: str, status: str = "True") -> Any:
    def question(tree: dict[str, Any]) -> bool:
        conditions = tree.get("status", {}).get("conditions", [])
        return any(each["type"] == kind and each["status"] == status for each in conditions)

    return question


async def deployments(stage: Stage) -> None:
    """A Deployment is made, scaled, rolled out, rolled back, and deleted; its old ReplicaSets are its history."""
    kinds = ("deployments", "replicasets", "pods")
    await stage.create("deployments", "web", deployment("web", revisionHistoryLimit=2))
    await stage.until("deployments/web", _rolled_out(3, 1))
    await stage.same("created", *kinds, events=True)
    await stage.scale("deployments/web", 5)
    await stage.until("deployments/web", _rolled_out(5, 1))
    await stage.same("scaled", *kinds)
    await stage.image("deployments/web", "example.com/web:2")
    await stage.until("deployments/web", _rolled_out(5, 2))
    await stage.count("pods", 5)
    await stage.same("rolled out", *kinds)
    await stage.kubectl("rollout", "undo", "deployment/web")
    assert "successfully rolled out" in await stage.kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    await stage.until("deployments/web", _rolled_out(5, 3))
    await stage.count("pods", 5)
    await stage.same("rolled back", *kinds)
    await stage.told("history", await stage.kubectl("rollout", "history", "deployment/web"))
    for number in (3, 4):
        await stage.image("deployments/web", f"example.com/web:{number}")
        await stage.until("deployments/web", _rolled_out(5, number + 1))
    await stage.count("replicasets", 3)
    await stage.count("pods", 5)
    await stage.same("history is cut", *kinds)


async def stuck_rollouts(stage: Stage) -> None:
    """A rollout to an image that cannot be pulled stops half way, says so, and is paused and repaired."""
    kinds = ("deployments", "replicasets", "pods")
    await stage.create("deployments", "web", deployment("web", 4, progressDeadlineSeconds=1, minReadySeconds=0))
    await stage.until("deployments/web", _rolled_out(4, 1))
    await stage.image("deployments/web", "example.com/nothing", outcome="waits")
    await stage.until("deployments/web", _condition("Progressing", "False"))
    await stage.same("stuck", *kinds)
    await stage.kubectl("rollout", "pause", "deployment/web")
    await stage.image("deployments/web", "example.com/web:3", outcome="")
    await stage.until("deployments/web", lambda tree: tree["status"]["observedGeneration"] == 4)
    await stage.same("paused", *kinds)
    await stage.kubectl("rollout", "resume", "deployment/web")
    await stage.until("deployments/web", _rolled_out(4, 3))
    await stage.count("pods", 4)
    await stage.same("repaired", *kinds)


async def scaled_rollouts(stage: Stage) -> None:
    """A Deployment that is scaled in the middle of a rollout scales old and new Pods in proportion, paused or not."""
    kinds = ("deployments", "replicasets", "pods")
    bounds = {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    await stage.create("deployments", "web", deployment("web", 10, strategy=bounds))
    await stage.until("deployments/web", _rolled_out(10, 1))
    await stage.image("deployments/web", "example.com/nothing", outcome="waits")
    await stage.until("deployments/web", _half_way(5, 8))
    await stage.same("half way", *kinds)
    # Each wait is for the last state: two servers may agree on one on the way to it, and a pause would keep one there.
    for replicas, updated, old in ((15, 7, 11), (5, 5, 3)):
        await stage.scale("deployments/web", replicas)
        await stage.until("deployments/web", _half_way(updated, old))
        await stage.same(f"scaled to {replicas}", *kinds)
    await stage.kubectl("rollout", "pause", "deployment/web")
    await stage.scale("deployments/web", 8)
    await stage.until("deployments/web", _half_way(7, 4))
    await stage.same("scaled while paused", *kinds)
    await stage.kubectl("rollout", "resume", "deployment/web")
    await stage.kubectl("rollout", "undo", "deployment/web")
    await stage.until("deployments/web", _rolled_out(8, 3))
    await stage.count("pods", 8)
    await stage.same("rolled back", *kinds)


async def refused_pods(stage: Stage) -> None:
    """Pods that the server refuses are a condition of ReplicaSet and Deployment until a better template comes."""

    def failure(tree: dict[str, Any]) -> list[Any]:
        # without the message, which holds a generated name
        conditions = tree.get("status", {}).get("conditions", [])
        return [(each["status"], each["reason"]) for each in conditions if each["type"] == "ReplicaFailure"]

    body = deployment("web", 2)
    body["spec"]["template"]["metadata"]["finalizers"] = ["held"]
    await stage.create("deployments", "web", body)
    await stage.told("refused", failure(await stage.until("deployments/web", failure)))
    (replica_set,) = await stage.all("replicasets")
    await stage.told("refused ReplicaSet", failure(replica_set))
    await stage.patch("deployments/web", {"spec": {"template": {"metadata": {"finalizers": None}}}})
    await stage.until("deployments/web", lambda tree: _rolled_out(2, 2)(tree) and not failure(tree))
    await stage.same("repaired", "deployments", "replicasets", "pods")


async def recreated(stage: Stage) -> None:
    """With the strategy Recreate no old Pod runs beside a new one; a Pod that is deleted comes again."""
    kinds = ("deployments", "replicasets", "pods")
    await stage.create("deployments", "web", deployment("web", 2, strategy={"type": "Recreate"}))
    await stage.until("deployments/web", _rolled_out(2, 1))
    await stage.image("deployments/web", "example.com/web:2")
    await stage.until("deployments/web", _rolled_out(2, 2))
    await stage.same("recreated", *kinds)
    pods = await stage.count("pods", 2)
    lost = pods[0]["metadata"]
    await stage.delete(f"pods/{lost['name']}")
    await stage.gone(f"pods/{lost['name']}")
    await stage.until("deployments/web", _rolled_out(2, 2))
    await stage.count("pods", 2)
    await stage.same("replaced", *kinds)


async def adopted(stage: Stage) -> None:
    """Pods that fit a ReplicaSet are adopted, those that no longer do are let go; too many are deleted."""
    for name in ("one", "two"):
        await stage.create("pods", name, template("web"))
    body = {"spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template("web")}}
    await stage.create("replicasets", "web", body)
    await stage.until("replicasets/web", lambda tree: tree.get("status", {}).get("availableReplicas") == 2)
    await stage.same("adopted", "replicasets", "pods")
    await stage.patch("pods/one", {"metadata": {"labels": {"app": "elsewhere"}}})
    await stage.until("pods/one", lambda tree: "ownerReferences" not in tree["metadata"])
    await stage.count("pods", 3)
    await stage.until("replicasets/web", lambda tree: tree["status"].get("availableReplicas") == 2)
    await stage.same("let go", "replicasets", "pods")


async def replication_controllers(stage: Stage) -> None:
    """What ReplicaSets were before they were ReplicaSets."""
    await stage.create("replicationcontrollers", "old", {"spec": {"replicas": 1, "template": template("old")}})
    await stage.until("replicationcontrollers/old", lambda tree: tree["status"].get("availableReplicas") == 1)
    await stage.same("a ReplicationController", "replicationcontrollers", "pods", events=True)


async def jobs(stage: Stage) -> None:
    """Jobs complete, fail, wait while they are suspended, and go after their time."""
    kinds = ("jobs", "pods")
    await stage.create("jobs", "counts", job("counts", completions=4, parallelism=2))
    await stage.create("jobs", "indexed", job("indexed", completions=2, parallelism=2, completionMode="Indexed"))
    await stage.create("jobs", "fails", job("fails", "fails", backoffLimit=0))
    await stage.create("jobs", "waits", job("waits", suspend=True))
    await stage.create("jobs", "goes", job("goes", ttlSecondsAfterFinished=0))
    for name in ("counts", "indexed"):
        await stage.until(f"jobs/{name}", _condition("Complete"))
    await stage.until("jobs/fails", _condition("Failed"))
    await stage.until("jobs/waits", _condition("Suspended"))
    await stage.gone("jobs/goes")
    await stage.count("pods", 0, "app=goes")
    await stage.same("ended", *kinds, events=True)
    await stage.patch("jobs/waits", {"spec": {"suspend": False}})
    await stage.until("jobs/waits", _condition("Complete"))
    await stage.same("resumed", *kinds)
    await stage.delete("jobs/counts")
    await stage.gone("jobs/counts")
    await stage.count("pods", 0, "app=counts")
    await stage.same("deleted", *kinds)


async def troubled_jobs(stage: Stage) -> None:
    """Jobs that take too long, fail again, are suspended while they run, need fewer Pods, and lose their owner."""
    kinds = ("jobs", "pods")

    def running(number: int) -> Any:
        return lambda tree: [tree.get("status", {}).get(name) for name in ("active", "ready")] == [number] * 2

    await stage.create("jobs", "late", job("late", "", activeDeadlineSeconds=1))
    await stage.create("jobs", "again", job("again", "fails", backoffLimit=1))
    await stage.create("jobs", "queue", job("queue", parallelism=2))
    await stage.create("jobs", "runs", job("runs", "", completions=3, parallelism=3, backoffLimit=2))
    await stage.create("jobs", "indexes", job("indexes", "", completions=3, parallelism=2, completionMode="Indexed"))
    await stage.until("jobs/late", _condition("Failed"))
    await stage.until("jobs/queue", _condition("Complete"))
    await stage.until("jobs/runs", running(3))
    await stage.until("jobs/indexes", running(2))
    await stage.until("jobs/again", _condition("Failed"))
    await stage.same("late", *kinds)
    await stage.patch("jobs/runs", {"spec": {"suspend": True}})
    await stage.until("jobs/runs", _condition("Suspended"))
    await stage.count("pods", 0, "app=runs")
    await stage.same("suspended", *kinds)
    await stage.patch("jobs/runs", {"spec": {"suspend": False}})
    await stage.until("jobs/runs", running(3))
    await stage.patch("jobs/runs", {"spec": {"parallelism": 1}})
    await stage.until("jobs/runs", running(1))
    await stage.count("pods", 1, "app=runs")
    await stage.same("fewer", *kinds)
    await stage.delete("jobs/runs", "Orphan")
    await stage.gone("jobs/runs")
    await stage.delete("jobs/indexes", "Foreground")
    await stage.gone("jobs/indexes")
    await stage.delete("jobs/late", "Background")
    await stage.gone("jobs/late")
    await stage.count("pods", 0, "app=late")
    await stage.until("pods/" + (await stage.all("pods", "app=runs"))[0]["metadata"]["name"], _without_finalizers)
    await stage.same("deleted", *kinds)


def _without_finalizers(tree: dict[str, Any]) -> bool:
    return not tree["metadata"].get("finalizers")


async def cron_jobs(stage: Stage) -> None:
    """A CronJob makes up for the run that it missed, makes no more than it keeps, and lends its template."""
    body = {
        "spec": {
            "schedule": "0 * * * *",
            "suspend": True,
            "successfulJobsHistoryLimit": 1,
            "jobTemplate": job("nightly"),
        }
    }
    await stage.create("cronjobs", "nightly", body)
    # two hours ago: of what was missed, the last one is made up for
    last = {"status": {"lastScheduleTime": "2026-01-01T00:00:00Z"}}
    await stage.patch("cronjobs/nightly/status", last, how=MERGE)
    await stage.kubectl("create", "job", "by-hand", "--from=cronjob/nightly")
    await stage.until("jobs/by-hand", _condition("Complete"))
    await stage.same("by hand", "cronjobs", "jobs", "pods")
    await stage.patch("cronjobs/nightly", {"spec": {"suspend": False}})
    await stage.until("cronjobs/nightly", lambda tree: tree["status"].get("lastSuccessfulTime"))
    await stage.count("jobs", 1)
    await stage.same("on time", "cronjobs", "jobs", "pods", events=True)
    await stage.delete("cronjobs/nightly")
    await stage.gone("cronjobs/nightly")
    await stage.count("pods", 0)
    await stage.same("deleted", "cronjobs", "jobs", "pods")


async def stateful_sets(stage: Stage) -> None:
    """Pods of a StatefulSet come in order and go in the reverse one, keep their claims, and are updated down to a partition."""
    kinds = ("statefulsets", "controllerrevisions", "pods", "persistentvolumeclaims")

    def ready(replicas: int, updated: int) -> Any:
        def question(tree: dict[str, Any]) -> bool:
            status = tree.get("status", {})
            found = [status.get(name) for name in ("replicas", "readyReplicas", "updatedReplicas")]
            return (
                found == [replicas, replicas, updated]
                and status["observedGeneration"] == tree["metadata"]["generation"]
            )

        return question

    await stage.create("services", "db", {"spec": {"clusterIP": "None", "selector": {"app": "db"}}})
    await stage.create("statefulsets", "db", stateful_set("db"))
    await stage.until("statefulsets/db", ready(3, 3))
    pods = sorted(await stage.all("pods"), key=lambda each: int(each["metadata"]["resourceVersion"]))
    by_claim = sorted(await stage.all("persistentvolumeclaims"), key=lambda each: each["metadata"]["creationTimestamp"])
    assert len(pods) == len(by_claim) == 3
    await stage.told("the order in which Pods became ready", [each["metadata"]["name"] for each in pods])
    await stage.same("created", *kinds, events=True)
    update = {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}}
    await stage.patch("statefulsets/db", update)
    await stage.image("statefulsets/db", "example.com/db:2")
    await stage.until("statefulsets/db", ready(3, 1))
    await stage.same("updated down to a partition", *kinds)
    await stage.patch("statefulsets/db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    await stage.until("statefulsets/db", lambda tree: tree["status"].get("updatedReplicas", 3) == 3)
    await stage.until(
        "statefulsets/db", lambda tree: tree["status"].get("currentRevision") == tree["status"]["updateRevision"]
    )
    await stage.same("updated", *kinds)
    await stage.scale("statefulsets/db", 1)
    await stage.count("pods", 1)
    await stage.same("scaled down", *kinds)


async def stateful_set_policies(stage: Stage) -> None:
    """Parallel Pods, other ordinals, a Pod that never is ready, updates on deletion, and a template that comes back."""
    kinds = ("statefulsets", "controllerrevisions", "pods", "persistentvolumeclaims")

    def ready(replicas: int) -> Any:
        return lambda tree: (
            [tree.get("status", {}).get(name) for name in ("replicas", "availableReplicas")] == [replicas] * 2
            and tree["status"]["observedGeneration"] == tree["metadata"]["generation"]
        )

    body = stateful_set("db", 4, podManagementPolicy="Parallel", ordinals={"start": 3}, revisionHistoryLimit=1)
    await stage.create("statefulsets", "db", body)
    await stage.until("statefulsets/db", ready(4))
    await stage.same("in parallel", *kinds)
    await stage.patch("statefulsets/db", {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}})
    await stage.image("statefulsets/db", "example.com/web:2")
    await stage.until(
        "statefulsets/db", lambda tree: tree["status"]["updateRevision"] != tree["status"]["currentRevision"]
    )
    before = await stage.get("pods/db-4")
    assert before is not None
    await stage.delete("pods/db-4")
    await stage.until("pods/db-4", lambda tree: tree["metadata"]["uid"] != before["metadata"]["uid"])
    await stage.until("statefulsets/db", ready(4))
    await stage.same("one updated by hand", *kinds)
    await stage.image("statefulsets/db", "example.com/web:1")
    await stage.until("statefulsets/db", ready(4))
    await stage.same("the first template again", *kinds)
    rolling = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}}
    await stage.patch("statefulsets/db", {"spec": rolling})
    for number in (3, 4, 5):
        await stage.image("statefulsets/db", f"example.com/web:{number}")
        await stage.until(
            "statefulsets/db",
            lambda tree: (
                ready(4)(tree) and tree["status"].get("updatedReplicas") == tree["status"].get("currentReplicas") == 4
            ),
        )
    await stage.count("controllerrevisions", 2)
    await stage.same("history is cut", *kinds)
    await stage.create("statefulsets", "stuck", stateful_set("stuck", 2, volumeClaimTemplates=[]))
    await stage.until("statefulsets/stuck", ready(2))
    await stage.image("statefulsets/stuck", "example.com/nothing", outcome="waits")
    await stage.until("statefulsets/stuck", lambda tree: tree["status"].get("updatedReplicas") == 1)
    await stage.same("stuck", *kinds)
    await stage.delete("statefulsets/stuck", "Foreground")
    await stage.gone("statefulsets/stuck")
    await stage.delete("statefulsets/db", "Orphan")
    await stage.gone("statefulsets/db")
    await stage.same("orphans", *kinds)
    await stage.create("statefulsets", "db", {**body, "spec": {**body["spec"], "replicas": 2}})
    await stage.until("statefulsets/db", ready(2))
    await stage.count("pods", 2)
    await stage.same("adopted", *kinds)


async def retained_claims(stage: Stage) -> None:
    """Claims go with a Pod that is scaled away or with the StatefulSet, if the retention policy says so."""
    kinds = ("statefulsets", "pods", "persistentvolumeclaims")

    def ready(replicas: int) -> Any:
        return lambda tree: (
            [tree.get("status", {}).get(name) for name in ("replicas", "availableReplicas")] == [replicas] * 2
        )

    policy = {"whenScaled": "Delete", "whenDeleted": "Delete"}
    await stage.create("statefulsets", "db", stateful_set("db", 3, persistentVolumeClaimRetentionPolicy=policy))
    await stage.until("statefulsets/db", ready(3))
    await stage.same("created", *kinds)
    await stage.scale("statefulsets/db", 1)
    await stage.count("pods", 1)
    await stage.count("persistentvolumeclaims", 1)
    await stage.same("scaled down", *kinds)
    await stage.scale("statefulsets/db", 2)
    await stage.until("statefulsets/db", ready(2))
    await stage.patch("statefulsets/db", {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Retain"}}})
    await stage.scale("statefulsets/db", 1)
    await stage.count("pods", 1)
    await stage.same("retained", *kinds)
    await stage.delete("statefulsets/db")
    await stage.count("persistentvolumeclaims", 0)
    await stage.same("deleted", *kinds)


async def daemon_sets(stage: Stage) -> None:
    """A DaemonSet has a Pod on every node that fits, which is updated, and goes when the node fits no longer."""
    kinds = ("daemonsets", "controllerrevisions", "pods")

    def running(number: int) -> Any:
        names = ("desiredNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")
        return lambda tree: (
            [tree.get("status", {}).get(name, 0) for name in names] == [number] * 4
            and tree.get("status", {}).get("observedGeneration") == tree["metadata"]["generation"]
        )

    async def label(node: str, value: str | None) -> None:
        # a label of its own: nodes are in no namespace
        body = {"metadata": {"labels": {stage.namespace: value}}}
        await stage.api.made("PATCH", f"/api/v1/nodes/{node}", body, content_type=MERGE)

    pod = template("agent")
    pod["spec"] |= {"nodeSelector": {stage.namespace: "yes"}, "tolerations": [{"operator": "Exists"}]}
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": pod, "revisionHistoryLimit": 1}
    await stage.create("daemonsets", "agent", {"spec": spec})
    await stage.until("daemonsets/agent", running(0))
    await stage.same("nowhere", *kinds)
    await label("pod-runner", "yes")
    await stage.until("daemonsets/agent", running(1))
    await stage.same("on a node", *kinds, events=True)
    await stage.image("daemonsets/agent", "example.com/web:2")
    await stage.until("daemonsets/agent", running(1))
    await stage.same("updated", *kinds)
    await stage.kubectl("rollout", "undo", "daemonset/agent")
    await stage.until("daemonsets/agent", running(1))
    await stage.same("undone", *kinds)
    await stage.patch("daemonsets/agent", {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}})
    await stage.image("daemonsets/agent", "example.com/web:3")
    await stage.until("daemonsets/agent", lambda tree: not tree["status"].get("updatedNumberScheduled"))
    await stage.same("not updated", *kinds)
    surge = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await stage.patch("daemonsets/agent", {"spec": {"updateStrategy": surge}})
    await stage.until("daemonsets/agent", running(1))
    await stage.count("pods", 1)
    await stage.image("daemonsets/agent", "example.com/web:4")
    await stage.until("daemonsets/agent", running(1))
    await stage.count("pods", 1)
    await stage.same("with a surge", *kinds)
    other = f"{stage.namespace}-other"
    await stage.api.made("POST", "/api/v1/nodes", {"metadata": {"name": other, "labels": {stage.namespace: "yes"}}})
    await stage.until("daemonsets/agent", lambda tree: tree["status"]["currentNumberScheduled"] == 2)
    await stage.same("a node without a kubelet", *kinds)
    await stage.api.made("DELETE", f"/api/v1/nodes/{other}")
    await label("pod-runner", None)
    await stage.count("pods", 0)
    await stage.until("daemonsets/agent", running(0))
    await stage.same("nowhere again", *kinds)
