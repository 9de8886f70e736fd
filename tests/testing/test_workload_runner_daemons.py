"""DaemonSets on the control plane of a test: a Pod for each node that fits."""

from __future__ import annotations

from typing import Any

from steersman import Client, MergePatch, ObjectMeta
from steersman.kinds.apps_v1 import ControllerRevision, DaemonSet, DaemonSetSpec
from steersman.kinds.core_v1 import Container, Node, NodeSpec, Pod, PodSpec, PodTemplateSpec, Taint
from steersman.kinds.meta_v1 import LabelSelector
from steersman.testing import PodRunner, WorkloadRunner, eventually


def daemon_set(**pod: Any) -> DaemonSet:
    labels = {"app": "agent"}
    spec = PodSpec(containers=[Container(name="agent", image="agent:1")], **pod)
    return DaemonSet(
        metadata=ObjectMeta(name="agent"),
        spec=DaemonSetSpec(
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=spec),
        ),
    )


async def create_node(client: Client, name: str, *taints: Taint, **labels: str) -> None:
    """Create a node that is ready: the server taints a new one until a controller says that it is."""
    node = await client.create(Node(metadata=ObjectMeta(name=name, labels=labels)))
    node.spec = NodeSpec(taints=list(taints))
    await client.update(node)


def image(name: str) -> MergePatch:
    return MergePatch({"spec": {"template": {"spec": {"containers": [{"name": "agent", "image": name}]}}}})


def running(number: int) -> dict[str, Any]:
    return {"status": {"desiredNumberScheduled": number, "numberReady": number}}


async def test_the_node_of_the_runner_has_its_pod_and_goes_with_the_runner(control_plane) -> None:
    client = control_plane.client
    async with WorkloadRunner(client, node="worker"):
        assert [each.key.name for each in await client.list(Node)] == ["worker"]
        await client.create(daemon_set())
        await eventually(client, DaemonSet, "agent", has=running(1))
        (pod,) = await client.list(Pod)
        assert pod.spec.node_name == "worker"
        await client.delete(DaemonSet, "agent")
        await control_plane.drained()
    assert not (await client.list(Node)).items


async def test_nodes_come_and_go(control_plane) -> None:
    """An operator that watches where its agents run sees what a cluster would show it."""
    client = control_plane.client
    async with WorkloadRunner(client, node="one"), PodRunner(client, node="two"):
        await client.create(daemon_set(node_selector={"disk": "fast"}))
        await eventually(client, DaemonSet, "agent", lambda agent: agent.status and agent.status.observed_generation)
        await create_node(client, "two", disk="fast")
        await create_node(client, "three", Taint(key="kept", value="free", effect="NoSchedule"), disk="fast")
        await eventually(client, DaemonSet, "agent", has=running(1))
        await client.patch(Node, "one", MergePatch({"metadata": {"labels": {"disk": "fast"}}}))
        await eventually(client, DaemonSet, "agent", has=running(2))
        assert sorted(pod.spec.node_name or "" for pod in await client.list(Pod)) == ["one", "two"]
        taint = {"key": "kept", "value": "free", "effect": "NoExecute"}
        await client.patch(Node, "two", MergePatch({"spec": {"taints": [taint]}}))
        await eventually(client, DaemonSet, "agent", has=running(1))
        await control_plane.drained()
        assert [pod.spec.node_name for pod in await client.list(Pod)] == ["one"]


async def test_the_last_template_wins_and_then_nothing_is_written(control_plane) -> None:
    client = control_plane.client
    async with WorkloadRunner(client, node="one"), PodRunner(client, node="two"):
        await create_node(client, "two")
        await client.create(daemon_set())
        await eventually(client, DaemonSet, "agent", has=running(2))
        for number in range(20):
            await client.patch(DaemonSet, "agent", image(f"agent:{number}"))
        updated = {"status": {"updatedNumberScheduled": 2, "numberAvailable": 2}}
        await eventually(client, DaemonSet, "agent", has=updated, within=30)
        await control_plane.drained()
        assert {pod.spec.containers[0].image for pod in await client.list(Pod)} == {"agent:19"}
        assert len((await client.list(ControllerRevision)).items) <= 11
        with control_plane.writes() as writes:
            await client.patch(DaemonSet, "agent", MergePatch({"metadata": {"labels": {"team": "web"}}}))
            await control_plane.drained()
        assert writes.by("kube-controller-manager") == []


async def test_another_runner_makes_the_node_again(control_plane) -> None:
    """Tests that share a server, each with a runner, do not take each other's node away."""
    client = control_plane.client
    async with WorkloadRunner(client) as first:
        del first
        async with WorkloadRunner(client):
            await client.create(daemon_set())
            await eventually(client, DaemonSet, "agent", has=running(1))
            made = await client.get(Node, "pod-runner")
            await client.delete(Node, "pod-runner")
            await eventually(client, Node, "pod-runner", lambda again: again.uid != made.uid)
            await eventually(client, DaemonSet, "agent", has=running(1))
