"""Restart, stop and start by annotation, of sets of processes and of containers, on simulated parts."""

from __future__ import annotations

import asyncio

import pytest
from workloads.container_plane import ContainerPlane, container_plane
from workloads.plane import Plane, until_true, workloads_plane

from samples.eventually import eventually
from steersman.client import MergePatch
from steersman.kinds.events_v1 import Event
from steersman.objects import Key, find_condition
from steersman.workloads import RESTARTED_AT, STOPPED
from steersman.workloads.containers import ContainerRuntimeError, SimulatedContainers
from steersman.workloads.kinds import (
    Container,
    ContainerBuildContext,
    Executable,
    ExecutableReplicaSet,
    ReplicaSetAdditions,
    RestartPolicy,
)
from steersman.workloads.processes import SimulatedProcesses

STOPPED_WORDS = f"Stopped by the annotation {STOPPED}; remove the annotation to start it again."


@pytest.fixture
def processes() -> SimulatedProcesses:
    return SimulatedProcesses()


@pytest.fixture
async def plane(tmp_path, processes):
    async with workloads_plane(tmp_path, processes) as plane:
        yield plane


@pytest.fixture
def runtime() -> SimulatedContainers:
    return SimulatedContainers()


@pytest.fixture
async def containers(tmp_path, runtime):
    async with container_plane(tmp_path, runtime) as plane:
        yield plane


async def annotate(plane: Plane | ContainerPlane, kind: type, name: str, **annotations: str | None) -> None:
    values = {{"restarted_at": RESTARTED_AT, "stopped": STOPPED}[key]: value for key, value in annotations.items()}
    await plane.client.patch(kind, Key("", name), MergePatch({"metadata": {"annotations": values}}))


async def restarting(plane: Plane, **annotations: str | None) -> None:
    await annotate(plane, ExecutableReplicaSet, "api", **annotations)


async def reasons(plane: Plane | ContainerPlane, name: str) -> set[str]:
    return {each.reason for each in await plane.client.list(Event) if each.regarding.name == name}


# ExecutableReplicaSet


async def test_a_new_value_restarts_a_set_once(plane: Plane, processes):
    """The old process ends first, one new one follows, and the status and an Event say why."""
    await plane.replica_set()
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    processes.started[0].ignores_signals = True
    await restarting(plane, restarted_at="2026-01-01T00:00:00Z")
    await eventually(lambda: processes.started[0].signals == [15])
    assert len(processes.started) == 1
    processes.started[0].exit(-9)
    status = await plane.until_set("api", lambda s: s.steersman.restarts == 1 and s.running_replicas == 1)
    assert status.steersman.last_restart_reason == "A restart was requested at 2026-01-01T00:00:00Z."
    await restarting(plane, restarted_at="2026-01-01T00:00:00Z")
    await plane.change_set("api", lambda each: setattr(each.spec, "replicas", 2))
    await plane.until_set("api", lambda status: status.running_replicas == 2)
    assert len(processes.started) == 3

    async def said() -> bool:
        return "Restarting" in await reasons(plane, "api")

    await until_true(said)


async def test_a_conflict_during_a_restart_starts_nothing_twice(plane: Plane, processes):
    """Other writers change the set while it restarts."""
    await plane.replica_set()
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    await restarting(plane, restarted_at="now")
    for number in range(10):
        patch = MergePatch({"metadata": {"labels": {"n": str(number)}}})
        await plane.client.patch(ExecutableReplicaSet, Key("", "api"), patch)
    status = await plane.until_set("api", lambda s: s.steersman.restarts == 1 and s.running_replicas == 1)
    assert status.steersman.restarts == 1
    assert len(processes.started) == 2


@pytest.mark.parametrize("code", [0, 1])
async def test_a_set_that_has_ended_restarts(plane: Plane, processes, code):
    await plane.replica_set()
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    processes.started[0].exit(code)
    await plane.until_set("api", lambda status: status.finished_replicas == 1)
    await restarting(plane, restarted_at="now")
    await plane.until_set("api", lambda s: s.running_replicas == 1 and s.steersman.restarts == 1)


async def test_a_restart_follows_exhausted_restarts(plane: Plane, processes):
    processes.failures["/bin/api"] = "no such file"
    policy = RestartPolicy(policy="Always", delay="5ms", maximum_restarts=1)
    await plane.replica_set(added=ReplicaSetAdditions(restart=policy))
    await plane.until_set("api", lambda s: s.steersman and "the maximum" in (s.steersman.waiting_for or ""))
    processes.failures.clear()
    await restarting(plane, restarted_at="now")
    status = await plane.until_set("api", lambda status: status.running_replicas == 1)
    assert status.steersman.waiting_for is None


async def test_a_stopped_set_stays_stopped_until_the_annotation_goes(plane: Plane, processes):
    """The Executables stay with their output, the restart policy waits, and the status says so."""
    policy = RestartPolicy(policy="Always", delay="5ms")
    await plane.replica_set(replicas=2, added=ReplicaSetAdditions(restart=policy))
    await plane.until_set("api", lambda status: status.running_replicas == 2)
    processes.started[0].ignores_signals = True
    await restarting(plane, stopped="true")
    status = await plane.until_set("api", lambda status: status.finished_replicas == 1)
    assert status.steersman.message == "Stopping: 1 of 2 Executables are still running."
    processes.started[0].exit(-9)
    status = await plane.until_set("api", lambda status: status.finished_replicas == 2)
    assert (status.steersman.message, status.health_status) == (STOPPED_WORDS, "Caution")
    condition = find_condition(status.conditions, "Ready")
    assert (condition.reason, condition.message) == ("Stopped", STOPPED_WORDS)
    assert len(await plane.client.list(Executable)) == 2
    assert len(processes.started) == 2
    await restarting(plane, stopped=None)
    status = await plane.until_set("api", lambda status: status.running_replicas == 2)
    assert (status.steersman.message, status.steersman.restarts) == (None, 0)
    assert len(processes.started) == 4

    async def said() -> bool:
        return {"Stopping", "Starting"} <= await reasons(plane, "api")

    await until_true(said)


async def test_a_start_waits_until_the_stop_is_complete(plane: Plane, processes):
    """The next run does not compete with the earlier one for a port."""
    await plane.replica_set()
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    processes.started[0].ignores_signals = True
    await restarting(plane, stopped="true")
    await plane.until_set("api", lambda status: status.steersman.message)
    await restarting(plane, stopped=None)
    await plane.until_set("api", lambda status: status.steersman.message is None)
    assert len(processes.started) == 1
    processes.started[0].exit(-9)
    await eventually(lambda: len(processes.started) == 2)
    await plane.until_set("api", lambda status: status.running_replicas == 1)


async def test_a_set_that_is_created_stopped_starts_nothing(plane: Plane, processes):
    """A restart that is requested meanwhile waits for the start."""
    await plane.replica_set(replicas=0)
    await plane.until_set("api", lambda _: True)
    await restarting(plane, stopped="true", restarted_at="1")
    await plane.change_set("api", lambda each: setattr(each.spec, "replicas", 1))
    await plane.until_set("api", lambda s: s.steersman.message == STOPPED_WORDS and s.observed_generation == 2)
    await restarting(plane, restarted_at="2")
    assert processes.started == []
    await restarting(plane, stopped=None)
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    assert len(processes.started) == 1


# Container


async def test_a_new_value_restarts_a_container_once(containers: ContainerPlane, runtime):
    """Running -> Stopping -> Exited -> Pending -> Starting -> Running, with the same container."""
    await containers.container()
    before = await containers.until_state("web", "Running")
    runtime.gates["stop"] = asyncio.Event()
    await annotate(containers, Container, "web", restarted_at="now")
    await containers.until_state("web", "Stopping")
    for number in range(5):
        patch = MergePatch({"metadata": {"labels": {"n": str(number)}}})
        await containers.client.patch(Container, Key("", "web"), patch)
    runtime.gates.pop("stop").set()
    status = await containers.until("web", lambda s: s.state == "Running" and s.steersman.restarts == 1)
    assert status.container_id == before.container_id
    assert (status.exit_code, status.finish_timestamp, status.steersman.restarted_at) == (None, None, "now")
    await annotate(containers, Container, "web", restarted_at="now")
    assert [name for name, _ in runtime.calls].count("start") == 2

    async def said() -> bool:
        return "Starting" in await reasons(containers, "web")

    await until_true(said)


async def test_a_container_that_exited_starts_again(containers: ContainerPlane, runtime):
    """Exited -> Pending -> Starting -> Running."""
    await containers.container()
    status = await containers.until_state("web", "Running")
    runtime.exit(status.container_id, 3)
    await containers.until_state("web", "Exited")
    await annotate(containers, Container, "web", restarted_at="now")
    await containers.until_state("web", "Running")


async def test_a_container_that_failed_to_start_starts_again(containers: ContainerPlane, runtime):
    """FailedToStart -> Pending -> Starting -> Running: the container of the failed start is replaced."""
    runtime.failures["start"] = ContainerRuntimeError("no such program")
    await containers.container()
    await containers.until_state("web", "FailedToStart")
    await annotate(containers, Container, "web", restarted_at="now")
    status = await containers.until_state("web", "Running")
    assert status.message is None
    assert len(runtime.containers) == 1


async def test_a_container_that_vanished_is_created_again(containers: ContainerPlane, runtime):
    """Unknown -> Pending -> Starting -> Running."""
    await containers.container()
    status = await containers.until_state("web", "Running")
    runtime.lose(status.container_id)
    await containers.until_state("web", "Unknown")
    await annotate(containers, Container, "web", restarted_at="now")
    after = await containers.until_state("web", "Running")
    assert after.container_id != status.container_id


async def test_a_container_that_ended_and_was_removed_is_created_again(containers: ContainerPlane, runtime):
    await containers.container()
    status = await containers.until_state("web", "Running")
    runtime.exit(status.container_id, 0)
    await containers.until_state("web", "Exited")
    runtime.lose(status.container_id)
    await annotate(containers, Container, "web", restarted_at="now")
    after = await containers.until_state("web", "Running")
    assert after.container_id != status.container_id


@pytest.mark.parametrize("policy", ["no", "always"])
async def test_a_stopped_container_stays_stopped_until_the_annotation_goes(containers: ContainerPlane, runtime, policy):
    """The container and its output stay; the status says how to start it."""
    await containers.container(restart_policy=policy)
    before = await containers.until_state("web", "Running")
    await annotate(containers, Container, "web", stopped="true")
    status = await containers.until("web", lambda status: status.message == STOPPED_WORDS)
    assert (status.state, status.container_id) == ("Exited", before.container_id)
    assert before.container_id in runtime.containers
    await annotate(containers, Container, "web", stopped=None)
    status = await containers.until_state("web", "Running")
    assert (status.container_id, status.message) == (before.container_id, None)
    await containers.delete(Container, "web")
    assert runtime.containers == {}


async def test_a_stop_during_a_pull_cancels_it(containers: ContainerPlane, runtime):
    """Starting -> Pending; the pull begins anew after the start."""
    runtime.gates["pull"] = asyncio.Event()
    await containers.container(pull_policy="always")
    await eventually(lambda: ("pull", "app:1") in runtime.calls)
    await containers.until_state("web", "Starting")
    await annotate(containers, Container, "web", stopped="true")
    status = await containers.until_state("web", "Pending")
    assert status.steersman.waiting_for == f"the annotation {STOPPED} to be removed"
    assert runtime.containers == {}
    del runtime.gates["pull"]
    await annotate(containers, Container, "web", stopped=None)
    await containers.until_state("web", "Running")


async def test_a_stop_during_a_build_cancels_it(containers: ContainerPlane, runtime):
    """Building -> Pending."""
    runtime.gates["build"] = asyncio.Event()
    await containers.container(image=None, build=ContainerBuildContext(context="/app"))
    await containers.until_state("web", "Building")
    await annotate(containers, Container, "web", stopped="true")
    await containers.until_state("web", "Pending")
    runtime.gates.pop("build").set()
    await annotate(containers, Container, "web", stopped=None)
    await containers.until_state("web", "Running")


async def test_a_container_that_is_created_stopped_does_not_start(containers: ContainerPlane, runtime):
    await containers.container(annotations={STOPPED: "true", RESTARTED_AT: "1"})
    status = await containers.until("web", lambda status: status.message == STOPPED_WORDS)
    assert status.state == "Pending"
    assert runtime.containers == {}
    await annotate(containers, Container, "web", stopped=None)
    await containers.until_state("web", "Running")
