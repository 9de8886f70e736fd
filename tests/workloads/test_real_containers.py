"""The controllers of containers on a real Podman: each rule that a simulation cannot show."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from workloads.container_plane import ContainerPlane, container_controllers, container_plane

from bench.busybox_image import IMAGE
from samples.container_runtimes import needs_docker, needs_podman, podman, runtime, temporary_image
from samples.eventually import eventually
from steersman.aio import name_suffix
from steersman.client import MergePatch
from steersman.controlplane import ControlPlane
from steersman.objects import Key, ObjectMeta
from steersman.workloads import RESTARTED_AT, STOPPED
from steersman.workloads.containers import CommandLineRunner
from steersman.workloads.kinds import (
    KINDS,
    Container,
    ContainerAdditions,
    ContainerBuildContext,
    ContainerExec,
    ContainerExecSpec,
    ContainerNetwork,
    ContainerPort,
    ContainerVolume,
    ContainerVolumeSpec,
    CreateFileSystem,
    Endpoint,
    EnvVar,
    VolumeMount,
)
from steersman.workloads.kinds.container_image import FileSystemEntry
from steersman.workloads.proxies import RelayProxy

pytestmark = needs_podman
ADDED = ContainerAdditions(stop_timeout="1s")
SERVES = {"service-producer": json.dumps([{"serviceName": "files", "port": 8080}])}


@pytest.fixture(params=["podman", pytest.param("docker", marks=needs_docker)])
async def runner(request, tmp_path):
    async with runtime(request.param, tmp_path) as made:
        yield made


@pytest.fixture
async def plane(tmp_path, runner):
    async with container_plane(tmp_path, runner) as plane:
        yield plane


async def shell(plane: ContainerPlane, name: str, script: str, **spec: object) -> Container:
    values: dict[str, object] = {"image": IMAGE, "command": "/bin/sh", "args": ["-c", script], "added": ADDED}
    return await plane.container(name, **{**values, **spec})  # type: ignore[arg-type]


def output(path: str | None) -> str:
    """The lines of a file of output, without their times."""
    assert path is not None
    if not Path(path).exists():
        return ""
    return "\n".join(line.partition(" ")[2] for line in Path(path).read_text(encoding="utf-8").splitlines())


async def test_a_container_runs_prints_and_ends(plane: ContainerPlane, runner: CommandLineRunner):
    """Pending -> Running -> Exited, with the output in a file; the deletion removes container and network."""
    await shell(
        plane,
        "job",
        "echo $MODE; cat /etc/app/conf; exit 3",
        env=[EnvVar(name="MODE", value="dev")],
        create_files=[
            CreateFileSystem(
                destination="/etc",
                entries=[
                    FileSystemEntry(name="app", type="directory", entries=[{"name": "conf", "contents": "a = 1"}])
                ],
            )
        ],
    )
    status = await plane.until_state("job", "Exited")
    assert (status.exit_code, status.message) == (3, "Ended with exit code 3.")
    assert status.steersman is not None
    file = status.steersman.std_out_file
    await eventually(lambda: output(file) == "dev\na = 1")
    network = (await plane.client.get(ContainerNetwork, Key("", "default"))).status
    assert network is not None
    assert network.network_name is not None
    await plane.delete(Container, "job")
    await plane.delete(ContainerNetwork, "default")
    assert status.container_id is not None
    assert await runner.find(status.container_id) is None
    assert await runner.find_network(network.network_name) is None


async def test_an_annotation_restarts_stops_and_starts_a_container(plane: ContainerPlane):
    """The same container runs again with its files, and its output is in the file once for each run."""
    await shell(plane, "web", "echo run >>/runs; cat /runs | wc -l; trap 'exit 0' TERM; while :; do sleep 0.1; done")
    first = await plane.until_state("web", "Running")
    assert first.steersman is not None
    file = first.steersman.std_out_file
    await eventually(lambda: output(file) == "1")

    async def annotate(name: str, value: str | None) -> None:
        patch = MergePatch({"metadata": {"annotations": {name: value}}})
        await plane.client.patch(Container, Key("", "web"), patch)

    await annotate(RESTARTED_AT, "now")
    await eventually(lambda: output(file) == "1\n2", within=60)
    await annotate(STOPPED, "true")
    await plane.until_state("web", "Exited")
    await annotate(STOPPED, None)
    again = await plane.until_state("web", "Running")
    assert again.container_id == first.container_id
    await eventually(lambda: output(file) == "1\n2\n3", within=60)


async def test_a_container_whose_monitor_was_killed_can_be_restarted(tmp_path: Path):
    """Podman then stops it, but reports for ever that it is stopping, and never starts it again."""
    async with runtime("podman", tmp_path) as runner, container_plane(tmp_path, runner) as plane:
        await shell(plane, "web", "while :; do sleep 0.1; done")
        first = await plane.until_state("web", "Running")
        monitor = podman("inspect", "--format", "{{.State.ConmonPid}}", first.container_id or "")
        os.kill(int(monitor), signal.SIGKILL)
        patch = MergePatch({"metadata": {"annotations": {RESTARTED_AT: "now"}}})
        await plane.client.patch(Container, Key("", "web"), patch)
        second = await plane.until(
            "web", lambda status: status.state == "Running" and status.container_id != first.container_id
        )
        assert second.steersman is not None
        assert second.steersman.restarts == 1


async def test_the_output_goes_on_when_the_runtime_restarts_a_container(plane: ContainerPlane):
    """Rule restartPolicy: each run is in the file once."""
    script = "echo run >>/runs; cat /runs | wc -l; test $(cat /runs | wc -l) -gt 1 && sleep 300; sleep 0.5; exit 1"
    await shell(plane, "web", script, restart_policy="always")
    status = await plane.until("web", lambda each: each.steersman and each.steersman.std_out_file)
    assert status.steersman is not None
    file = status.steersman.std_out_file
    await eventually(lambda: output(file) == "1\n2", within=60)


async def test_a_stop_is_graceful_and_an_outside_kill_is_seen(plane: ContainerPlane, runner: CommandLineRunner):
    """Running -> Stopping -> Exited by the spec; Running -> Exited by an event of the runtime alone."""
    script = "trap 'exit 5' TERM; while :; do sleep 0.1; done"
    await shell(plane, "polite", script)
    await shell(plane, "victim", script)
    await plane.until_state("polite", "Running")
    status = await plane.until_state("victim", "Running")
    await plane.change("polite", stop=True)
    assert (await plane.until_state("polite", "Exited")).exit_code == 5
    assert status.container_id is not None
    await runner.stop(status.container_id, 1)
    assert (await plane.until_state("victim", "Exited")).exit_code == 5


async def test_the_host_reaches_a_container_and_containers_reach_each_other(plane: ContainerPlane):
    """A published port has an Endpoint; inside the network the service's name and its inner port do."""
    server = "mkdir -p /www; echo hello > /www/index.html; exec httpd -f -p 8080 -h /www"
    await shell(plane, "server", server, ports=[ContainerPort(container_port=8080)], annotations=SERVES)
    await plane.until_state("server", "Running")
    client = "for i in 1 2 3 4 5 6 7 8 9; do wget -q -O - $URL && exit 0; sleep 0.3; done; exit 1"
    url = EnvVar(name="URL", value='http://{{addressFor "files"}}:{{portFor "files"}}/')
    await plane.service("files", "127.0.0.1", 5000)
    await shell(plane, "client", client, env=[url])
    status = await plane.until_state("client", "Exited")
    assert status.exit_code == 0
    assert status.steersman is not None
    file = status.steersman.std_out_file
    await eventually(lambda: output(file) == "hello")
    (endpoint,) = await plane.client.list(Endpoint)
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(endpoint.spec.address, endpoint.spec.port)
        writer.write(b"GET /index.html HTTP/1.0\r\n\r\n")
        assert b"hello" in await reader.read()
        writer.close()
        await writer.wait_closed()


async def test_a_command_runs_inside_a_container(plane: ContainerPlane):
    """ContainerExec: Running -> Finished, with its exit code and its output."""
    await shell(plane, "web", "sleep 300", env=[EnvVar(name="COLOR", value="red")])
    spec = ContainerExecSpec(
        container_name="web",
        command="/bin/sh",
        args=["-c", "echo $COLOR $SIZE; exit 4"],
        env=[EnvVar(name="SIZE", value="xl")],
    )
    await plane.client.create(ContainerExec(metadata=ObjectMeta(name="look"), spec=spec))
    done = await plane.until_object(ContainerExec, "look", lambda each: each.status and each.status.state == "Finished")
    assert done.status.exit_code == 4
    assert output(done.status.std_out_file) == "red xl"


async def test_volumes_keep_files_between_containers(plane: ContainerPlane, runner: CommandLineRunner):
    name = f"st-{name_suffix()}"
    volume = ContainerVolume(metadata=ObjectMeta(name="data"), spec=ContainerVolumeSpec(name=name, persistent=False))
    await plane.client.create(volume)
    await plane.until_object(ContainerVolume, "data", lambda each: each.status and each.status.state == "Ready")
    mounts = [VolumeMount(type="volume", source=name, target="/data")]
    await shell(plane, "writer", "echo kept > /data/file", volume_mounts=mounts)
    await plane.until_state("writer", "Exited")
    await shell(plane, "reader", "test $(cat /data/file) = kept", volume_mounts=mounts)
    assert (await plane.until_state("reader", "Exited")).exit_code == 0
    await plane.client.delete(await plane.client.get(ContainerVolume, Key("", "data")))
    for each in ("writer", "reader"):
        await plane.delete(Container, each)
    await plane.until_gone(ContainerVolume, "data")
    assert await runner.find_volume(name) is None


async def test_an_image_is_built_and_run(plane: ContainerPlane, tmp_path):
    """Building -> Starting -> Exited, with the output of the build in its file."""
    (tmp_path / "Dockerfile").write_text(f'FROM {IMAGE}\nRUN ["/bin/sh", "-c", "echo built > /made"]\n')
    build = ContainerBuildContext(context=str(tmp_path), dockerfile=str(tmp_path / "Dockerfile"))
    with temporary_image() as tag:
        await shell(plane, "built", "test $(cat /made) = built", image=tag, build=build)
        status = await plane.until_state("built", "Exited")
        assert status.exit_code == 0
        assert status.startup_std_out_file is not None
        assert "/made" in await asyncio.to_thread(Path(status.startup_std_out_file).read_text)


async def test_a_persistent_container_is_adopted_by_the_next_control_plane(tmp_path):
    """Rule: the same lifecycle key reuses a container that runs; mode cleanup removes it."""
    name = f"st-{name_suffix()}"
    seen: list[str | None] = []
    for _ in range(2):
        async with runtime("podman", tmp_path) as runner, container_plane(tmp_path, runner) as plane:
            await shell(plane, "db", "sleep 300", mode="persistent", container_name=name)
            seen.append((await plane.until_state("db", "Running")).container_id)
    assert seen[0] == seen[1]
    async with runtime("podman", tmp_path) as runner, container_plane(tmp_path, runner) as plane:
        await plane.container("db", image=IMAGE, mode="cleanup", container_name=name, added=ADDED)
        await plane.until_state("db", "Running")
        await plane.delete(Container, "db")
        assert await runner.find(name) is None


async def test_a_container_reaches_a_process_of_the_host_by_service_name_and_port(tmp_path, runner):
    """The process listens on the loopback address alone; the proxy offers it at the gateway of the network."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nfrom the host")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, RelayProxy() as proxy, container_plane(tmp_path, runner, proxy=proxy) as plane:
        await plane.service("host-api", "127.0.0.1", port)
        script = (
            f"for i in 1 2 3 4 5 6 7 8 9; do wget -q -O - http://host-api:{port}/ && exit 0; sleep 0.5; done; exit 1"
        )
        await shell(plane, "client", script)
        status = await plane.until_state("client", "Exited")
        assert status.steersman is not None
        assert status.exit_code == 0, output(status.steersman.std_err_file)
        file = status.steersman.std_out_file
        await eventually(lambda: output(file) == "from the host")


async def states_until(watch: Any, name: str, last: str) -> list[str]:
    """The states of an object from its current one until another, each once."""
    states: list[str] = []
    async with asyncio.timeout(30):
        async for event in watch:
            if event.object.key.name == name and event.object.status.state not in states[-1:]:
                states.append(event.object.status.state)
            if states[1:] and states[-1] == last:
                break
    return states


async def test_a_volume_is_pending_until_new_controllers_have_found_it(tmp_path, runner):
    """ContainerVolume: Ready -> Pending -> Ready, when controllers start on a server that has its objects."""
    name = f"st-{name_suffix()}"
    volume = ContainerVolume(metadata=ObjectMeta(name="data"), spec=ContainerVolumeSpec(name=name, persistent=False))
    async with ControlPlane(resources=KINDS, controllers=["garbage-collector-controller"]) as server:
        async with container_controllers(server.client, tmp_path, runner) as plane:
            await plane.client.create(volume)
            await plane.until_object(ContainerVolume, "data", lambda each: each.status and each.status.state == "Ready")
        watch = server.client.watch(ContainerVolume)
        async with watch as events, container_controllers(server.client, tmp_path, runner) as plane:
            assert await states_until(events, "data", "Ready") == ["Ready", "Pending", "Ready"]
            await plane.delete(ContainerVolume, "data")


async def test_new_controllers_stop_a_container_whose_last_known_state_is_building(tmp_path, runner):
    """Building -> Pending -> Stopping -> Exited: the control plane was killed before it wrote the start."""
    name = f"st-{name_suffix()}"
    # After a build without a step, Podman's service leaves the working container.
    (tmp_path / "Dockerfile").write_text(f"FROM {IMAGE}\nENV MADE=here\n")
    build = ContainerBuildContext(context=str(tmp_path), dockerfile=str(tmp_path / "Dockerfile"))
    with temporary_image() as tag:
        spec = {"build": build, "image": tag, "mode": "persistent", "container_name": name}
        try:
            async with ControlPlane(resources=KINDS, controllers=["garbage-collector-controller"]) as server:
                async with container_controllers(server.client, tmp_path, runner) as plane:
                    await shell(plane, "db", "trap 'exit 5' TERM; while :; do sleep 0.1; done", **spec)
                    await plane.until_state("db", "Running")
                await server.client.patch(
                    Container, Key("", "db"), MergePatch({"status": {"state": "Building"}}), subresource="status"
                )
                await server.client.patch(Container, Key("", "db"), MergePatch({"spec": {"stop": True}}))
                watch = server.client.watch(Container)
                async with watch as events, container_controllers(server.client, tmp_path, runner) as plane:
                    states = await states_until(events, "db", "Exited")
                    # It runs until the stop begins, and a status may say so.
                    states = [each for each in states if each != "Running"]
                    assert states == ["Building", "Pending", "Stopping", "Exited"]
                    await plane.delete(Container, "db")
        finally:
            await runner.remove(name)
