"""What killed sessions leave in a container runtime: the reaper, the next session and steersman down remove it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from workloads.test_container_runner import of_session, processes, shell

from bench.busybox_image import IMAGE, make_image
from samples.container_runtimes import CREATE_ARGS, PODMAN_PROGRAM, needs_podman, podman, runtime, temporary_image
from samples.eventually import eventually
from steersman.aio import Supervisor, name_suffix, randomness
from steersman.workloads import containers
from steersman.workloads.containers import (
    DOCKER,
    PODMAN,
    CommandLineRunner,
    ImageBuild,
    InUse,
    RuntimeUnavailable,
    StartupLog,
    container_processes,
)
from steersman.workloads.containers.container_processes import (
    BUILD_SESSION,
    COMMAND_SESSION,
    end_builds,
    end_long_commands,
    is_running,
)
from steersman.workloads.containers.container_record import ContainerRecord
from steersman.workloads.containers.creator import SESSION, Creator, session_labels
from steersman.workloads.processes import ZygoteRunner

pytestmark = needs_podman
REAPER = str(Path(containers.__file__).with_name("reaper.py"))


@pytest.fixture(autouse=True)
def image() -> None:
    make_image()


def gone() -> Creator:
    """A control plane that has ended."""
    return msgspec.structs.replace(Creator.here(), start="1")


def labels_of(session: str, creator: Creator | None = None) -> list[str]:
    """The options that label something as made by a control plane, by default one that is gone."""
    labels = session_labels(session, creator or gone())
    return [word for item in labels.items() for word in ("--label", "=".join(item))]


@asynccontextmanager
async def long_command(verb: str, variable: str, session: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program with the words and the environment of a long command of a session."""
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", "sleep 300; true", verb), env={**os.environ, variable: session}, start_new_session=True
    )
    try:
        # The kernel shows them only after the start has returned.
        environment = Path(f"/proc/{process.pid}/environ")
        await eventually(lambda: f"{variable}={session}" in environment.read_text())
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def test_a_network_in_use_does_not_keep_the_rest_of_what_a_killed_session_left(tmp_path):
    """It is tried again: a later harvest removes it, and only then is the session forgotten."""
    session, record = f"left-{name_suffix()}", tmp_path / "containers"
    labels = labels_of(session)
    for kind in ("network", "volume"):
        podman(kind, "create", *labels, session)
    podman("create", "--network", session, "--name", f"user-{session}", IMAGE, "true")
    try:
        ContainerRecord(record, "podman").begin(session, gone())
        async with ZygoteRunner() as runners:
            runner = CommandLineRunner(PODMAN, runners, session="later", program=PODMAN_PROGRAM, record=record)
            with pytest.raises(InUse, match=session):
                await runner.harvest()
            assert of_session(session) == [session, f"user-{session}"], "the volume is gone, and the network is not"
            assert session in record.read_text()
            podman("rm", "--force", f"user-{session}")
            await runner.harvest()
            assert of_session(session) == []
            assert not record.exists()
    finally:
        podman("rm", "--force", "--ignore", f"user-{session}")
        if of_session(session):
            podman("network", "rm", session)


async def test_what_another_folder_left_in_use_is_no_problem_of_this_one(tmp_path):
    """Otherwise the network of one project would keep steersman down of every other from its end."""
    session = f"left-{name_suffix()}"
    labels = labels_of(session)
    podman("network", "create", *labels, session)
    podman("create", "--network", session, "--name", f"user-{session}", IMAGE, "true")
    try:
        async with runtime("podman", tmp_path) as runner:
            assert session not in await runner.harvest()
    finally:
        podman("rm", "--force", f"user-{session}")
        podman("network", "rm", session)


async def test_a_session_that_cannot_be_judged_is_kept_until_it_is_known_to_be_gone(tmp_path):
    """As after a restart of a dev container, with the host's runtime: only the lock of the folder tells."""
    session, record = f"left-{name_suffix()}", tmp_path / "containers"
    # In another pid namespace.
    creator = msgspec.structs.replace(Creator.here(), namespace="1")
    podman("volume", "create", *labels_of(session, creator), session)
    try:
        ContainerRecord(record, "podman").begin(session, creator)
        async with ZygoteRunner() as runners:
            runner = CommandLineRunner(PODMAN, runners, session="later", program=PODMAN_PROGRAM, record=record)
            assert session not in await runner.harvest()
            assert session in record.read_text()
            assert session in await runner.harvest(is_alone=True)
        assert not record.exists()
    finally:
        podman("volume", "rm", "--force", session)


@pytest.mark.parametrize("is_gone", [False, True], ids=["running", "gone"])
async def test_a_harvest_ends_long_commands_only_of_sessions_that_are_gone(tmp_path, is_gone):
    """Another session of the folder may run: steersman dcp takes no lock."""
    session, record = f"long-{name_suffix()}", tmp_path / "containers"
    ContainerRecord(record, "podman").begin(session, gone() if is_gone else Creator.here())
    async with long_command("events", COMMAND_SESSION, session) as command, ZygoteRunner() as runners:
        runner = CommandLineRunner(PODMAN, runners, session="later", program=PODMAN_PROGRAM, record=record)
        await runner.harvest()
        if is_gone:
            async with asyncio.timeout(60):
                assert await command.wait() == -signal.SIGKILL
            assert not record.exists()
        else:
            assert is_running(command.pid)
            assert session in record.read_text()


async def test_only_builds_with_steps_are_waited_for():
    """Containers are stopped afterwards: a session with Docker must not wait for its builds."""
    session = f"long-{name_suffix()}"
    async with (
        long_command("build", BUILD_SESSION, session) as podman_build,
        long_command("build", COMMAND_SESSION, session) as docker_build,
        Supervisor() as tasks,
    ):
        ending = tasks.start(asyncio.to_thread(end_long_commands, session), name="end")
        async with asyncio.timeout(60):
            assert await docker_build.wait() == -signal.SIGKILL
            assert not ending.done()
            assert is_running(podman_build.pid), "it may still remove its working container"
            assert await podman_build.wait() == -signal.SIGKILL
            await ending


async def test_another_process_with_the_pid_of_a_build_is_left_alone():
    """The build has ended meanwhile: the start time tells."""
    async with long_command("build", BUILD_SESSION, "other") as command:
        began = asyncio.get_running_loop().time()
        await asyncio.to_thread(end_builds, {command.pid: "1"})
        assert asyncio.get_running_loop().time() - began < container_processes._BUILD_END
        container_processes._end_group(command.pid, "1")
        assert is_running(command.pid)
        container_processes._end_group(command.pid, container_processes.start_time(command.pid))
        async with asyncio.timeout(60):
            assert await command.wait() == -signal.SIGKILL


async def test_a_harvest_waits_for_a_command_that_a_killed_session_left(tmp_path):
    """A command may outlive control plane and reaper, and create its container after the look."""
    session, record = f"late-{name_suffix()}", tmp_path / "containers"
    labels = labels_of(session)
    ContainerRecord(record, "podman").begin(session, gone())
    # The options of podman create, for a program that waits a moment before it begins.
    script = 'sleep 1; exec podman "$@"'
    late = await asyncio.create_subprocess_exec("sh", "-c", script, "sh", "volume", "create", *labels, session)
    async with ZygoteRunner() as runners:
        runner = CommandLineRunner(PODMAN, runners, session="later", program=PODMAN_PROGRAM, record=record)
        await runner.harvest()
    await late.wait()
    assert of_session(session) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
async def test_a_command_of_another_user_keeps_no_session_from_its_end(tmp_path):
    """Every user can read the label of a session in the process list, and write it into arguments."""
    session, record = f"forged-{name_suffix()}", tmp_path / "containers"
    ContainerRecord(record, "podman").begin(session, gone())
    words = ("sh", "-c", "read line", "sh", *labels_of(session))
    pipe = asyncio.subprocess.PIPE
    forged = await asyncio.create_subprocess_exec(*words, stdin=pipe, user=65534, group=65534, extra_groups=[])
    reaper = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", REAPER, f"{SESSION}={session}", *PODMAN_PROGRAM), stdin=pipe
    )
    async with asyncio.timeout(120):
        await reaper.communicate(b"done\n")
    assert reaper.returncode == 0
    async with ZygoteRunner() as runners:
        runner = CommandLineRunner(PODMAN, runners, session="later", program=PODMAN_PROGRAM, record=record)
        await runner.harvest()
    assert not record.exists()
    assert is_running(forged.pid)
    await forged.communicate(b"end\n")


async def test_a_session_whose_commands_all_failed_is_forgotten(tmp_path):
    """Otherwise steersman down would look for its containers in a Docker that does not run."""
    record, docker = tmp_path / "containers", tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho Cannot connect to the Docker daemon. >&2\nexit 1\n")
    docker.chmod(0o755)
    async with ZygoteRunner() as runners:
        runner = CommandLineRunner(DOCKER, runners, session="off", program=(str(docker),), record=record)
        with pytest.raises(RuntimeUnavailable):
            await runner.create_network("off", ipv6=False, labels={}, bound=True)
        assert "off" in record.read_text()
        # It would look for minutes.
        os.kill(runner.reaper.pid or 0, signal.SIGKILL)
        await runner.reaper.close()
    assert not record.exists()


async def test_a_session_is_recorded_once_its_runtime_is_installed(tmp_path):
    """It can make something from then on: without its record, steersman down would not look for that after a kill."""
    record, docker = tmp_path / "containers", tmp_path / "docker"
    async with ZygoteRunner() as runners:
        runner = CommandLineRunner(DOCKER, runners, session="new", program=(str(docker),), record=record)
        await runner.reaper.guard()
        assert not record.exists()
        docker.write_text("#!/bin/sh\n")
        docker.chmod(0o755)
        await runner.reaper.guard()
        assert "new" in record.read_text()
        await runner.reaper.close()
    assert not record.exists()


async def test_the_reaper_waits_for_a_command_that_the_control_plane_did_not_name(tmp_path):
    """A kill between the start of the command and its line in the pipe must not leave its container."""
    session = f"late-{name_suffix()}"
    label = f"{SESSION}={session}"
    script = 'sleep 3; exec podman "$@"'
    late = await asyncio.create_subprocess_exec("sh", "-c", script, "sh", "volume", "create", "--label", label, session)
    reaper = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", REAPER, label, *PODMAN_PROGRAM), stdin=asyncio.subprocess.DEVNULL
    )
    await late.wait()
    async with asyncio.timeout(60):
        assert await reaper.wait() == 0
    assert of_session(session) == []


async def test_the_reaper_of_a_runtime_that_is_not_installed_any_more_ends_at_once(tmp_path, caplog):
    """It cannot answer later: the reaper must not stay for ten minutes. The record of the session stays."""
    record, program = tmp_path / "containers", tmp_path / "podman"
    program.write_text(f'#!/bin/sh\nexec {" ".join(PODMAN_PROGRAM)} "$@"\n')
    program.chmod(0o755)
    async with ZygoteRunner() as runners:
        runner = CommandLineRunner(
            PODMAN,
            runners,
            session=f"gone-{name_suffix()}",
            program=(str(program),),
            create_args=CREATE_ARGS,
            record=record,
        )
        identity = await runner.create(shell("sleep 300", stop_timeout=0.0))
        try:
            await runner.start(identity)
            program.unlink()
            began = asyncio.get_running_loop().time()
            await runner.reaper.close()
            assert asyncio.get_running_loop().time() - began < 10
            assert identity in record.read_text()
            assert f"{program} is not installed any more" in caplog.text
            await eventually(lambda: not processes(identity))
        finally:
            podman("rm", "--force", "--time", "0", identity)


async def test_down_ends_the_processes_of_a_runtime_that_is_not_installed_any_more(tmp_path):
    """The runtime cannot do it. The record stays: if the runtime is only missing in PATH, a later look finds the rest."""
    record = tmp_path / "containers"
    async with runtime("podman", tmp_path) as runner, ZygoteRunner() as runners:
        identity = await runner.create(shell("sleep 300", stop_timeout=0.0))
        await runner.start(identity)
        record.write_text(f"podman {identity}\n")
        missing = (str(tmp_path / "podman"),)
        later = CommandLineRunner(PODMAN, runners, session="later", program=missing, record=record)
        for is_alone in (False, True):
            assert processes(identity)
            with pytest.raises(RuntimeUnavailable, match="cannot be started"):
                await later.harvest(is_alone=is_alone)
        await eventually(lambda: not processes(identity))
        assert identity in record.read_text()


#: A control plane that builds an image, and follows events meanwhile.
_BUILDER = """
import asyncio, sys
from pathlib import Path
from steersman.workloads.containers import PODMAN, CommandLineRunner, ImageBuild, StartupLog
from steersman.workloads.processes import ZygoteRunner

async def listen(runner):
    async for _ in runner.events():
        pass

async def main(session, folder, tag):
    async with ZygoteRunner() as runners:
        program, record = ("podman", "--runtime", "runc"), Path(folder) / "containers"
        runner = CommandLineRunner(PODMAN, runners, session=session, program=program, record=record)
        events = asyncio.create_task(listen(runner))
        await runner.build(ImageBuild(context=folder, tags=(tag,)), StartupLog(folder + "/out", folder + "/err"))

asyncio.run(main(*sys.argv[1:]))
"""


def running(*words: str) -> list[int]:
    """The processes with one of these arguments."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if set(words) & set(each.read_text().split("\0")):
                found.append(int(each.parent.name))
    return found


def working_containers(base: str) -> list[str]:
    """The containers in which Podman builds images from another one, which has given them its name."""
    name = base.partition("/")[2].partition(":")[0]
    shown = podman("ps", "--all", "--external", "--format", "{{.Names}}").split()
    return [each for each in shown if each.startswith(f"{name}-working-container")]


@pytest.mark.parametrize("how", ["cancelled", "killed", "killed with its reaper"])
async def test_a_build_that_ends_early_leaves_neither_a_step_nor_a_working_container(tmp_path, how):
    """Podman that is killed would leave both for good. After a kill -9, the events end too, by the reaper or a harvest."""
    # No other test has this argument.
    seconds = f"{300 + randomness().random():.9f}"
    with temporary_image() as base, temporary_image() as tag:
        podman("tag", IMAGE, base)
        (tmp_path / "Dockerfile").write_text(f'FROM {base}\nRUN ["/bin/sleep", "{seconds}"]\n')
        if how == "cancelled":
            async with runtime("podman", tmp_path) as runner, Supervisor() as tasks:
                log = StartupLog(str(tmp_path / "out"), str(tmp_path / "err"))
                work = runner.build(ImageBuild(context=str(tmp_path), tags=(tag,)), log)
                tasks.start(work, name="build")
                await eventually(lambda: running(seconds), within=60)
                tasks.cancel()
            assert not running(tag, seconds)
        else:
            session = f"build-{name_suffix()}"
            plane = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", _BUILDER, session, str(tmp_path), tag),
                # As in a service of another session: its mark stays, by which that session finds its processes.
                env={**os.environ, "STEERSMAN_SESSION": "outer"},
            )
            try:
                await eventually(lambda: running(seconds), within=60)
                events = [pid for pid in running("events") if parent(pid) == plane.pid]
                assert events
                assert all(b"STEERSMAN_SESSION=outer" in environment(pid) for pid in events)
                if how != "killed":
                    for pid in running(f"{SESSION}={session}"):
                        os.kill(pid, signal.SIGKILL)
            finally:
                plane.kill()
                await plane.wait()
            if how != "killed":
                async with ZygoteRunner() as runners:
                    record = tmp_path / "containers"
                    assert session in record.read_text()
                    await CommandLineRunner(PODMAN, runners, session="later", record=record).harvest()
            await eventually(lambda: not running(tag, seconds), within=60)
            await eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in events), within=60)
        await eventually(lambda: not working_containers(base), within=60)


def environment(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
