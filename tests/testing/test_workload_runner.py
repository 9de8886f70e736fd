"""Deployments that become available on the control plane of a test, and stay right when they are disturbed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman import Client, MergePatch, ObjectMeta
from steersman.apiserver import Attributes
from steersman.kinds.apps_v1 import (
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    RollingUpdateDeployment,
)
from steersman.kinds.core_v1 import Container, Pod, PodSpec, PodTemplateSpec
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import controller_of, find_condition, is_true
from steersman.testing import PodOutcome, PodRunning, PodWaiting, WorkloadRunner, eventually

MANAGER = "kube-controller-manager"


class Room:
    """Admits so many Pods, as a quota does."""

    pods = 1000

    async def __call__(self, attributes: Attributes) -> None:
        if attributes.operation == "CREATE" and attributes.definition.gvk.kind == "Pod" and not attributes.subresource:
            if self.pods <= 0:
                raise attributes.refused("there is no room")
            self.pods -= 1


@pytest.fixture
def room() -> Room:
    return Room()


@pytest.fixture
def control_plane_options(room: Room) -> dict[str, Any]:
    return {"admission": [room]}


def template(app: str, image: str = "web:1", **labels: str) -> PodTemplateSpec:
    return PodTemplateSpec(
        metadata=ObjectMeta(labels={"app": app, **labels}),
        spec=PodSpec(containers=[Container(name="web", image=image)]),
    )


def deployment(name: str = "web", replicas: int = 3, **more: Any) -> Deployment:
    selector = LabelSelector(match_labels={"app": name})
    spec = DeploymentSpec(replicas=replicas, selector=selector, template=template(name), **more)
    return Deployment(metadata=ObjectMeta(name=name), spec=spec)


def replica_set(name: str, replicas: int, app: str, **labels: str) -> ReplicaSet:
    selector = LabelSelector(match_labels={"app": app})
    spec = ReplicaSetSpec(replicas=replicas, selector=selector, template=template(app, **labels))
    return ReplicaSet(metadata=ObjectMeta(name=name), spec=spec)


def image(name: str) -> MergePatch:
    return MergePatch({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": name}]}}}})


async def complete(client: Client, image: str = "web:1", replicas: int = 3) -> Deployment:
    """The Deployment, when all its Pods are available, of this image, and all that there are."""

    def is_complete(web: Deployment) -> bool:
        status = web.status
        return (
            status is not None
            and status.observed_generation == web.metadata.generation
            and status.updated_replicas == status.available_replicas == status.replicas == replicas
        )

    found = await eventually(client, Deployment, "web", is_complete, within=30)
    assert found.spec.template.spec.containers[0].image == image
    return found


async def images(client: Client) -> list[str | None]:
    return sorted(
        pod.spec.containers[0].image or "" for pod in await client.list(Pod) if pod.metadata.deletion_timestamp is None
    )


async def test_a_world_that_is_as_it_should_be_is_not_written_to(control_plane) -> None:
    """A controller that writes for ever hides what the operator under test writes, and never lets a test drain."""
    client = control_plane.client
    async with WorkloadRunner(client):
        await client.create(deployment())
        await complete(client)
        await client.patch(Deployment, "web", image("web:2"))
        await complete(client, "web:2")
        await control_plane.drained()
        with control_plane.writes() as writes:
            await client.patch(Deployment, "web", MergePatch({"metadata": {"labels": {"team": "web"}}}))
            await control_plane.drained()
        assert writes.by(MANAGER) == []
    with control_plane.writes() as writes:
        async with WorkloadRunner(client):
            await control_plane.drained()
    assert [write for write in writes if write.kind != "Node"] == []


async def test_the_last_of_fifty_changes_wins(control_plane) -> None:
    """Quick changes must not leave Pods of an old template behind, nor more history than the limit."""
    client = control_plane.client
    async with WorkloadRunner(client):
        await client.create(deployment(revision_history_limit=3))
        for number in range(50):
            await client.patch(Deployment, "web", image(f"web:{number}"))
        await complete(client, "web:49")
        await control_plane.drained(within=30)
        assert await images(client) == ["web:49"] * 3
        sets = await client.list(ReplicaSet)
        assert len(sets.items) <= 4
        revisions = [int((each.metadata.annotations or {})["deployment.kubernetes.io/revision"]) for each in sets]
        newest = max(sets, key=lambda each: each.spec.replicas or 0)
        assert int((newest.metadata.annotations or {})["deployment.kubernetes.io/revision"]) == max(revisions)


async def test_pods_never_leave_the_bounds_of_a_rolling_update(control_plane) -> None:
    """What a rollout promises about availability must hold at every moment, as far as a watcher can see."""
    client, most, least = control_plane.client, 0, 9
    async with WorkloadRunner(client, delay=0.05):
        bounds = RollingUpdateDeployment(max_surge=2, max_unavailable=1)
        await client.create(deployment(replicas=5, strategy=DeploymentStrategy(rolling_update=bounds)))
        await complete(client, replicas=5)
        await client.patch(Deployment, "web", image("web:2"))
        while True:
            pods = (await client.list(Pod)).items
            alive = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
            # of the Pods themselves, old ones may go later than new ones come
            most = max(most, sum(each.spec.replicas or 0 for each in await client.list(ReplicaSet)))
            least = min(least, sum(pod.status is not None and is_true(pod.status.conditions, "Ready") for pod in alive))
            if [pod.spec.containers[0].image for pod in alive] == ["web:2"] * 5:
                break
            await asyncio.sleep(0)
    assert most <= 7
    assert least >= 4


async def test_replica_sets_with_the_same_selector_leave_each_others_pods_alone(control_plane) -> None:
    client = control_plane.client
    async with WorkloadRunner(client):
        await client.create(replica_set("one", 2, "same"))
        await client.create(replica_set("two", 3, "same"))
        for name, number in (("one", 2), ("two", 3)):
            await eventually(client, ReplicaSet, name, has={"status": {"availableReplicas": number}})
        await control_plane.drained()
        owners = sorted(owner.name for pod in await client.list(Pod) if (owner := controller_of(pod)) is not None)
        assert owners == ["one", "one", "two", "two", "two"]


async def test_pods_that_are_deleted_during_a_rollout_come_again(control_plane) -> None:
    client = control_plane.client
    async with WorkloadRunner(client, delay=0.02):
        await client.create(deployment(replicas=4))
        await complete(client, replicas=4)
        await client.patch(Deployment, "web", image("web:2"))
        for _ in range(10):
            pods = (await client.list(Pod)).items
            await client.delete(pods[0], missing_ok=True)
        await complete(client, "web:2", replicas=4)
        await control_plane.drained()
        assert await images(client) == ["web:2"] * 4


async def test_a_rollout_goes_on_where_another_runner_left_it(control_plane) -> None:
    client, broken = control_plane.client, True

    def outcome(pod: Pod) -> PodOutcome:
        return PodWaiting("ImagePullBackOff") if broken and pod.spec.containers[0].image == "web:2" else PodRunning()

    async with WorkloadRunner(client, outcome=outcome):
        await client.create(deployment())
        await complete(client)
        await client.patch(Deployment, "web", image("web:2"))
        await eventually(client, Deployment, "web", has={"status": {"updatedReplicas": 1, "unavailableReplicas": 1}})
    broken = False
    with control_plane.writes() as writes:
        async with WorkloadRunner(client, outcome=outcome):
            await complete(client, "web:2")
            await control_plane.drained()
    assert await images(client) == ["web:2"] * 3
    assert len([write for write in writes.of(ReplicaSet) if write.verb == "create"]) == 0


async def test_skipped_time_makes_a_stuck_rollout_late(control_plane, clock) -> None:
    """The deadline of a rollout is tested without waiting for it."""
    client = control_plane.client
    async with WorkloadRunner(client, outcome=lambda _: PodWaiting("ImagePullBackOff")):
        await client.create(deployment(progress_deadline_seconds=600))
        await control_plane.drained()
        await clock.advance(601)
        web = await client.get(Deployment, "web")
        assert web.status is not None
        condition = find_condition(web.status.conditions, "Progressing")
        assert condition is not None
        assert (condition.status, condition.reason) == ("False", "ProgressDeadlineExceeded")


async def test_a_pod_is_available_after_its_time(control_plane, clock) -> None:
    client = control_plane.client
    async with WorkloadRunner(client):
        await client.create(deployment(min_ready_seconds=300))
        await control_plane.drained()
        found = await client.get(Deployment, "web")
        assert found.status is not None
        assert (found.status.ready_replicas, found.status.available_replicas) == (3, None)
        await clock.advance(301)
        assert (await complete(client)).status is not None


async def test_the_runner_stays_in_its_namespaces(control_plane) -> None:
    client, far = control_plane.client, await control_plane.create_namespace(f"{control_plane.namespace}-far")
    async with WorkloadRunner(client, namespaces=(control_plane.namespace,)):
        other = deployment()
        other.metadata.namespace = far
        await client.create(other)
        await client.create(deployment())
        await complete(client)
        await control_plane.drained()
    assert not (await client.list(ReplicaSet, namespace=far)).items


async def test_refused_pods_are_said_and_tried_again(control_plane, room) -> None:
    """A quota is not asked a thousand times, its words are where people look, and the rest comes when there is room."""
    client = control_plane.client
    async with WorkloadRunner(client):
        with control_plane.writes() as writes:
            room.pods = 2
            await client.create(deployment(replicas=20))
            said = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
            found = await eventually(client, Deployment, "web", has={"status": {"conditions": [said], "replicas": 2}})
            await control_plane.drained()
        refused = [write for write in writes.of(Pod) if write.status == 403]
        assert 0 < len(refused) < 15
        assert found.status is not None
        condition = find_condition(found.status.conditions, "ReplicaFailure")
        assert condition is not None
        assert "there is no room" in (condition.message or "")
        room.pods = 20
        done = await complete(client, replicas=20)
        assert done.status is not None
        assert find_condition(done.status.conditions, "ReplicaFailure") is None
