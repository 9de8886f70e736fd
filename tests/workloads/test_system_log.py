"""The log of what the control plane did for a workload."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from workloads.plane import Plane, workloads_plane

from steersman.objects import Key, ObjectMeta
from steersman.workloads.kinds import Dependency, Executable, ExecutableSpec, ProcessAdditions
from steersman.workloads.processes import SimulatedProcesses
from steersman.workloads.system_log import SystemLog


def executable(uid: str = "12345678-1") -> Executable:
    return Executable(metadata=ObjectMeta(name="web", uid=uid), spec=ExecutableSpec(executable_path="web"))


def lines(path: Path) -> list[str]:
    return [line.split(" ", 1)[1] for line in path.read_text().splitlines()]


@pytest.fixture
async def plane(tmp_path):
    async with workloads_plane(tmp_path, SimulatedProcesses()) as plane:
        yield plane


async def test_it_has_the_states_their_reasons_and_what_the_workload_waited_for(plane: Plane, tmp_path):
    needs_db = ProcessAdditions(depends_on=[Dependency(kind="Executable", name="db")])
    made = await plane.executable(added=needs_db)
    await plane.until("web", lambda status: status.steersman and status.steersman.waiting_for)
    await plane.executable("db")
    await plane.until_state("web", "Running")
    await plane.stop("web")
    await plane.until_state("web", "Terminated")
    path = tmp_path / "logs" / f"web-{made.uid[:8]}.system"
    found = lines(path)
    assert found[0] == "Waiting: Waits for Executable db to be created."
    assert found[-3:] == ["Running", "Stopping: Waits for the process to end.", "Terminated: Ended by signal 15."]
    await plane.client.delete(Executable, Key("", "web"))
    await plane.until_gone("web")
    assert not path.exists()


def test_only_changes_are_written_and_only_the_owner_reads_them(tmp_path):
    log = SystemLog(tmp_path)
    for _ in range(3):
        log.note(executable(), "FailedToStart", "no such file\nor folder")
    path = tmp_path / "web-12345678.system"
    assert lines(path) == ["FailedToStart: no such file or folder"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_file_is_bounded_and_a_missing_folder_stops_nothing(tmp_path):
    log = SystemLog(tmp_path)
    for number in range(30):
        log.note(executable(), "Starting", f"{number}" * 100_000)
    assert sum(each.stat().st_size for each in tmp_path.iterdir()) < 5 << 20
    log.delete(executable())
    assert list(tmp_path.iterdir()) == []
    SystemLog(tmp_path / "nowhere").note(executable(), "Running")
