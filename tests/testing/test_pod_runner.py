"""Rollouts, Jobs and deletions that complete though the engine has no nodes: Kubernetes' own controllers judge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime

import pytest

from steersman import Client, MergePatch, ObjectMeta
from steersman.errors import NotFound
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec, ReplicaSet
from steersman.kinds.batch_v1 import Job, JobSpec
from steersman.kinds.core_v1 import Container, Pod, PodSpec, PodTemplateSpec
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import find_condition, is_true
from steersman.testing import Engine, PodFailed, PodOutcome, PodRunner, PodRunning, PodSucceeded, PodWaiting, eventually
from steersman.testing.pods.status import observe


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """An engine whose Deployments and Jobs have Pods."""
    with Engine.start(controller_manager=True) as engine:
        yield engine


@pytest.fixture
async def client(engine: Engine, namespace: str) -> AsyncIterator[Client]:
    async with engine.client(field_manager="tests", namespace=namespace) as client:
        yield client


def deployment(replicas: int = 3, image: str = "web:1") -> Deployment:
    labels = {"app": "web"}
    return Deployment(
        metadata=ObjectMeta(name="web"),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="web", image=image)])
            ),
        ),
    )


def job() -> Job:
    pod = PodSpec(containers=[Container(name="work", image="work:1")], restart_policy="Never")
    return Job(
        metadata=ObjectMeta(name="work"),
        spec=JobSpec(completions=2, parallelism=2, backoff_limit=0, template=PodTemplateSpec(spec=pod)),
    )


async def until(question: Callable[[], Awaitable[bool]]) -> None:
    """Ask the server until it says yes."""
    async with asyncio.timeout(30):
        while not await question():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def available(client: Client, image: str = "web:1") -> Callable[[], Awaitable[bool]]:
    async def ask() -> bool:
        web = await client.get(Deployment, "web")
        status = web.status
        return (
            status is not None
            and status.observed_generation == web.metadata.generation
            and web.spec.template.spec.containers[0].image == image
            and status.updated_replicas == status.available_replicas == status.replicas == web.spec.replicas
            and is_true(status.conditions, "Available")
        )

    return ask


async def gone(client: Client, kind: type[Pod | ReplicaSet | Job], namespace: str) -> None:
    async def ask() -> bool:
        return not (await client.list(kind, namespace=namespace)).items

    await until(ask)


async def test_a_deployment_rolls_out_and_is_deleted(client: Client, namespace: str) -> None:
    """The user sees what a cluster would show: available, updated to the last Pod, gone with its Pods."""
    async with PodRunner(client, namespaces=(namespace,)):
        await client.create(deployment())
        await until(available(client))
        for pod in await client.list(Pod, namespace=namespace):
            assert pod.spec.node_name == "pod-runner"
            assert pod.status is not None
            assert pod.status.phase == "Running"
            assert pod.status.start_time is not None
            assert pod.status.pod_ip
            assert is_true(pod.status.conditions, "PodScheduled")
            assert is_true(pod.status.conditions, "Ready")
            assert [(each.name, each.image, each.ready) for each in pod.status.container_statuses or ()] == [
                ("web", "web:1", True)
            ]

        image = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}}
        await client.patch(Deployment, "web", MergePatch(image))
        await until(available(client, "web:2"))

        await client.delete(Deployment, "web")
        await gone(client, Pod, namespace)
        await gone(client, ReplicaSet, namespace)


async def test_an_image_that_cannot_be_pulled_keeps_a_deployment_unavailable(client: Client, namespace: str) -> None:
    broken = True

    def outcome(pod: Pod) -> PodOutcome:
        return PodWaiting("ImagePullBackOff", "no such image") if broken else PodRunning()

    async def waiting() -> bool:
        pods = await client.list(Pod, namespace=namespace)
        states = [each.state for pod in pods if pod.status for each in pod.status.container_statuses or ()]
        return [state.waiting.reason for state in states if state and state.waiting] == ["ImagePullBackOff"] * 3

    async with PodRunner(client, outcome=outcome, namespaces=(namespace,)) as runner:
        await client.create(deployment())
        await until(waiting)
        web = await client.get(Deployment, "web")
        assert web.status is not None
        assert not is_true(web.status.conditions, "Available")
        assert {pod.status.phase for pod in await client.list(Pod, namespace=namespace) if pod.status} == {"Pending"}

        broken = False
        runner.look_again()
        await until(available(client))


async def test_a_job_completes(client: Client, namespace: str) -> None:
    async def complete() -> bool:
        found = await client.get(Job, "work")
        return found.status is not None and is_true(found.status.conditions, "Complete")

    async with PodRunner(client, outcome=lambda _: PodSucceeded(), namespaces=(namespace,)):
        await client.create(job())
        await until(complete)
        status = (await client.get(Job, "work")).status
        assert status is not None
        assert status.succeeded == 2


async def test_a_job_fails(client: Client, namespace: str) -> None:
    async def failed() -> bool:
        found = await client.get(Job, "work")
        return found.status is not None and is_true(found.status.conditions, "Failed")

    async with PodRunner(client, outcome=lambda _: PodFailed("OOMKilled", 137), namespaces=(namespace,)):
        await client.create(job())
        await until(failed)
        status = (await client.get(Job, "work")).status
        assert status is not None
        condition = find_condition(status.conditions, "Failed")
        assert condition is not None
        assert condition.reason == "BackoffLimitExceeded"


async def test_a_job_is_deleted_while_it_runs(client: Client, namespace: str) -> None:
    """Its Pods have the Job's finalizer: the remover has to say that they ended."""

    async def running() -> bool:
        status = (await client.get(Job, "work")).status
        return status is not None and status.ready == 2

    async with PodRunner(client, namespaces=(namespace,)):
        await client.create(job())
        await until(running)
        await client.delete(Job, "work", propagation="Foreground")
        await gone(client, Job, namespace)
        assert not (await client.list(Pod, namespace=namespace)).items


async def test_a_delay_is_spent_creating_containers(client: Client, namespace: str) -> None:
    seen: list[str] = []
    async with asyncio.timeout(30), PodRunner(client, delay=0.3, namespaces=(namespace,)):
        began = asyncio.get_running_loop().time()
        async with client.watch(Pod, namespace=namespace, initial_events=True) as events:
            template = deployment().spec.template
            await client.create(Pod(metadata=ObjectMeta(name="one"), spec=template.spec))
            async for event in events:
                pod = getattr(event, "object", None)
                state = pod.status.container_statuses[0].state if pod and pod.status.container_statuses else None
                if state is not None:
                    seen.append(state.waiting.reason if state.waiting else "running")
                if state is not None and state.running:
                    break
        assert asyncio.get_running_loop().time() - began >= 0.3
    assert seen == ["ContainerCreating", "running"]


async def test_a_deleted_pod_takes_its_time_to_end(client: Client, namespace: str) -> None:
    async def is_gone() -> bool:
        try:
            await client.get(Pod, "one")
        except NotFound:
            return True
        return False

    async def has_begun() -> bool:
        status = (await client.get(Pod, "one")).status
        return status is not None and status.phase == "Running"

    async with asyncio.timeout(30), PodRunner(client, stop_delay=0.3, namespaces=(namespace,)):
        await client.create(Pod(metadata=ObjectMeta(name="one"), spec=deployment().spec.template.spec))
        await until(has_begun)
        began = asyncio.get_running_loop().time()
        await client.delete(Pod, "one", grace_period_seconds=30)
        await until(is_gone)
        assert asyncio.get_running_loop().time() - began >= 0.3


async def test_a_pod_with_a_grace_period_goes_at_once_and_those_of_other_nodes_are_left_alone(
    client: Client, namespace: str
) -> None:
    async def settled() -> bool:
        mine = await client.get(Pod, "mine")
        return mine.status is not None and mine.status.phase == "Running"

    async def deleted() -> bool:
        try:
            await client.get(Pod, "mine")
        except NotFound:
            return True
        return False

    spec = {"containers": [Container(name="web", image="web:1")], "termination_grace_period_seconds": 600}
    async with PodRunner(client, namespaces=(namespace,)):
        await client.create(Pod(metadata=ObjectMeta(name="other"), spec=PodSpec(**spec, node_name="elsewhere")))
        await client.create(Pod(metadata=ObjectMeta(name="mine"), spec=PodSpec(**spec)))
        await until(settled)
        await client.delete(Pod, "mine")
        await client.delete(Pod, "other")
        await until(deleted)
    other = await client.get(Pod, "other")
    assert other.status is not None
    assert other.status.phase == "Pending"
    assert other.metadata.deletion_timestamp is not None


async def test_a_pod_that_runs_is_not_written_to_again(control_plane) -> None:
    """Writes that change nothing would count as work of the operator under test, and wake everything that watches Pods."""
    client = control_plane.client
    with control_plane.writes() as writes:
        async with PodRunner(client) as runner:
            spec = PodSpec(containers=[Container(name="web", image="web:1")])
            await client.create(Pod(metadata=ObjectMeta(name="web"), spec=spec))
            await eventually(client, Pod, "web", has={"status": {"phase": "Running"}})
            await control_plane.drained()
            runner.look_again()
            await control_plane.drained()
    assert [(write.verb, write.subresource) for write in writes.of(Pod)] == [("create", ""), ("update", "status")]


@pytest.mark.parametrize(
    ("policy", "outcome", "phase", "reason"),
    [
        ("Always", PodRunning(), "Running", "running"),
        ("Always", PodSucceeded(), "Running", "CrashLoopBackOff"),
        ("OnFailure", PodSucceeded(), "Succeeded", "Completed"),
        ("OnFailure", PodFailed(), "Running", "CrashLoopBackOff"),
        ("Never", PodFailed("OOMKilled", 137), "Failed", "OOMKilled"),
        ("Never", PodWaiting("ErrImagePull"), "Pending", "ErrImagePull"),
    ],
)
def test_phase_and_containers_agree_and_saying_it_again_changes_nothing(
    policy: str, outcome: PodOutcome, phase: str, reason: str
) -> None:
    containers, first = [Container(name="web", image="web:1")], [Container(name="first", image="first:1")]
    pod = Pod(
        metadata=ObjectMeta(name="web", uid="12345678-0000-0000-0000-000000000000"),
        spec=PodSpec(containers=containers, init_containers=first, restart_policy=policy),
    )
    pod.status = observe(pod, outcome, datetime(2030, 1, 1, tzinfo=UTC))
    assert pod.status.phase == phase
    (state,) = [each.state for each in pod.status.container_statuses or () if each.state is not None]
    told = state.waiting or state.terminated
    assert (told.reason if told else "running") == reason
    assert is_true(pod.status.conditions, "Ready") == isinstance(outcome, PodRunning)
    assert observe(pod, outcome, datetime(2031, 1, 1, tzinfo=UTC)) == pod.status


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="non-zero exit code"):
        PodFailed("Completed", 0)
