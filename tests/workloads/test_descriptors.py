"""What a program of the user gets from Steersman: three descriptors, and no way to speak for its shim."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from workloads.container_plane import container_plane
from workloads.plane import workloads_plane
from workloads.test_processes import Events, launch, until_gone, until_logged

from bench.busybox_image import IMAGE
from samples.container_runtimes import needs_podman, runtime, temporary_image
from samples.eventually import eventually
from steersman.workloads.kinds import (
    AddedProbe,
    AddedProbeSchedule,
    ContainerBuildContext,
    ExecProbe,
    ExecutableProbe,
    HealthProbe,
    ProbeSchedule,
    ProcessAdditions,
)
from steersman.workloads.kinds.health import ProbeProgram, ProbeTemplate
from steersman.workloads.probes import RealProber
from steersman.workloads.processes import Exited, Lost, Started, ZygoteRunner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are started on Linux alone")

#: Prints the open descriptors after the third. The shell opens none itself.
LEAKS = "i=3; while [ $i -lt 256 ]; do [ -e /proc/self/fd/$i ] && echo leak $i; i=$((i + 1)); done; echo looked"
USERS = ["", pytest.param("65534:65534:", marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root"))]


@pytest.fixture
def inheritable():
    """A descriptor of the control plane that a library has left inheritable."""
    descriptor = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    yield
    os.close(descriptor)


@pytest.mark.usefixtures("inheritable")
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("way", ["bound", "persistent", "terminal"])
async def test_a_service_has_no_other_descriptor(tmp_path: Path, user: str, way: str):
    """With its shim's control socket it could report its own end, or name another process as its own."""
    options = {"persistent": {"socket": str(tmp_path / "socket")}, "terminal": {"terminal": str(tmp_path / "tty")}}
    events = Events()
    async with ZygoteRunner() as runner:
        await runner.start(launch(tmp_path, LEAKS, user=user, folder="/", **options.get(way, {})), events)
        await events.first(Exited)
        await until_logged(tmp_path / "out", "looked")
    assert "leak" not in (tmp_path / "out").read_text()


def _probe_output(folder: Path, name: str) -> list[str]:
    return ["-c", f"({LEAKS}) > {folder}/{name}.draft; mv {folder}/{name}.draft {folder}/{name}"]


@pytest.mark.usefixtures("inheritable")
async def test_a_probe_has_no_other_descriptor(tmp_path: Path):
    schedule = AddedProbeSchedule(interval="1s", timeout="5s")
    command = ["sh", *_probe_output(tmp_path, "exec")]
    added = ProcessAdditions(health_probes=[AddedProbe(name="own", exec=ExecProbe(command=command), schedule=schedule)])
    program = ProbeProgram(executable_path="sh", args=_probe_output(tmp_path, "executable"))
    declared = HealthProbe(
        name="dcp",
        type="Executable",
        executable_probe=ExecutableProbe(executable_template=ProbeTemplate(spec=program)),
        schedule=ProbeSchedule(interval="1s"),
    )
    async with (
        ZygoteRunner() as runner,
        RealProber(runner) as prober,
        workloads_plane(tmp_path, runner, prober=prober, ambient=dict(os.environ)) as plane,
    ):
        await plane.executable(
            executable_path="sleep", args=["300"], health_probes=[declared], added=added, working_directory="/"
        )
        for name in ("exec", "executable"):
            await eventually((tmp_path / name).exists)
            assert (tmp_path / name).read_text() == "looked\n"


@needs_podman
@pytest.mark.usefixtures("inheritable")
async def test_a_container_and_its_build_have_no_other_descriptor(tmp_path: Path):
    (tmp_path / "Dockerfile").write_text(f"FROM {IMAGE}\nRUN ({LEAKS}) > /built\n")
    build = ContainerBuildContext(context=str(tmp_path), dockerfile=str(tmp_path / "Dockerfile"))
    with temporary_image() as tag:
        async with runtime("podman", tmp_path) as runner, container_plane(tmp_path, runner) as plane:
            script = f'test "$(cat /built)" = looked && test "$({LEAKS})" = looked'
            await plane.container("web", image=tag, build=build, command="/bin/sh", args=["-c", script])
            assert (await plane.until_state("web", "Exited")).exit_code == 0


@pytest.mark.parametrize(
    "data", [b"attached 1 1 1\n" + b"x" * (1 << 20), b"attached 1 1 1\nattached one two\n", b"attached 1\n", b"hello\n"]
)
async def test_what_a_shim_never_sends_ends_the_connection(tmp_path: Path, data: bytes):
    """A line without an end must not fill the memory of the control plane."""
    ended = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            writer.write(data)
            await writer.drain()
            # More never comes: only the other side ends the connection.
            await reader.read()
        writer.close()
        ended.set()

    events = Events()
    async with ZygoteRunner() as runner, await asyncio.start_unix_server(answer, tmp_path / "socket"):
        assert await runner.attach(str(tmp_path / "socket"), events) is not None
        await events.first(Lost)
        async with asyncio.timeout(60):
            await ended.wait()


@pytest.mark.parametrize("order", [b"stop now please\n", b"signal\n", b"x" * (1 << 20)])
async def test_an_order_that_no_control_plane_sends_ends_the_connection_alone(tmp_path: Path, order: bytes):
    """The program of a persistent shim runs on, and the next control plane attaches."""
    path, events = str(tmp_path / "socket"), Events()
    async with ZygoteRunner() as runner:
        kept = await runner.start(launch(tmp_path, "sleep 300", socket=path), events)
        started = await events.first(Started)
        kept.close()
        await eventually(Path(path).exists)
        await asyncio.to_thread(_send, path, order)
        again = Events()
        process = await runner.attach(path, again)
        assert process is not None
        await eventually(lambda: again.seen)
        assert getattr(again.seen[0], "pid", 0) == getattr(started, "pid", 1)
        process.stop(signal=15, timeout=1)
        await until_gone(tmp_path)


def _send(path: str, order: bytes) -> None:
    """Send an order, and wait until the shim has closed the connection."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(path)
        with suppress(ConnectionError):
            client.sendall(order)
            while client.recv(4096):
                pass
