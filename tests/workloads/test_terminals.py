"""Terminals of programs, on real processes: attach, type, resize, detach, and what the log has."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from pathlib import Path

import pytest
from workloads.plane import Plane, workloads_plane
from workloads.test_processes import marked, until_logged

from samples.eventually import eventually
from steersman.objects import Key
from steersman.workloads import TerminalConnection
from steersman.workloads.kinds import EnvVar, Executable, ExecutableStatus, ProcessAdditions
from steersman.workloads.kinds.environment import TerminalSpec
from steersman.workloads.processes import ZygoteRunner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are started on Linux alone")


@pytest.fixture
async def plane(tmp_path):
    async with (
        ZygoteRunner() as runner,
        workloads_plane(tmp_path, runner, ambient={"PATH": os.environ["PATH"]}) as plane,
    ):
        yield plane


async def start(plane: Plane, folder: Path, *command: str, terminal: TerminalSpec | None = None) -> ExecutableStatus:
    env = [EnvVar(name="MARK", value=str(folder)), EnvVar(name="PS1", value="$ ")]
    program, *args = command
    spec = {"executable_path": program, "args": args, "env": env, "terminal": terminal or TerminalSpec()}
    await plane.executable("web", added=ProcessAdditions(stop_timeout="1s"), **spec)
    return await plane.until("web", lambda status: status.terminal_socket_path and status.state == "Running")


async def until_shown(terminal: TerminalConnection, text: str, seen: str = "") -> str:
    """Read until the terminal has shown a text. Returns everything that it showed."""
    async with asyncio.timeout(60):
        while text not in seen:
            data = await terminal.read()
            assert data, seen
            seen += data.decode()
    return seen


def path_of(status: ExecutableStatus) -> str:
    return status.terminal_socket_path or ""


def contains(log: Path, text: str) -> bool:
    return text in log.read_text()


def mode_of(path: str) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


def exists(path: str) -> bool:
    return Path(path).exists()


async def test_pdb_works(plane: Plane, tmp_path):
    """A breakpoint prompts, evaluates, and lets the program go on; the log has it all without carriage returns."""
    code = "answer = 41\nbreakpoint()\nprint('the answer is', answer)\n"
    status = await start(plane, tmp_path, sys.executable, "-c", code)
    async with TerminalConnection(path_of(status)) as terminal:
        seen = await until_shown(terminal, "(Pdb) ")
        terminal.write(b"answer += 1\n")
        seen = await until_shown(terminal, "(Pdb) ", seen.rpartition("(Pdb) ")[2])
        terminal.write(b"continue\n")
        await until_shown(terminal, "the answer is 42")
        while await terminal.read():
            pass
    assert (await plane.until_state("web", "Finished")).exit_code == 0
    log = Path(status.std_out_file or "")
    await until_logged(log, "the answer is 42\n")
    assert not contains(log, "\r")


async def test_a_terminal_is_a_terminal(plane: Plane, tmp_path):
    """All three descriptors, the controlling terminal, its size, and TERM."""
    script = "tty; test -t 0 && test -t 1 && test -t 2 && echo all; : </dev/tty && echo own; stty size; echo $TERM; cat"
    status = await start(plane, tmp_path, "sh", "-c", script, terminal=TerminalSpec(cols=132, rows=50))
    async with TerminalConnection(path_of(status)) as terminal:
        seen = await until_shown(terminal, "xterm-256color\r\n")
        assert "/dev/pts/" in seen
        assert "all\r\nown\r\n50 132\r\n" in seen


async def test_a_resize_reaches_the_program(plane: Plane, tmp_path):
    script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done"
    status = await start(plane, tmp_path, "sh", "-c", script)
    async with TerminalConnection(path_of(status)) as terminal:
        await until_shown(terminal, "ready")
        terminal.resize(columns=100, rows=40)
        await until_shown(terminal, "40 100")


async def test_the_program_goes_on_after_a_detach(plane: Plane, tmp_path):
    """A second client sees the latest output and types; both can be attached at once."""
    status = await start(plane, tmp_path, "sh", "-c", "while read line; do echo got $line; done")
    async with TerminalConnection(path_of(status)) as terminal:
        terminal.write(b"one\n")
        await until_shown(terminal, "got one")
    async with TerminalConnection(path_of(status)) as terminal, TerminalConnection(path_of(status)) as other:
        await until_shown(terminal, "got one")
        terminal.write(b"two\n")
        await until_shown(terminal, "got two")
        await until_shown(other, "got two")
    assert (await plane.until_state("web", "Running")).pid in marked(tmp_path)


async def test_control_c_interrupts_the_program(plane: Plane, tmp_path):
    # short naps: a signal just before a call of sleep is seen after it
    program = "import time\nprint('ready')\nfor _ in range(3000): time.sleep(0.1)"
    status = await start(plane, tmp_path, sys.executable, "-c", program)
    async with TerminalConnection(path_of(status)) as terminal:
        await until_shown(terminal, "ready")
        terminal.write(b"\x03")
        await until_shown(terminal, "KeyboardInterrupt")
    assert (await plane.until_state("web", "Finished")).exit_code == -2


async def test_only_the_owner_can_open_the_socket_and_it_goes_with_the_program(plane: Plane, tmp_path):
    """A terminal without a reader stops neither the program nor the deletion of its Executable."""
    status = await start(plane, tmp_path, "sh", "-c", "yes | head -c 3000000; echo end; sleep 300")
    assert mode_of(path_of(status)) == 0o600
    await until_logged(Path(status.std_out_file or ""), "end")
    await plane.client.delete(Executable, Key("", "web"))
    await plane.until_gone("web")
    assert not exists(path_of(status))
    assert not marked(tmp_path)


async def test_a_client_that_does_not_read_is_detached(plane: Plane, tmp_path):
    status = await start(plane, tmp_path, "sh", "-c", "read line; yes | head -c 30000000; echo end; sleep 300")
    async with TerminalConnection(path_of(status)) as terminal:
        terminal.write(b"\n")
        log = Path(status.std_out_file or "")
        # the program may run before its log file exists
        await eventually(lambda: log.exists() and "Z end\n" in log.read_text(), within=60)


async def test_a_socket_that_cannot_be_made_fails_the_start(plane: Plane, tmp_path):
    await plane.executable("web", terminal=TerminalSpec(uds_path="/nowhere/web.tty"), executable_path="true")
    status = await plane.until_state("web", "FailedToStart")
    assert status.steersman is not None
    assert status.steersman.message == "No such file or directory: terminal /nowhere/web.tty"
    await plane.executable("other", terminal=TerminalSpec(socket_mode="connect"), executable_path="true")
    status = await plane.until_state("other", "FailedToStart")
    assert status.steersman is not None
    assert "socketMode connect is not supported" in (status.steersman.message or "")
