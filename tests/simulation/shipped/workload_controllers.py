"""The controllers of `WorkloadRunner` as the program that faults happen to, with a kubelet beside them.

The image of a container says what becomes of its Pod: ``ends:1`` succeeds, ``fails:1`` fails, and any other one runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from simulation.shipped.shipped_program import NO_MEDDLING, ShippedProgram

from steersman import Client, Manager, MergePatch, ObjectMeta, Quantity
from steersman.kinds.apps_v1 import (
    DaemonSet,
    DaemonSetSpec,
    Deployment,
    DeploymentSpec,
    StatefulSet,
    StatefulSetSpec,
)
from steersman.kinds.batch_v1 import Job, JobSpec
from steersman.kinds.core_v1 import (
    Container,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Pod,
    PodSpec,
    PodTemplateSpec,
    VolumeResourceRequirements,
)
from steersman.kinds.meta_v1 import LabelSelector
from steersman.simulation import Scenario, ScenarioUser
from steersman.simulation.scenario import Workload
from steersman.testing import PodFailed, PodOutcome, PodRunner, PodRunning, PodSucceeded
from steersman.testing.workload_controllers import workload_manager
from steersman.testing.workload_controllers.own_node import OwnNode

_NODE = "pod-runner"
_OUTCOMES: dict[str, PodOutcome] = {"ends:1": PodSucceeded(), "fails:1": PodFailed("Error", 1)}


def controllers() -> Manager:
    return workload_manager(OwnNode(_NODE))


def kubelet(client: Client) -> PodRunner:
    return PodRunner(client, outcome=outcome, node=_NODE)


def disturbed_kubelet() -> Manager:
    """What a PodRunner does, in a process that can crash."""
    runner = PodRunner(cast("Client", None), outcome=outcome, delay=3.0, stop_delay=3.0, node=_NODE)
    manager = Manager(name="kubelet", leader=None)
    manager.controller(Pod).run_with(runner._reconcile)
    return manager


def outcome(pod: Pod) -> PodOutcome:
    return _OUTCOMES.get(pod.spec.containers[0].image or "", PodRunning())


def _template(app: str, image: str = "web:1", **more: Any) -> PodTemplateSpec:
    spec = PodSpec(containers=[Container(name="main", image=image)], **more)
    return PodTemplateSpec(metadata=ObjectMeta(labels={"app": app}), spec=spec)


def _image(image: str) -> MergePatch:
    return MergePatch({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})


async def _some_pod(user: ScenarioUser, app: str) -> Pod:
    pods = await user.client.list(Pod, labels={"app": app})
    return min(pods, key=lambda pod: pod.key.name)


async def pods(user: ScenarioUser) -> None:
    """Pods run, succeed and fail, and are deleted."""
    client = user.client
    for name, image in {"runs": "web:1", "ends": "ends:1", "fails": "fails:1"}.items():
        spec = PodSpec(containers=[Container(name="main", image=image)], restart_policy="Never")
        await client.create(Pod(metadata=ObjectMeta(name=name), spec=spec))
    await user.settled()
    for name in ("runs", "ends", "fails"):
        await client.delete(Pod, f"default/{name}")
    await user.settled()


async def deployments(user: ScenarioUser) -> None:
    """A Deployment is scaled, updated, loses a Pod, goes back, and is deleted."""
    client, name = user.client, "default/web"
    selector = LabelSelector(match_labels={"app": "web"})
    spec = DeploymentSpec(replicas=2, selector=selector, template=_template("web"))
    await client.create(Deployment(metadata=ObjectMeta(name="web"), spec=spec))
    await user.settled()
    await client.patch(Deployment, name, MergePatch({"spec": {"replicas": 3}}))
    await user.settled()
    await client.patch(Deployment, name, _image("web:2"))
    await user.settled()
    await client.delete(await _some_pod(user, "web"))
    await user.settled()
    await client.patch(Deployment, name, _image("web:1"))
    await client.patch(Deployment, name, MergePatch({"spec": {"replicas": 1}}))
    await user.settled()
    await client.delete(Deployment, name)
    await user.settled()


async def stateful_sets(user: ScenarioUser) -> None:
    """A StatefulSet with claims is scaled, updated, loses a Pod, and is deleted."""
    client, name = user.client, "default/db"
    storage = VolumeResourceRequirements(requests={"storage": Quantity("1Gi")})
    claim = PersistentVolumeClaim(
        metadata=ObjectMeta(name="data"),
        spec=PersistentVolumeClaimSpec(access_modes=["ReadWriteOnce"], resources=storage),
    )
    spec = StatefulSetSpec(
        replicas=2,
        service_name="db",
        selector=LabelSelector(match_labels={"app": "db"}),
        template=_template("db"),
        volume_claim_templates=[claim],
    )
    await client.create(StatefulSet(metadata=ObjectMeta(name="db"), spec=spec))
    await user.settled()
    await client.patch(StatefulSet, name, _image("db:2"))
    await user.settled()
    await client.delete(Pod, "default/db-0")
    await user.settled()
    await client.patch(StatefulSet, name, MergePatch({"spec": {"replicas": 1}}))
    await user.settled()
    await client.delete(StatefulSet, name)
    await user.settled()


async def daemon_sets(user: ScenarioUser) -> None:
    """A DaemonSet is updated, loses its Pod, and is deleted."""
    client, name = user.client, "default/log"
    selector = LabelSelector(match_labels={"app": "log"})
    spec = DaemonSetSpec(selector=selector, template=_template("log"))
    await client.create(DaemonSet(metadata=ObjectMeta(name="log"), spec=spec))
    await user.settled()
    await client.patch(DaemonSet, name, _image("log:2"))
    await user.settled()
    await client.delete(await _some_pod(user, "log"))
    await user.settled()
    await client.delete(DaemonSet, name)
    await user.settled()


def _job(name: str, image: str, **more: Any) -> Job:
    return Job(
        metadata=ObjectMeta(name=name), spec=JobSpec(template=_template(name, image, restart_policy="Never"), **more)
    )


async def jobs(user: ScenarioUser) -> None:
    """Jobs complete, fail for good, run until they are suspended, and go after their time."""
    client = user.client
    await client.create(_job("good", "ends:1", completions=2, parallelism=2))
    await client.create(_job("short", "ends:1", ttl_seconds_after_finished=300))
    await user.settled()
    await client.create(_job("bad", "fails:1", backoff_limit=1))
    await user.settled()
    await client.create(_job("long", "web:1"))
    await user.settled()
    await client.patch(Job, "default/long", MergePatch({"spec": {"suspend": True}}))
    await user.settled()
    await user.sleep(600)
    for name in ("good", "bad", "long"):
        await client.delete(Job, f"default/{name}", propagation="Background")
    await user.settled()


def _program(workload: Workload) -> ShippedProgram:
    async def with_node(user: ScenarioUser) -> None:
        await OwnNode(_NODE).make(user.client)
        await workload(user)

    scenario = Scenario(controllers, with_node, beside={"kubelet": kubelet}, name="workload controllers")
    return ShippedProgram(scenario=scenario, faults=NO_MEDDLING)


WORKLOADS: dict[str, Callable[[], ShippedProgram]] = {
    "workloads: Pod": lambda: ShippedProgram(scenario=Scenario(disturbed_kubelet, pods, name="kubelet")),
    "workloads: Deployment": lambda: _program(deployments),
    "workloads: StatefulSet": lambda: _program(stateful_sets),
    "workloads: DaemonSet": lambda: _program(daemon_sets),
    "workloads: Job": lambda: _program(jobs),
}
