"""Containers on a simulated runtime: every state and every rule once."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from pathlib import Path

import pytest
from workloads.container_plane import ContainerPlane, container_plane

from samples.eventually import eventually
from steersman.client import MergePatch
from steersman.objects import Key, ObjectMeta, find_condition
from steersman.workloads.containers import ContainerRuntimeError, SimulatedContainers
from steersman.workloads.containers.creator import LIFECYCLE_KEY, UID
from steersman.workloads.kinds import (
    GENERATED_NAME,
    AddedProbe,
    AddedProbeSchedule,
    Container,
    ContainerAdditions,
    ContainerBuildContext,
    ContainerExec,
    ContainerExecSpec,
    ContainerNetwork,
    ContainerNetworkConnection,
    ContainerNetworkSpec,
    ContainerPort,
    ContainerVolume,
    ContainerVolumeSpec,
    CreateFileSystem,
    Dependency,
    Endpoint,
    EnvVar,
    FileWatch,
    NetworkAdditions,
    NetworkConnection,
    TcpProbe,
    VolumeMount,
)
from steersman.workloads.kinds.container_image import FileSystemEntry
from steersman.workloads.ports import SimulatedPorts
from steersman.workloads.probes import SimulatedProber, TcpCheck, Verdict
from steersman.workloads.proxies import Forwarding, SimulatedProxy

PRODUCES = {"service-producer": json.dumps([{"serviceName": "api", "port": 8080}])}


@pytest.fixture
def runtime() -> SimulatedContainers:
    return SimulatedContainers()


@pytest.fixture
async def plane(tmp_path, runtime):
    async with container_plane(tmp_path, runtime) as plane:
        yield plane


def holds(status, kind: str) -> bool:
    found = find_condition(status.conditions, kind)
    return found is not None and found.status == "True"


def calls(runtime: SimulatedContainers, *methods: str) -> list[tuple[str, str]]:
    return [call for call in runtime.calls if call[0] in methods]


async def test_a_container_is_pulled_created_and_started(plane: ContainerPlane, runtime):
    """States Pending -> Starting -> Running; the default network exists first."""
    made = await plane.container(
        args=["--fast"], env=[EnvVar(name="MODE", value="dev"), EnvVar(name="TOKEN", value="x")]
    )
    status = await plane.until_state("web", "Running")
    launch = runtime.launches[status.container_id]
    assert (launch.image, launch.args, dict(launch.env)) == ("app:1", ("--fast",), {"MODE": "dev", "TOKEN": "x"})
    assert launch.labels[UID] == made.uid
    assert launch.bound
    assert status.container_name == f"web-{made.uid[:8]}"
    assert {each.name: each.value for each in status.effective_env} == {"MODE": "dev", "TOKEN": "********"}
    assert status.startup_timestamp is not None
    assert holds(status, "Started")
    assert holds(status, "Ready")
    network = await plane.client.get(ContainerNetwork, Key("", "default"))
    assert network.status is not None
    assert [(each.network, each.aliases) for each in launch.networks] == [(network.status.network_name, ("web",))]
    assert [call[0] for call in calls(runtime, "pull", "create", "start")] == ["pull", "create", "start"]


async def test_every_state_on_the_way_is_legal_and_shown(plane: ContainerPlane, runtime):
    """A container that ended before the first look still passes through legal states."""
    async with plane.client.watch(Container) as watch:
        await plane.container()
        states: list[str] = []
        async with asyncio.timeout(60):
            async for event in watch:
                state = event.object.status.state if event.object.status is not None else ""
                if not states or state != states[-1]:
                    states.append(state)
                if state == "Running":
                    runtime.exit(event.object.status.container_id, 0)
                if state == "Exited":
                    break
    assert states == ["", "Pending", "Starting", "Running", "Exited"]


@pytest.mark.parametrize(("code", "health"), [(0, "Caution"), (7, "Unhealthy")])
async def test_a_container_that_ends_has_exited(plane: ContainerPlane, runtime, code, health):
    """State Running -> Exited by an event of the runtime; Completed holds for exit code 0 alone."""
    await plane.container()
    status = await plane.until_state("web", "Running")
    runtime.exit(status.container_id, code)
    status = await plane.until_state("web", "Exited")
    assert (status.exit_code, status.health_status) == (code, health)
    assert status.finish_timestamp is not None
    assert holds(status, "Completed") == (code == 0)
    assert status.message == f"Ended with exit code {code}."


@pytest.mark.parametrize("adopted", [False, True])
async def test_a_container_that_ends_while_it_is_read_has_exited(plane: ContainerPlane, runtime, monkeypatch, adopted):
    """Its event comes before its facts are known: a command such as ``true`` ends that fast."""
    find = runtime.find

    async def find_and_end(container):
        facts = await find(container)
        if facts is not None and facts.state == "running":
            runtime.exit(facts.id, 3)
        return facts

    monkeypatch.setattr(runtime, "find", find_and_end)
    if adopted:
        runtime.add("shared")
        await plane.container(container_name="shared", mode="existing")
    else:
        await plane.container()
    assert (await plane.until_state("web", "Exited")).exit_code == 3


async def test_a_container_whose_event_is_lost_is_looked_at_after_a_while(plane: ContainerPlane, runtime, monkeypatch):
    monkeypatch.setattr("steersman.workloads.controllers.containers._LOOK", 0.2)
    await plane.container()
    status = await plane.until_state("web", "Running")
    monkeypatch.setattr(runtime, "_emit", lambda *_: None)
    runtime.exit(status.container_id, 3)
    assert (await plane.until_state("web", "Exited")).exit_code == 3


async def test_a_paused_container_is_paused_and_serves_nothing(plane: ContainerPlane, runtime):
    """States Running -> Paused -> Running."""
    await plane.container(ports=[ContainerPort(container_port=8080)], annotations=PRODUCES)
    status = await plane.until_state("web", "Running")
    await eventually_endpoints(plane, 1)
    runtime.change(status.container_id, "paused")
    await plane.until_state("web", "Paused")
    await eventually_endpoints(plane, 0)
    runtime.change(status.container_id, "running")
    await plane.until_state("web", "Running")
    await eventually_endpoints(plane, 1)


async def test_a_container_that_vanishes_is_unknown(plane: ContainerPlane, runtime):
    """State Running -> Unknown."""
    await plane.container()
    status = await plane.until_state("web", "Running")
    runtime.lose(status.container_id)
    status = await plane.until_state("web", "Unknown")
    assert status.message == "The container was removed by another program."


async def test_a_stop_ends_in_exited(plane: ContainerPlane, runtime):
    """States Running -> Stopping -> Exited; the container stays until its object is deleted."""
    await plane.container()
    status = await plane.until_state("web", "Running")
    runtime.gates["stop"] = asyncio.Event()
    await plane.change("web", stop=True)
    await plane.until_state("web", "Stopping")
    runtime.gates["stop"].set()
    status = await plane.until_state("web", "Exited")
    assert status.exit_code == 143
    assert status.container_id in runtime.containers
    await plane.delete(Container, "web")
    assert runtime.containers == {}


async def test_a_container_that_is_stopped_before_it_starts_fails(plane: ContainerPlane, runtime):
    """State Pending -> FailedToStart."""
    await plane.container(stop=True)
    status = await plane.until_state("web", "FailedToStart")
    assert status.message == "It was stopped before it started."
    assert runtime.containers == {}


async def test_a_container_waits_for_its_start(plane: ContainerPlane, runtime):
    """Rule: with start=false a Container stays Pending."""
    await plane.container(start=False)
    status = await plane.until("web", lambda status: status.steersman is not None and status.steersman.waiting_for)
    assert (status.state, status.steersman.waiting_for) == ("Pending", "spec.start to be true")
    await plane.change("web", start=True)
    await plane.until_state("web", "Running")


async def test_a_container_waits_for_its_dependencies_in_words(plane: ContainerPlane):
    await plane.container(added=ContainerAdditions(depends_on=[Dependency(kind="Container", name="db")]))
    status = await plane.until("web", lambda status: status.steersman is not None and status.steersman.waiting_for)
    assert status.steersman.waiting_for == "Container db to be created"
    await plane.container("db")
    await plane.until_state("web", "Running")


async def test_a_cycle_of_containers_is_named(plane: ContainerPlane, runtime):
    """Each would wait for the other for ever, so both say why."""
    for name, other in (("web", "db"), ("db", "web")):
        await plane.container(name, added=ContainerAdditions(depends_on=[Dependency(kind="Container", name=other)]))
    for name, other in (("web", "db"), ("db", "web")):
        words = f"the dependencies form a cycle: Container {name} -> Container {other} -> Container {name}"
        await plane.until(
            name, lambda status, words=words: words in ((status.steersman and status.steersman.waiting_for) or "")
        )
    assert runtime.containers == {}


@pytest.mark.parametrize(("method", "words"), [("pull", "no route"), ("create", "bad name"), ("start", "no such file")])
async def test_a_container_that_cannot_start_says_why(plane: ContainerPlane, runtime, method, words):
    """State Starting -> FailedToStart; what was created is removed with the object."""
    runtime.failures[method] = ContainerRuntimeError(f"simulated: {words}")
    await plane.container()
    status = await plane.until_state("web", "FailedToStart")
    assert (status.message, status.health_status) == (f"simulated: {words}", "Unhealthy")
    assert status.startup_std_err_file is not None
    with open(status.startup_std_err_file, encoding="utf-8") as file:  # noqa: ASYNC230, PTH123 - a test
        assert words in file.read()
    await plane.delete(Container, "web")
    assert runtime.containers == {}


async def test_the_reason_of_a_failure_is_logged_once(plane: ContainerPlane, runtime, monkeypatch):
    async def pull(image: str, log) -> None:
        Path(log.stderr).write_text("Error: no route\n")  # noqa: ASYNC240 - a test
        raise ContainerRuntimeError("/usr/bin/podman: no route")

    monkeypatch.setattr(runtime, "pull", pull)
    await plane.container()
    status = await plane.until_state("web", "FailedToStart")
    assert Path(status.startup_std_err_file).read_text() == "Error: no route\n"  # noqa: ASYNC240 - a test


async def test_a_file_can_be_mounted(plane: ContainerPlane, runtime, tmp_path):
    """A missing source becomes a folder; a file stays a file."""
    (tmp_path / "init.sql").write_text("select 1")
    mounts = [VolumeMount(type="bind", source=str(tmp_path / name), target=f"/{name}") for name in ("init.sql", "new")]
    await plane.container(volume_mounts=mounts)
    status = await plane.until_state("web", "Running")
    assert [each.source for each in runtime.launches[status.container_id].mounts] == [each.source for each in mounts]
    assert (tmp_path / "init.sql").is_file()
    assert (tmp_path / "new").is_dir()


async def test_a_runtime_that_does_not_answer_is_a_state_and_recovers(plane: ContainerPlane, runtime, monkeypatch):
    """States Pending -> RuntimeUnhealthy -> Starting -> Running."""
    monkeypatch.setattr("steersman.workloads.controllers.container_work.RETRY", 0.05)
    runtime.outage = "no service"
    await plane.container()
    status = await plane.until_state("web", "RuntimeUnhealthy")
    assert status.message == "The container runtime does not answer: simulated: no service"
    runtime.outage = ""
    await plane.until_state("web", "Running")
    assert len(runtime.containers) == 1


async def test_an_outage_while_a_container_runs_changes_nothing(plane: ContainerPlane, runtime, monkeypatch):
    monkeypatch.setattr("steersman.workloads.controllers.container_work.RETRY", 0.05)
    await plane.container()
    status = await plane.until_state("web", "Running")
    runtime.outage = "no service"
    runtime.exit(status.container_id, 3)
    await asyncio.sleep(0)
    runtime.outage = ""
    assert (await plane.until_state("web", "Exited")).exit_code == 3


async def test_an_image_is_built_first(plane: ContainerPlane, runtime):
    """States Pending -> Building -> Starting -> Running."""
    runtime.gates["build"] = asyncio.Event()
    await plane.container(image="mine:1", build=ContainerBuildContext(context="/src"))
    await plane.until_state("web", "Building")
    runtime.gates["build"].set()
    await plane.until_state("web", "Running")
    assert calls(runtime, "build", "pull") == [("build", "/src")]
    assert "mine:1" in runtime.images


async def test_a_build_that_fails_fails_the_start(plane: ContainerPlane, runtime):
    """State Building -> FailedToStart."""
    runtime.failures["build"] = ContainerRuntimeError("simulated: step 2 failed")
    await plane.container(image=None, build=ContainerBuildContext(context="/src"))
    assert (await plane.until_state("web", "FailedToStart")).message == "simulated: step 2 failed"


@pytest.mark.parametrize(
    ("policy", "present", "pulls"),
    [("always", True, 1), ("missing", True, 0), ("missing", False, 1), ("never", True, 0)],
)
async def test_the_pull_policy_decides_about_the_image(plane: ContainerPlane, runtime, policy, present, pulls):
    if present:
        runtime.images.add("app:1")
    await plane.container(pull_policy=policy)
    await plane.until_state("web", "Running")
    assert len(calls(runtime, "pull")) == pulls


async def test_without_a_pull_a_missing_image_fails_the_start(plane: ContainerPlane):
    await plane.container(pull_policy="never")
    assert "no such image" in ((await plane.until_state("web", "FailedToStart")).message or "")


async def test_a_deletion_during_the_start_leaves_nothing(plane: ContainerPlane, runtime):
    """Rule: deletion waits for the start to end, then removes the container."""
    runtime.gates["create"] = asyncio.Event()
    await plane.container()
    await eventually(lambda: calls(runtime, "create"))
    await plane.client.delete(await plane.client.get(Container, Key("", "web")))
    runtime.gates["create"].set()
    await plane.until_gone(Container, "web")
    assert runtime.containers == {}


async def test_a_deletion_cancels_a_pull(plane: ContainerPlane, runtime):
    """Rule: a deletion does not wait minutes for an image that is not needed any more."""
    runtime.gates["pull"] = asyncio.Event()
    await plane.container()
    await eventually(lambda: calls(runtime, "pull"))
    await plane.delete(Container, "web")
    assert calls(runtime, "create") == []


async def test_a_stop_that_fails_is_repeated(plane: ContainerPlane, runtime, monkeypatch):
    monkeypatch.setattr("steersman.workloads.controllers.container_work.RETRY", 0.3)
    await plane.container()
    await plane.until_state("web", "Running")
    runtime.failures["stop"] = ContainerRuntimeError("simulated: busy")
    await plane.change("web", stop=True)
    await plane.until("web", lambda status: status.message == "simulated: busy")
    await plane.until_state("web", "Exited")


async def test_a_conflicting_status_write_starts_no_second_container(plane: ContainerPlane, runtime):
    """Rule: the record, not the status, says what was started."""
    runtime.gates["create"] = asyncio.Event()
    await plane.container()
    await eventually(lambda: calls(runtime, "create"))
    for number in range(5):
        await plane.client.patch(Container, Key("", "web"), MergePatch({"metadata": {"labels": {"n": str(number)}}}))
    runtime.gates["create"].set()
    await plane.until_state("web", "Running")
    assert len(calls(runtime, "create")) == 1


async def test_leftovers_of_a_killed_session_are_removed_at_the_start(tmp_path, runtime):
    """Rule: a start-up harvester removes what has a creator that is gone."""
    runtime.add("left")
    runtime.add("theirs")
    runtime.leftovers = ("left",)
    async with container_plane(tmp_path, runtime):
        await eventually(lambda: [each.name for each in runtime.containers.values()] == ["theirs"])


# modes and lifecycle keys


async def test_a_persistent_container_survives_its_object_and_is_adopted(plane: ContainerPlane, runtime):
    """Rule: the same lifecycle key reuses a container that runs."""
    await plane.container(mode="persistent", container_name="db")
    first = await plane.until_state("web", "Running")
    assert first.lifecycle_key
    assert not runtime.launches[first.container_id].bound
    await plane.delete(Container, "web")
    assert runtime.containers[first.container_id].state == "running"
    await plane.container(mode="persistent", container_name="db")
    again = await plane.until_state("web", "Running")
    assert again.container_id == first.container_id
    assert len(calls(runtime, "create")) == 1


@pytest.mark.parametrize("change", [{"env": [EnvVar(name="A", value="2")]}, {"lifecycle_key": "other"}])
async def test_another_lifecycle_key_replaces_a_persistent_container(plane: ContainerPlane, runtime, change):
    await plane.container(mode="persistent", container_name="db")
    first = await plane.until_state("web", "Running")
    await plane.delete(Container, "web")
    await plane.container(mode="persistent", container_name="db", **change)
    second = await plane.until_state("web", "Running")
    assert second.container_id != first.container_id
    assert list(runtime.containers) == [second.container_id]


async def test_an_explicit_lifecycle_key_ignores_other_changes(plane: ContainerPlane, runtime):
    await plane.container(mode="persistent", container_name="db", lifecycle_key="v1")
    first = await plane.until_state("web", "Running")
    assert runtime.containers[first.container_id].labels[LIFECYCLE_KEY] == "v1"
    await plane.delete(Container, "web")
    await plane.container(mode="persistent", container_name="db", lifecycle_key="v1", args=["--other"])
    assert (await plane.until_state("web", "Running")).container_id == first.container_id


async def test_an_existing_container_is_adopted_and_left_alone(plane: ContainerPlane, runtime):
    """Mode existing: NotFound until there is one, Running afterwards; the deletion leaves it."""
    await plane.container(mode="existing", container_name="theirs")
    status = await plane.until_state("web", "NotFound")
    assert status.message == "There is no container theirs; it is adopted as soon as there is one."
    identity = runtime.add("theirs")
    status = await plane.until_state("web", "Running")
    assert status.container_id == identity
    await plane.delete(Container, "web")
    assert runtime.containers[identity].state == "running"
    assert calls(runtime, "create", "start", "stop", "remove") == []


async def test_cleanup_removes_a_container_that_exists(plane: ContainerPlane, runtime):
    """Mode cleanup: adopts what exists, and removes it with the object."""
    runtime.add("theirs")
    await plane.container(mode="cleanup", container_name="theirs")
    await plane.until_state("web", "Running")
    await plane.delete(Container, "web")
    assert runtime.containers == {}


async def test_a_name_that_another_container_has_is_refused(plane: ContainerPlane, runtime):
    runtime.add("taken")
    await plane.container(container_name="taken")
    status = await plane.until_state("web", "FailedToStart")
    assert "another container has the name taken" in (status.message or "")
    assert len(runtime.containers) == 1


async def test_a_generated_name_gets_a_suffix_if_another_has_it(plane: ContainerPlane, runtime):
    """The container and the network of another project keep theirs."""
    theirs = runtime.add("shop-web-1")
    await runtime.create_network("shop_default", ipv6=False, labels={}, bound=False)
    generated = {GENERATED_NAME: "true"}
    metadata = ObjectMeta(name="default", annotations=generated)
    await plane.client.create(
        ContainerNetwork(metadata=metadata, spec=ContainerNetworkSpec(network_name="shop_default"))
    )
    made = await plane.container(container_name="shop-web-1", annotations=generated)
    status = await plane.until_state("web", "Running")
    assert status.container_name == f"shop-web-1-{made.uid[:8]}"
    (network,) = runtime.containers[status.container_id].networks
    assert network.startswith("shop_default-")
    await plane.delete(Container, "web")
    await plane.delete(ContainerNetwork, "default")
    assert (list(runtime.containers), list(runtime.networks)) == ([theirs], ["shop_default"])


# files, volumes, networks


async def test_files_are_written_before_the_start(plane: ContainerPlane, runtime):
    entries = [
        FileSystemEntry(name="app.conf", contents="a = 1", mode=0o640),
        FileSystemEntry(name="bin", type="directory", entries=[{"name": "tool", "rawContents": "aGk=", "owner": 5}]),
        FileSystemEntry(name="link", type="symlink", target="app.conf"),
    ]
    await plane.container(create_files=[CreateFileSystem(destination="/etc/app", default_owner=7, entries=entries)])
    status = await plane.until_state("web", "Running")
    names = [call[0] for call in calls(runtime, "create", "copy", "start")]
    assert names == ["create", "copy", "start"]
    data = runtime.copied[status.container_id, "/etc/app"]
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        found = {each.name: (each.uid, each.mode, each.linkname) for each in tar}
        assert tar.extractfile("bin/tool").read() == b"hi"
    assert found == {
        "app.conf": (7, 0o640, ""),
        "bin": (7, 0o755, ""),
        "bin/tool": (5, 0o644, ""),
        "link": (7, 0o777, "app.conf"),
    }


async def test_a_volume_is_created_used_and_removed_after_its_container(plane: ContainerPlane, runtime):
    """ContainerVolume: Pending -> Ready; a volume in use waits for its container."""
    await plane.client.create(
        ContainerVolume(metadata=ObjectMeta(name="data"), spec=ContainerVolumeSpec(name="data", persistent=False))
    )
    await plane.until_object(ContainerVolume, "data", lambda each: each.status and each.status.state == "Ready")
    await plane.container(volume_mounts=[VolumeMount(type="volume", source="data", target="/data")])
    await plane.until_state("web", "Running")
    await plane.client.delete(await plane.client.get(ContainerVolume, Key("", "data")))
    await eventually(lambda: calls(runtime, "remove_volume"))
    assert "data" in runtime.volumes
    await plane.delete(Container, "web")
    await plane.until_gone(ContainerVolume, "data")
    assert runtime.volumes == {}


async def test_a_persistent_volume_stays(plane: ContainerPlane, runtime):
    await plane.client.create(ContainerVolume(metadata=ObjectMeta(name="data"), spec=ContainerVolumeSpec(name="data")))
    await plane.until_object(ContainerVolume, "data", lambda each: each.status and each.status.state == "Ready")
    await plane.delete(ContainerVolume, "data")
    assert list(runtime.volumes) == ["data"]


async def test_a_volume_waits_for_its_runtime(plane: ContainerPlane, runtime):
    """ContainerVolume: Pending -> RuntimeUnhealthy -> Ready."""
    runtime.outage = "no service"
    await plane.client.create(ContainerVolume(metadata=ObjectMeta(name="data"), spec=ContainerVolumeSpec(name="data")))
    await plane.until_object(
        ContainerVolume, "data", lambda each: each.status and each.status.state == "RuntimeUnhealthy"
    )
    runtime.outage = ""
    await plane.until_object(ContainerVolume, "data", lambda each: each.status and each.status.state == "Ready")


async def test_a_container_joins_the_networks_of_its_spec(plane: ContainerPlane, runtime):
    """Connections: a container starts connected, follows edits of spec.networks, and leaves in the right order."""
    for name in ("front", "back"):
        await plane.client.create(ContainerNetwork(metadata=ObjectMeta(name=name), spec=ContainerNetworkSpec()))
    await plane.container(networks=[NetworkConnection(name="front", aliases=["www"])])
    status = await plane.until_state("web", "Running")
    front = await plane.client.get(ContainerNetwork, Key("", "front"))
    assert front.status is not None
    assert runtime.containers[status.container_id].networks[front.status.network_name].aliases == ("www", "web")
    await plane.change("web", networks=[NetworkConnection(name="back")])
    back = await plane.client.get(ContainerNetwork, Key("", "back"))
    assert back.status is not None
    wanted = {back.status.network_name}
    await eventually(lambda: set(runtime.containers[status.container_id].networks) == wanted)
    assert not [each for each in await plane.client.list(ContainerNetwork) if each.key.name == "default"]
    await plane.delete(Container, "web")
    await plane.until_object(ContainerNetwork, "back", lambda each: not each.status.container_ids)
    for each in await plane.client.list(ContainerNetworkConnection):
        await plane.until_gone(ContainerNetworkConnection, each.key.name)
    for name in ("front", "back"):
        await plane.delete(ContainerNetwork, name)
    assert runtime.networks == {}


async def test_a_running_container_follows_edits_of_its_aliases(plane: ContainerPlane, runtime):
    """A connection cannot change: with other aliases, or another service, the container is connected anew."""
    await plane.client.create(ContainerNetwork(metadata=ObjectMeta(name="front"), spec=ContainerNetworkSpec()))
    await plane.container(networks=[NetworkConnection(name="front", aliases=["db"])])
    status = await plane.until_state("web", "Running")
    front = await plane.client.get(ContainerNetwork, Key("", "front"))
    assert front.status is not None
    network, identity = front.status.network_name, status.container_id

    def aliases() -> tuple[str, ...]:
        joined = runtime.containers[identity].networks.get(network)
        return joined.aliases if joined is not None else ()

    async def rename(*names: str) -> None:
        # A patch: the controller writes the status meanwhile.
        networks = {"spec": {"networks": [{"name": "front", "aliases": names}]}}
        await plane.client.patch(Container, Key("", "web"), MergePatch(networks))
        await eventually(lambda: aliases() == (*names, "web"))

    assert aliases() == ("db", "web")
    await rename("db", "cache")
    await rename("cache")
    await plane.until_object(ContainerNetwork, "front", lambda each: each.status.container_ids == [identity])


async def test_a_container_waits_for_its_network(plane: ContainerPlane):
    await plane.container(networks=[NetworkConnection(name="front")])
    status = await plane.until("web", lambda status: status.steersman is not None and status.steersman.waiting_for)
    assert (status.state, status.steersman.waiting_for) == ("Starting", "ContainerNetwork front to run")
    await plane.client.create(ContainerNetwork(metadata=ObjectMeta(name="front"), spec=ContainerNetworkSpec()))
    await plane.until_state("web", "Running")


async def test_a_network_that_is_deleted_first_is_left_by_its_containers(plane: ContainerPlane, runtime):
    await plane.container()
    status = await plane.until_state("web", "Running")
    await plane.delete(ContainerNetwork, "default")
    assert runtime.networks == {}
    assert runtime.containers[status.container_id].networks == {}


async def test_a_network_can_be_internal(plane: ContainerPlane, runtime):
    spec = ContainerNetworkSpec(network_name="inside", steersman=NetworkAdditions(internal=True))
    await plane.client.create(ContainerNetwork(metadata=ObjectMeta(name="inside"), spec=spec))
    await plane.until_object(ContainerNetwork, "inside", lambda each: each.status and each.status.state == "Running")
    assert ("create_network", "inside (internal)") in runtime.calls


async def test_networks_show_what_became_of_them(plane: ContainerPlane, runtime):
    """ContainerNetwork: NotFound -> Running for mode existing; Running -> Removed; FailedToStart -> Running."""
    existing = ContainerNetworkSpec(network_name="theirs", mode="existing")
    await plane.client.create(ContainerNetwork(metadata=ObjectMeta(name="old"), spec=existing))
    await plane.until_object(ContainerNetwork, "old", lambda each: each.status and each.status.state == "NotFound")
    await runtime.create_network("theirs", ipv6=False, labels={}, bound=False)
    await plane.until_object(ContainerNetwork, "old", lambda each: each.status.state == "Running")
    await plane.delete(ContainerNetwork, "old")
    assert list(runtime.networks) == ["theirs"]
    taken = ContainerNetworkSpec(network_name="theirs")
    await plane.client.create(ContainerNetwork(metadata=ObjectMeta(name="new"), spec=taken))
    failed = await plane.until_object(
        ContainerNetwork, "new", lambda each: each.status and each.status.state == "FailedToStart"
    )
    assert "another network has the name theirs" in failed.status.message
    await runtime.remove_network("theirs")
    await plane.until_object(ContainerNetwork, "new", lambda each: each.status.state == "Running")
    del runtime.networks["theirs"]
    await plane.container(networks=[])
    await plane.until_object(ContainerNetwork, "new", lambda each: each.status.state == "Removed")


@pytest.mark.parametrize(("mode", "left"), [("persistent", ["lan"]), ("cleanup", [])])
async def test_the_mode_of_a_network_decides_what_is_left(plane: ContainerPlane, runtime, mode, left):
    """ContainerNetwork: Pending -> Running; mode persistent leaves the network, mode cleanup removes one that exists."""
    if mode == "cleanup":
        await runtime.create_network("lan", ipv6=False, labels={}, bound=False)
    spec = ContainerNetworkSpec(network_name="lan", mode=mode)
    await plane.client.create(ContainerNetwork(metadata=ObjectMeta(name="lan"), spec=spec))
    await plane.until_object(ContainerNetwork, "lan", lambda each: each.status and each.status.state == "Running")
    await plane.delete(ContainerNetwork, "lan")
    assert list(runtime.networks) == left


async def test_a_paused_container_can_be_stopped(plane: ContainerPlane, runtime):
    """State Paused -> Stopping -> Exited."""
    await plane.container()
    status = await plane.until_state("web", "Running")
    runtime.change(status.container_id, "paused")
    await plane.until_state("web", "Paused")
    runtime.gates["stop"] = asyncio.Event()
    await plane.change("web", stop=True)
    await plane.until_state("web", "Stopping")
    runtime.gates["stop"].set()
    await plane.until_state("web", "Exited")


async def test_a_paused_container_can_end(plane: ContainerPlane, runtime):
    """State Paused -> Exited."""
    await plane.container()
    status = await plane.until_state("web", "Running")
    runtime.change(status.container_id, "paused")
    await plane.until_state("web", "Paused")
    runtime.exit(status.container_id, 137)
    assert (await plane.until_state("web", "Exited")).exit_code == 137


async def test_a_container_that_the_runtime_restarts_runs_again(plane: ContainerPlane, runtime):
    """Rule restartPolicy: Exited -> Pending -> Running, if the runtime restarts it within a second. Its output is copied on."""
    await plane.container(restart_policy="always")
    status = await plane.until_state("web", "Running")
    runtime.exit(status.container_id, 1)
    await plane.until_state("web", "Exited")
    await runtime.start(status.container_id)
    await plane.until_state("web", "Running")
    await eventually(lambda: len(calls(runtime, "follow_output")) == 2)


# services and probes


async def eventually_endpoints(plane: ContainerPlane, count: int) -> list[Endpoint]:
    async with asyncio.timeout(60):
        while True:
            found = list(await plane.client.list(Endpoint))
            if len(found) == count:
                return found
            await asyncio.sleep(0.005)


async def test_a_container_serves_at_its_published_port(plane: ContainerPlane, runtime):
    """Rule: an Endpoint exists as long as the container runs."""
    await plane.container(ports=[ContainerPort(container_port=8080)], annotations=PRODUCES)
    status = await plane.until_state("web", "Running")
    (endpoint,) = await eventually_endpoints(plane, 1)
    assert (endpoint.spec.service_name, endpoint.spec.address) == ("api", "127.0.0.1")
    assert endpoint.spec.port == runtime.containers[status.container_id].ports[8080, "tcp"][1] == 20000
    runtime.exit(status.container_id, 0)
    await eventually_endpoints(plane, 0)


async def test_templates_name_services_as_a_container_sees_them(plane: ContainerPlane, runtime):
    """A service of another container by its name and inner port; one of the host by its name and own port."""
    await plane.service("api", "127.0.0.1", 5000)
    await plane.service("host-api", "127.0.0.1", 5001)
    await plane.container("server", ports=[ContainerPort(container_port=8080)], annotations=PRODUCES)
    await plane.until_state("server", "Running")
    text = '{{addressFor "api"}}:{{portFor "api"}} {{addressFor "host-api"}}:{{portFor "host-api"}}'
    await plane.container("client", env=[EnvVar(name="URLS", value=text)])
    status = await plane.until_state("client", "Running")
    launch = runtime.launches[status.container_id]
    assert launch.env["URLS"] == "api:8080 host-api:5001"
    network = await plane.client.get(ContainerNetwork, Key("", "default"))
    assert network.status is not None
    assert network.status.gateways is not None
    assert launch.hosts == {"host-api": network.status.gateways[0]}


async def test_a_container_waits_for_a_service_that_its_templates_name(plane: ContainerPlane):
    """Rule: a service that is not there yet is transient: the state stays Starting."""
    await plane.container(args=['{{portFor "api"}}'])
    words = "Service api to be created"
    status = await plane.until("web", lambda status: status.steersman and status.steersman.waiting_for == words)
    assert status.state == "Starting"
    await plane.service("api", "127.0.0.1", 5000)
    assert (await plane.until_state("web", "Running")).effective_args == ["5000"]


async def test_services_of_the_host_are_reached_at_the_gateway(plane: ContainerPlane, runtime):
    await plane.service("host-api", "127.0.0.1", 5001)
    await plane.container()
    await plane.until_state("web", "Running")
    network = await plane.client.get(ContainerNetwork, Key("", "default"))
    assert network.status is not None
    assert network.status.gateways is not None
    proxy = plane.proxy
    assert isinstance(proxy, SimulatedProxy)
    wanted = Forwarding((network.status.gateways[0],), 5001, (("127.0.0.1", 5001),), (0,))
    await eventually(lambda: proxy.kept.get("host-api@default") == wanted)
    await plane.delete(Container, "web")
    await eventually(lambda: "host-api@default" not in proxy.kept)
    assert runtime.containers == {}


async def test_probes_decide_the_health_of_a_container(tmp_path, runtime):
    """Rule: any failure -> Unhealthy, all succeed -> Healthy; probes run only while the container runs."""
    prober = SimulatedProber()
    check = TcpCheck("127.0.0.1", 5432)
    prober.verdicts[check] = Verdict(succeeded=False, reason="127.0.0.1:5432: connection refused")
    probe = AddedProbe(name="up", tcp=TcpProbe(port=5432), schedule=AddedProbeSchedule(interval="50ms"))
    async with container_plane(tmp_path, runtime, prober=prober) as plane:
        await plane.container(added=ContainerAdditions(health_probes=[probe]))
        status = await plane.until("web", lambda status: status.health_status == "Unhealthy")
        assert (status.state, holds(status, "Healthy")) == ("Running", False)
        prober.verdicts[check] = Verdict(succeeded=True)
        status = await plane.until("web", lambda status: status.health_status == "Healthy")
        assert holds(status, "Ready")
        assert [each.outcome for each in status.health_probe_results] == ["Success"]


async def test_a_container_that_is_not_healthy_in_time_failed_to_start(tmp_path, runtime):
    prober = SimulatedProber()
    prober.verdicts[TcpCheck("127.0.0.1", 5432)] = Verdict(succeeded=False, reason="refused")
    probe = AddedProbe(name="up", tcp=TcpProbe(port=5432), schedule=AddedProbeSchedule(interval="50ms"))
    async with container_plane(tmp_path, runtime, prober=prober) as plane:
        await plane.container(added=ContainerAdditions(health_probes=[probe], startup_deadline="300ms"))
        status = await plane.until_state("web", "FailedToStart")
        assert status.message == "It was not healthy within 300ms. Probe up: refused."
        assert runtime.containers[status.container_id].state == "exited"


async def test_a_port_that_another_process_took_is_chosen_again_once(tmp_path, runtime):
    """Rule: EADDRINUSE -> a new port, once."""
    ports = SimulatedPorts()
    in_use = "simulated: bind: address already in use"
    async with container_plane(tmp_path, runtime, ports=ports) as plane:
        runtime.gates["start"] = asyncio.Event()
        runtime.failures["start"] = ContainerRuntimeError(in_use)
        await plane.container(ports=[ContainerPort(container_port=80)])
        await eventually(lambda: calls(runtime, "start"))
        ports.holders[20000] = "nginx, pid 812"
        runtime.gates["start"].set()
        status = await plane.until_state("web", "Running")
        assert runtime.containers[status.container_id].ports == {(80, "tcp"): ("127.0.0.1", 20001)}
        assert len(runtime.containers) == 1


async def test_a_fixed_port_that_is_in_use_names_the_process(tmp_path, runtime):
    """Rule: a bind failure shows in the status, with the process that holds the port."""
    ports = SimulatedPorts()
    ports.holders[8080] = "nginx, pid 812"
    async with container_plane(tmp_path, runtime, ports=ports) as plane:
        runtime.failures["start"] = ContainerRuntimeError("simulated: bind: address already in use")
        await plane.container(ports=[ContainerPort(container_port=80, host_port=8080)])
        words = "Port 8080 is held by nginx, pid 812."
        await plane.until("web", lambda status: status.state == "FailedToStart" and words in (status.message or ""))


# commands inside containers


async def test_a_command_runs_as_soon_as_its_container_does(plane: ContainerPlane, runtime):
    """ContainerExec: "" -> Running -> Finished."""
    spec = ContainerExecSpec(container_name="web", command="migrate", args=["up"])
    await plane.client.create(ContainerExec(metadata=ObjectMeta(name="migrate"), spec=spec))
    waiting = await plane.until_object(
        ContainerExec, "migrate", lambda each: each.status and each.status.steersman.waiting_for
    )
    assert waiting.status.steersman.waiting_for == "Container web to be created"
    await plane.container()
    await plane.until_object(ContainerExec, "migrate", lambda each: each.status.state == "Running")
    (command,) = runtime.commands
    assert (command.launch.command, command.launch.args) == ("migrate", ("up",))
    command.finish(0)
    done = await plane.until_object(ContainerExec, "migrate", lambda each: each.status.state == "Finished")
    assert done.status.exit_code == 0
    assert holds(done.status, "Completed")
    assert done.status.std_out_file == command.launch.stdout


async def test_a_command_is_terminated_with_its_object(plane: ContainerPlane, runtime):
    await plane.container()
    await plane.until_state("web", "Running")
    spec = ContainerExecSpec(container_name="web", command="serve")
    await plane.client.create(ContainerExec(metadata=ObjectMeta(name="serve"), spec=spec))
    await plane.until_object(ContainerExec, "serve", lambda each: each.status and each.status.state == "Running")
    await plane.delete(ContainerExec, "serve")


async def test_a_command_of_a_container_that_ended_fails(plane: ContainerPlane, runtime):
    """ContainerExec: "" -> FailedToStart."""
    await plane.container()
    status = await plane.until_state("web", "Running")
    runtime.exit(status.container_id, 0)
    await plane.until_state("web", "Exited")
    spec = ContainerExecSpec(container_name="web", command="migrate")
    await plane.client.create(ContainerExec(metadata=ObjectMeta(name="migrate"), spec=spec))
    failed = await plane.until_object(
        ContainerExec, "migrate", lambda each: each.status and each.status.state == "FailedToStart"
    )
    assert failed.status.steersman.message == "Container web has ended: it is Exited."


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"monitor_pid": 1}, "spec.monitorPid"),
        ({"steersman": ContainerAdditions(watch=FileWatch(paths=["**"]))}, "spec.steersman.watch"),
    ],
    ids=["monitorPid", "watch"],
)
async def test_what_is_not_supported_fails_the_start_with_what_to_do(plane: ContainerPlane, spec, field):
    await plane.container("web", **spec)
    status = await plane.until_state("web", "FailedToStart")
    assert (status.message or "").startswith(f"{field} is not supported for a Container: ")
