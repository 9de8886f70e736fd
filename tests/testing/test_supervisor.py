"""The supervisor process by itself, with small programs in place of an engine's."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from steersman.testing import EngineError
from steersman.testing.engine.processes import supervised

# Writes its name when it is asked to end, which shows the order; `stubborn` ones never hear it.
PROGRAM = """
import pathlib, signal, sys, time
name, journal, stubborn = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3] == "stubborn"
def end(*_):
    if not stubborn:
        with journal.open("a") as file:
            file.write(name + "\\n")
        sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("hello from", name, flush=True)
pathlib.Path(str(journal) + "." + name).touch()
while True:
    time.sleep(60)
"""


def _argv(name: str, folder: Path, manner: str = "obedient") -> list[str]:
    return [sys.executable, "-I", "-S", "-c", PROGRAM, name, str(folder / "journal"), manner]


async def _started(folder: Path, *names: str) -> None:
    async with asyncio.timeout(60):
        while not all((folder / f"journal.{name}").exists() for name in names):  # noqa: ASYNC110 - files set no event
            await asyncio.sleep(0.01)


def _exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


@pytest.fixture
def engine_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "engine"
    (folder / "logs").mkdir(parents=True)
    return folder


async def test_the_end_of_the_block_ends_all_by_stage_and_removes_the_folder(engine_folder, tmp_path) -> None:
    """Higher stages go first, whatever the order of start, also after a restart; the folder goes last."""
    pids = []
    async with supervised(folder=engine_folder, budget=20, log=None) as processes:
        for name, stage in (("manager", 2), ("etcd", 0), ("server", 1)):
            pids.append(await processes.start(name, _argv(name, tmp_path), log=None, stage=stage))
        await processes.signal("etcd", signal.SIGKILL)
        assert await processes.wait("etcd") == -signal.SIGKILL
        (tmp_path / "journal.etcd").unlink(missing_ok=True)
        pids.append(await processes.start("etcd", _argv("etcd", tmp_path), log=None, stage=0))
        await _started(tmp_path, "manager", "etcd", "server")
    assert (tmp_path / "journal").read_text().split() == ["manager", "server", "etcd"]
    assert not any(_exists(pid) for pid in pids)
    assert not engine_folder.exists()


async def test_a_program_that_ignores_term_is_killed_and_a_paused_one_hears_it(engine_folder, tmp_path) -> None:
    """No program can hold up the end for longer than the budget."""
    async with supervised(folder=engine_folder, budget=0.3, log=None) as processes:
        stubborn = await processes.start("stubborn", _argv("stubborn", tmp_path, "stubborn"), log=None, stage=0)
        paused = await processes.start("paused", _argv("paused", tmp_path), log=None, stage=1)
        await _started(tmp_path, "stubborn", "paused")
        await processes.signal("paused", signal.SIGSTOP)
    assert not _exists(stubborn)
    assert not _exists(paused)
    assert (tmp_path / "journal").read_text().split() == ["paused"]


async def test_killing_the_supervisor_kills_its_programs(engine_folder, tmp_path) -> None:
    """The kernel ends them, and later calls raise that the engine is gone."""
    async with supervised(folder=engine_folder, budget=20, log=None) as processes:
        pid = await processes.start("server", _argv("server", tmp_path, "stubborn"), log=None, stage=0)
        await _started(tmp_path, "server")
        watched = os.pidfd_open(pid)
        os.kill(_parent(pid), signal.SIGKILL)
        with pytest.raises(EngineError, match=r"supervisor .* has exited"):
            await processes.wait("server")
        with pytest.raises(EngineError, match="start a new engine"):
            await processes.signal("server", signal.SIGTERM)
        # The system's reaper may take its time over the zombie; a pidfd is ready once the process has ended.
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(watched, ended.set)
        async with asyncio.timeout(60):
            await ended.wait()
        asyncio.get_running_loop().remove_reader(watched)
        os.close(watched)


async def test_logs_are_appended_and_can_be_kept(engine_folder, tmp_path) -> None:
    """A restarted program's log shows both lives; what is kept survives the folder."""
    log = engine_folder / "logs" / "server.log"
    (engine_folder / "data").mkdir()
    (engine_folder / "kubeconfig").touch()
    async with supervised(folder=engine_folder, budget=20, log=engine_folder / "logs" / "own.log") as processes:
        for _ in range(2):
            await processes.start("server", _argv("server", tmp_path), log=log, stage=0)
            await _started(tmp_path, "server")
            (tmp_path / "journal.server").unlink()
            await processes.signal("server", signal.SIGTERM)
            assert await processes.wait("server") == 0
        await processes.keep(engine_folder / "logs")
    assert log.read_text() == "hello from server\n" * 2
    assert [entry.name for entry in engine_folder.iterdir()] == ["logs"]


async def test_a_request_that_cannot_be_met_says_why(engine_folder, tmp_path) -> None:
    """A missing program, a second start and an unknown name are errors of that request alone."""
    async with supervised(folder=engine_folder, budget=20, log=None) as processes:
        with pytest.raises(EngineError, match=r"cannot start nowhere: .*No such file"):
            await processes.start("nowhere", ["/nonexistent/program"], log=None, stage=0)
        await processes.start("server", _argv("server", tmp_path), log=None, stage=0)
        with pytest.raises(EngineError, match=r"cannot start server: .*already running"):
            await processes.start("server", _argv("server", tmp_path), log=None, stage=0)
        with pytest.raises(EngineError, match=r"cannot signal unknown: .*was started"):
            await processes.signal("unknown", signal.SIGTERM)
