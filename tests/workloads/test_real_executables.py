"""Executables on real processes: each rule that needs the kernel once."""

from __future__ import annotations

import os
import sys

import pytest
from workloads.plane import Plane, workloads_plane
from workloads.test_processes import STUBBORN, marked, until_logged

from samples.eventually import eventually
from steersman.objects import Key
from steersman.workloads.kinds import EnvVar, Executable, ProcessAdditions
from steersman.workloads.processes import PersistentProcessFolder, ZygoteRunner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are started on Linux alone")


@pytest.fixture
async def plane(tmp_path):
    async with (
        ZygoteRunner() as runner,
        workloads_plane(tmp_path, runner, ambient={"PATH": os.environ["PATH"]}) as plane,
    ):
        yield plane


async def shell(plane: Plane, folder, script: str, name: str = "web", **options: object) -> Executable:
    env = [EnvVar(name="MARK", value=str(folder))]
    return await plane.executable(name, executable_path="sh", args=["-c", script], env=env, **options)


async def test_a_program_runs_logs_and_finishes(plane: Plane, tmp_path):
    await shell(plane, tmp_path, "echo $MARK; exit 3")
    status = await plane.until_state("web", "Finished")
    assert status.exit_code == 3
    assert status.std_out_file is not None
    with open(status.std_out_file) as file:  # noqa: ASYNC230, PTH123
        assert file.read().endswith(f"Z {tmp_path}\n")


async def test_the_pid_and_the_start_time_name_one_process(plane: Plane, tmp_path):
    await shell(plane, tmp_path, "sleep 300")
    status = await plane.until_state("web", "Running")
    assert status.pid in marked(tmp_path)
    assert status.steersman is not None
    assert status.steersman.start_time is not None
    assert status.startup_timestamp is not None
    assert abs((status.startup_timestamp - status.steersman.start_time).total_seconds()) < 60


async def test_a_stop_escalates_until_no_descendant_is_left(plane: Plane, tmp_path):
    """SIGTERM, the timeout, then SIGKILL for the program and its daemon, which both ignore SIGTERM."""
    await shell(plane, tmp_path, STUBBORN, added=ProcessAdditions(stop_timeout="300ms"))
    status = await plane.until_state("web", "Running")
    from pathlib import Path

    await until_logged(Path(status.std_out_file or ""), "daemon")
    await until_logged(Path(status.std_out_file or ""), "ready")
    await plane.stop("web")
    status = await plane.until_state("web", "Terminated")
    assert status.exit_code == -9
    assert marked(tmp_path) == set()


async def test_a_deleted_executable_is_gone_only_with_its_descendants(plane: Plane, tmp_path):
    await shell(plane, tmp_path, STUBBORN, added=ProcessAdditions(stop_timeout="300ms"))
    await plane.until_state("web", "Running")
    await eventually(lambda: len(marked(tmp_path)) >= 3)
    await plane.client.delete(Executable, Key("", "web"))
    await plane.until_gone("web")
    assert marked(tmp_path) == set()
    assert list((tmp_path / "logs").iterdir()) == []


async def test_a_program_that_does_not_exist_fails_to_start(plane: Plane):
    await plane.executable(executable_path="no-such-program")
    status = await plane.until_state("web", "FailedToStart")
    assert status.steersman is not None
    assert status.steersman.message == "No such file or directory: no-such-program"


@pytest.mark.parametrize("name", ["é" * 3000, "x" + "é" * 3000], ids=["even", "odd"])
async def test_a_name_that_is_too_long_for_its_message_fails_to_start(plane: Plane, name):
    """The shim cuts the message, in one of these names in the middle of a letter."""
    await plane.executable(executable_path=name)
    status = await plane.until_state("web", "FailedToStart")
    assert status.steersman is not None
    assert (status.steersman.message or "").startswith("File name too long: ")


async def test_env_files_are_relative_to_the_working_directory(plane: Plane, tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / ".env").write_text("GREETING='hello there'\nMODE=file\n")
    await shell(plane, tmp_path, 'echo "$GREETING $MODE" > result', working_directory="app", env_files=[".env"])
    await plane.until_state("web", "Finished")
    assert (tmp_path / "app" / "result").read_text() == "hello there file\n"


async def test_a_persistent_process_survives_the_control_plane_and_is_adopted(tmp_path):
    store = PersistentProcessFolder(tmp_path / "p")
    ambient = {"PATH": os.environ["PATH"]}
    async with ZygoteRunner() as runner, workloads_plane(tmp_path, runner, persistent=store, ambient=ambient) as plane:
        await shell(plane, tmp_path, "sleep 300", mode="persistent")
        first = await plane.until_state("web", "Running")
        await eventually(lambda: (known := store.find("web")) is not None and known.pid == first.pid)
    assert first.pid in marked(tmp_path)
    async with ZygoteRunner() as runner, workloads_plane(tmp_path, runner, persistent=store, ambient=ambient) as plane:
        await shell(plane, tmp_path, "sleep 300", mode="persistent")
        second = await plane.until_state("web", "Running")
        assert second.pid == first.pid
        assert (second.std_out_file, second.startup_timestamp) == (first.std_out_file, first.startup_timestamp)
        await plane.stop("web")
        await plane.until_state("web", "Terminated")
    assert marked(tmp_path) == set()
    assert list((tmp_path / "p").iterdir()) == []


async def test_what_is_remembered_is_readable_by_its_owner_alone(tmp_path):
    store = PersistentProcessFolder(tmp_path / "p")
    async with (
        ZygoteRunner() as runner,
        workloads_plane(tmp_path, runner, persistent=store, ambient={"PATH": os.environ["PATH"]}) as plane,
    ):
        await shell(plane, tmp_path, "sleep 300", mode="persistent")
        await plane.until_state("web", "Running")
        folder = tmp_path / "p"
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {each.stat().st_mode & 0o777 for each in folder.iterdir()} == {0o600}
        await plane.stop("web")
        await plane.until_state("web", "Terminated")
