"""A container runtime that fails, does not answer or is late, on a simulated one: nothing is left, and nothing is repeated in a hurry."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from workloads.container_plane import ContainerPlane, container_plane

from samples.eventually import eventually
from steersman.aio import utc_now
from steersman.client import MergePatch
from steersman.objects import Key, ObjectMeta
from steersman.workloads.containers import ContainerRuntimeError, InUse, RuntimeUnavailable, SimulatedContainers
from steersman.workloads.kinds import (
    RESTARTED_AT,
    Container,
    ContainerNetwork,
    ContainerNetworkSpec,
    ContainerVolume,
    ContainerVolumeSpec,
    NetworkConnection,
)
from steersman.workloads.processes import Ended, Listener


@pytest.fixture
def runtime() -> SimulatedContainers:
    return SimulatedContainers()


@pytest.fixture
async def plane(tmp_path, runtime):
    async with container_plane(tmp_path, runtime) as plane:
        yield plane


class LateOutput(SimulatedContainers):
    """A runtime that delivers the last output of a container after its removal."""

    def __init__(self) -> None:
        super().__init__()
        self.delivered = asyncio.Event()
        self._output: tuple[Path, Listener] | None = None

    async def follow_output(self, container, stdout, stderr, listener, *, since=None):
        process = await super().follow_output(container, stdout, stderr, lambda _event: None, since=since)
        self._output = Path(stdout), listener
        return process

    async def remove(self, container: str) -> None:
        await super().remove(container)
        asyncio.get_running_loop().call_later(0.3, self._deliver)

    def _deliver(self) -> None:
        assert self._output is not None
        path, listener = self._output
        path.write_text("the last line\n")
        listener(Ended())
        self.delivered.set()


async def test_output_that_comes_late_leaves_no_file(tmp_path):
    """Rule: the files of a deleted container stay deleted."""
    runtime = LateOutput()
    async with container_plane(tmp_path, runtime) as plane:
        await plane.container()
        await plane.until_state("web", "Running")
        await plane.delete(Container, "web")
        await runtime.delivered.wait()
        assert list(plane.logs.iterdir()) == []


async def test_output_is_copied_after_the_clock_was_set_back(plane: ContainerPlane, runtime, monkeypatch):
    """Rule: a restart loses no output. The runtime selects lines by their time, which is before the end of the last run."""
    times: list[datetime | None] = []
    follow = runtime.follow_output

    async def noted(*arguments, since=None):
        times.append(since)
        return await follow(*arguments, since=since)

    monkeypatch.setattr(runtime, "follow_output", noted)
    await plane.container(container_name="web")
    await plane.until_state("web", "Running")
    runtime.exit("web", 0)
    await plane.until_state("web", "Exited")
    earlier = utc_now() - timedelta(hours=1)
    monkeypatch.setattr("steersman.workloads.containers.simulated_containers.utc_now", lambda: earlier)
    restart = {"metadata": {"annotations": {RESTARTED_AT: "1"}}}
    await plane.client.patch(Container, Key("", "web"), MergePatch(restart))
    await eventually(lambda: len(times) == 2)
    assert times[0] is None
    assert times[1] is not None
    assert times[1] <= earlier


@pytest.mark.parametrize(("exits", "state"), [(True, "Exited"), (False, "Stopping")])
async def test_a_removal_that_fails_is_no_failed_start(plane: ContainerPlane, runtime, monkeypatch, exits, state):
    """Rule: the state of a container that ran never says that it did not start."""
    monkeypatch.setattr("steersman.workloads.controllers.container_work.RETRY", 0.3)
    await plane.container(container_name="web")
    await plane.until_state("web", "Running")
    if exits:
        runtime.exit("web", 0)
        await plane.until_state("web", "Exited")
    runtime.failures["remove"] = ContainerRuntimeError("simulated: busy")
    await plane.client.delete(await plane.client.get(Container, Key("", "web")))
    status = await plane.until("web", lambda status: status.message == "simulated: busy")
    assert status.state == state
    await plane.until_gone(Container, "web")
    assert runtime.containers == {}


async def test_a_container_that_could_not_start_is_removed_at_once(plane: ContainerPlane, runtime, monkeypatch):
    monkeypatch.setattr("steersman.workloads.controllers.container_work.RETRY", 3600.0)
    runtime.failures["start"] = ContainerRuntimeError("simulated: no such device")
    await plane.container()
    await plane.until_state("web", "FailedToStart")
    await plane.delete(Container, "web")
    assert runtime.containers == {}


@pytest.mark.parametrize("error", [RuntimeUnavailable, ContainerRuntimeError])
async def test_a_container_whose_creation_was_not_confirmed_is_removed(
    plane: ContainerPlane, runtime, monkeypatch, error
):
    """Rule: a container is gone before its object is, also if the runtime created it and did not say so."""
    create = runtime.create

    async def unconfirmed(launch):
        await create(launch)
        raise error("simulated: no answer")

    monkeypatch.setattr("steersman.workloads.controllers.container_work.RETRY", 0.2)
    monkeypatch.setattr(runtime, "create", unconfirmed)
    await plane.container()
    await plane.until("web", lambda status: "no answer" in (status.message or ""))
    await plane.delete(Container, "web")
    assert runtime.containers == {}


async def test_an_outage_during_a_removal_repeats_it_after_a_pause(plane: ContainerPlane, runtime, monkeypatch):
    """Rule: a runtime that does not answer is not asked again and again."""
    monkeypatch.setattr("steersman.workloads.controllers.container_work.RETRY", 0.5)
    times: list[float] = []
    remove = runtime.remove

    async def timed(container: str) -> None:
        times.append(asyncio.get_running_loop().time())
        await remove(container)

    monkeypatch.setattr(runtime, "remove", timed)
    runtime.failures["start"] = RuntimeUnavailable("simulated: no answer")
    await plane.container()
    await plane.until("web", lambda status: "no answer" in (status.message or ""))
    runtime.outage = "down"
    times.clear()
    await plane.client.delete(await plane.client.get(Container, Key("", "web")))
    await eventually(lambda: len(times) >= 3)
    assert times[2] - times[0] >= 1.0
    runtime.outage = ""
    await plane.until_gone(Container, "web")


async def test_leftovers_are_removed_once_the_runtime_answers(tmp_path, runtime, monkeypatch):
    """They may have the names and the ports of the containers that wait for the runtime too."""
    monkeypatch.setattr("steersman.workloads.controllers.container_world._HARVEST_AGAIN", 0.1)
    runtime.add("left")
    runtime.leftovers = ("left",)
    runtime.outage = "not started yet"
    async with container_plane(tmp_path, runtime) as plane:
        await plane.container()
        await plane.until_state("web", "RuntimeUnhealthy")
        runtime.outage = ""
        await eventually(lambda: "left" not in [each.name for each in runtime.containers.values()])


async def test_a_leftover_in_use_is_tried_again(tmp_path, runtime, monkeypatch):
    """Rule: a network that a container of the user keeps goes later."""
    monkeypatch.setattr("steersman.workloads.controllers.container_world._HARVEST_AGAIN", 0.1)
    runtime.add("left")
    runtime.leftovers = ("left",)
    runtime.failures["harvest"] = InUse("simulated: network left is being used")
    async with container_plane(tmp_path, runtime) as plane:
        await plane.container()
        await plane.until_state("web", "Running")
        await eventually(lambda: "left" not in [each.name for each in runtime.containers.values()])


async def vanish(plane: ContainerPlane, name: str) -> None:
    """Delete a Container, and take its finalizer away: nothing waits for its container."""
    await plane.client.delete(await plane.client.get(Container, Key("", name)))
    await plane.client.patch(Container, Key("", name), MergePatch({"metadata": {"finalizers": None}}))
    await plane.until_gone(Container, name)


async def test_a_container_without_its_object_is_removed_once_the_runtime_answers(
    plane: ContainerPlane, runtime, monkeypatch
):
    """Rule: the removal is repeated with a pause."""
    monkeypatch.setattr("steersman.workloads.controllers.container_work.RETRY", 0.5)
    await plane.container()
    await plane.until_state("web", "Running")
    runtime.outage = "down"
    await vanish(plane, "web")
    times: list[float] = []
    find = runtime.find

    async def timed(container: str) -> object:
        times.append(asyncio.get_running_loop().time())
        return await find(container)

    monkeypatch.setattr(runtime, "find", timed)
    await eventually(lambda: len(times) >= 3)
    assert times[2] - times[0] >= 1.0
    runtime.outage = ""
    await eventually(lambda: runtime.containers == {})


@pytest.mark.parametrize("fails", [False, True], ids=["removed", "removed later"])
async def test_an_unconfirmed_container_without_its_object_is_removed(
    plane: ContainerPlane, runtime, monkeypatch, fails
):
    """Rule: the id of such a container is not known, but its name and its uid are. A removal that fails is repeated."""
    create, gate = runtime.create, asyncio.Event()

    async def unconfirmed(launch):
        await create(launch)
        await gate.wait()
        raise ContainerRuntimeError("simulated: no answer")

    monkeypatch.setattr("steersman.workloads.controllers.container_work.RETRY", 0.2)
    monkeypatch.setattr(runtime, "create", unconfirmed)
    await plane.container()
    await eventually(lambda: runtime.containers)
    await vanish(plane, "web")
    if fails:
        runtime.failures["remove"] = ContainerRuntimeError("simulated: busy")
    gate.set()
    await eventually(lambda: runtime.containers == {})
    assert [method for method, _ in runtime.calls].count("remove") == 1 + fails


async def test_a_persistent_container_survives_also_if_its_object_lost_its_finalizer(plane: ContainerPlane, runtime):
    runtime.gates["stop"] = asyncio.Event()
    await plane.container(persistent=True, container_name="db")
    await plane.until_state("web", "Running")
    await plane.change("web", stop=True)
    await eventually(lambda: ("stop", "db") in runtime.calls)
    # The stop is still under way, so the controller keeps the finalizer.
    await vanish(plane, "web")
    runtime.gates["stop"].set()
    await plane.container("other")
    await plane.until_state("other", "Running")
    assert "remove" not in [method for method, _ in runtime.calls]


@pytest.mark.parametrize("method", ["find_volume", "connect", "disconnect"])
async def test_an_outage_repeats_no_command_without_a_pause(plane: ContainerPlane, runtime, monkeypatch, method):
    """Rule: volumes and connections cost little while the runtime does not answer."""
    times: list[float] = []

    async def fails(*_arguments: object) -> None:
        times.append(asyncio.get_running_loop().time())
        raise RuntimeUnavailable("simulated: no answer")

    for controller in ("container_volumes", "container_network_connections"):
        monkeypatch.setattr(f"steersman.workloads.controllers.{controller}._RETRY", 0.5)
    monkeypatch.setattr(runtime, method, fails)
    if method == "find_volume":
        spec = ContainerVolumeSpec(name="data")
        await plane.client.create(ContainerVolume(metadata=ObjectMeta(name="data"), spec=spec))
    else:
        for name in ("front", "back"):
            await plane.client.create(ContainerNetwork(metadata=ObjectMeta(name=name), spec=ContainerNetworkSpec()))
        await plane.container(networks=[NetworkConnection(name="front")])
        await plane.until_state("web", "Running")
        await plane.change("web", networks=[NetworkConnection(name="back")])
    await eventually(lambda: len(times) >= 3)
    assert times[2] - times[0] >= 1.0
