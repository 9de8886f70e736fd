"""Runs a command in the foreground of this terminal, as the user of a service: see `zygote.program`.

Guarantees
- The command starts in the way that services start: its user changes in the process that becomes the command, and its
  environment is applied after that.
- A command of another user gets a terminal of its own instead of this one, which this program copies from and to. So it
  can neither type into this terminal nor read what is typed there later.
- Standard streams that are no terminals are passed on, so pipes and files work; the command gets no other descriptor.
- The terminal has its former modes at the end, whatever happened.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from steersman.workloads.processes.protocol import foreground_message
from steersman.workloads.processes.terminal_relay import TerminalRelay

_STREAMS = (0, 1, 2)
#: Starts the package of the zygote by itself, as `zygote_runner` does.
_PROGRAM = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from zygote.foreground import main; main()"
#: The exit codes of a shell for a command that is missing, or cannot be executed.
_MISSING, _NOT_EXECUTABLE = 127, 126


class ForegroundCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command, and what it starts with."""

    program: str
    args: Sequence[str] = ()
    env: Mapping[str, str]
    folder: str
    user: str = ""
    """As in `Launch`."""


class CannotRun(Exception):
    """The command cannot be started; ``code`` is the exit code that a shell has for it."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


async def run_in_foreground(command: ForegroundCommand) -> int:
    """Run a command until it ends; returns its exit code, as a shell does. Raises `CannotRun`."""
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        terminals = [each for each in _STREAMS if command.user and os.isatty(each)]
        relay = stack.enter_context(TerminalRelay(terminals)) if terminals else None
        process = await _start(command, relay, terminals)
        try:
            for number in (signal.SIGTERM, signal.SIGHUP, *((signal.SIGINT, signal.SIGQUIT) if command.user else ())):
                loop.add_signal_handler(number, _forward, process, number)
            if not command.user:
                # The terminal also sends Ctrl-C to the command, which handles it.
                loop.add_signal_handler(signal.SIGINT, lambda: None)
            code = await (relay.copy_until(process.wait()) if relay is not None else process.wait())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return code if code >= 0 else 128 - code


async def _start(
    command: ForegroundCommand, relay: TerminalRelay | None, terminals: Sequence[int]
) -> asyncio.subprocess.Process:
    """Start the process that becomes the command, and wait until it has."""
    loop = asyncio.get_running_loop()
    words = (command.program, command.args, command.env)
    message = foreground_message(*words, folder=command.folder, user=command.user, terminals=terminals)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        ours.setblocking(False)
        streams = [relay.slave if relay is not None and each in terminals else None for each in _STREAMS]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", "-c", _PROGRAM, str(theirs.fileno())),
            pass_fds=(theirs.fileno(),),
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
        )
        theirs.close()
        if relay is not None:
            relay.close_slave()
        with suppress(ConnectionError):
            await loop.sock_sendall(ours, message)
        report = b""
        with suppress(ConnectionError):
            while piece := await loop.sock_recv(ours, 4096):
                report += piece
    if not report:
        return process
    await process.wait()
    number, _, reason = os.fsdecode(report).partition(" ")
    if int(number) == errno.ENOENT and reason.startswith(f"{command.program}: "):
        raise CannotRun(f"{command.program}: command not found", _MISSING)
    raise CannotRun(f"cannot run {command.program}: {reason.removeprefix(f'{command.program}: ')}", _NOT_EXECUTABLE)


def _forward(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)
