"""Runs a command in the foreground of this terminal, as the user of a service: see `zygote.program`.

Guarantees
- The command starts in the way that services start: its user changes in the process that becomes the command, and its
  environment is applied after that.
- A command of another user gets a terminal of its own instead of this one, which this program copies from and to. So it
  can neither type into this terminal nor read what is typed there later.
- Standard streams that are no terminals are passed on, so pipes and files work; the command gets no other descriptor.
- A command that attaches a container ends like any program in a pipe whose reader has ended: exit code 141, no words.
- If the container does not have the command, the error is one of this program, and the words of the client are not shown.
- The terminal has its former modes after a command that a signal killed, and after one of another user.
- Signals have their former handlers after the command.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from steersman.workloads.processes.pipe_relay import PipeRelay
from steersman.workloads.processes.protocol import foreground_message
from steersman.workloads.processes.terminal_relay import TerminalRelay

_STREAMS = (0, 1, 2)
#: Starts the package of the zygote by itself, as `zygote_runner` does.
_PROGRAM = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from zygote.foreground import main; main()"
#: The exit codes of a shell for a command that is missing, or cannot be executed.
_MISSING, _NOT_EXECUTABLE = 127, 126


class CannotRun(Exception):
    """The command cannot be started, or its output cannot be written; ``code`` is the exit code that a shell has for it."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


#: Reads the error that the client of a container runtime reports; None for words of the program in the container.
ClientError = Callable[[str], CannotRun | None]


class ForegroundCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command, and what it starts with."""

    program: str
    args: Sequence[str] = ()
    env: Mapping[str, str]
    folder: str
    user: str = ""
    """As in `Launch`."""
    client_error: ClientError | None = None
    """For a client, which only attaches a program that runs elsewhere, in a container: the error that its words report.

    SIGTERM, SIGHUP and the second Ctrl-C then end the command at once, and the caller ends the program.
    """

    @property
    def attaches(self) -> bool:
        """Whether the command is a client."""
        return self.client_error is not None


async def run_in_foreground(command: ForegroundCommand) -> int:
    """Run a command until it ends; returns its exit code, as a shell does. Raises `CannotRun`."""
    with ExitStack() as stack:
        terminals = [each for each in _STREAMS if command.user and os.isatty(each)]
        relay = stack.enter_context(TerminalRelay(terminals)) if terminals else None
        modes = _modes() if relay is None else None
        pipes = stack.enter_context(PipeRelay(command.client_error)) if command.client_error is not None else None
        process = await _start(command, relay or pipes, terminals)
        received = _handle_signals(command, process, stack, pipes)
        try:
            if relay is not None:
                code = await relay.copy_until(process.wait())
            elif pipes is not None:
                code = await pipes.copy_until(process.wait(), partial(_end_unread, process, pipes, received))
            else:
                code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            if modes is not None and (process.returncode or 0) < 0 and _modes() is not None:
                # The command had no time to restore them.
                termios.tcsetattr(0, termios.TCSADRAIN, modes)
    if received:
        return 128 + received[0]
    if pipes is not None and (refusal := pipes.report) is not None:
        raise refusal
    if pipes is not None and pipes.error is not None and not isinstance(pipes.error, BrokenPipeError):
        raise CannotRun(f"cannot write the output of {command.program}: {pipes.error.strerror}", 1)
    return code if code >= 0 else 128 - code


def _end(process: asyncio.subprocess.Process, number: int, received: list[int]) -> None:
    """End a command as a signal would, and record the signal."""
    received.append(number)
    with suppress(ProcessLookupError):
        process.kill()


def _end_unread(process: asyncio.subprocess.Process, pipes: PipeRelay, received: list[int]) -> None:
    """End a command whose output cannot be written: if its reader has ended, as the kernel ends a program."""
    if isinstance(pipes.error, BrokenPipeError):
        _end(process, signal.SIGPIPE, received)
    elif process.returncode is None:
        process.kill()


def _handle_signals(
    command: ForegroundCommand, process: asyncio.subprocess.Process, stack: ExitStack, pipes: PipeRelay | None
) -> list[int]:
    """Pass signals on to the command, or end it, until the stack ends. Returns a list that gets the signal that ended it."""
    received: list[int] = []

    def end(number: int) -> None:
        _end(process, number, received)
        if pipes is not None:
            pipes.abandon()

    interrupts = count(1)

    def interrupt() -> None:
        # The terminal also sends Ctrl-C to the command, which handles it.
        if next(interrupts) > 1 and command.attaches:
            end(signal.SIGINT)

    calls: dict[signal.Signals, Callable[[], None]] = {
        number: partial(end, number) if command.attaches else partial(_forward, process, number)
        for number in (signal.SIGTERM, signal.SIGHUP)
    }
    if command.user:
        calls |= {number: partial(_forward, process, number) for number in (signal.SIGINT, signal.SIGQUIT)}
    else:
        calls[signal.SIGINT] = interrupt
    for number, call in calls.items():
        stack.callback(_restore, number, signal.getsignal(number))
        asyncio.get_running_loop().add_signal_handler(number, call)
    return received


def _restore(number: signal.Signals, former: Any) -> None:
    """Restore the former handler of a signal, so that what the caller does next can be interrupted."""
    asyncio.get_running_loop().remove_signal_handler(number)
    if former is not None:
        signal.signal(number, former)


def _modes() -> list[Any] | None:
    """The modes of the terminal at standard input; None if this program may not change them."""
    try:
        return termios.tcgetattr(0) if os.tcgetpgrp(0) == os.getpgrp() else None
    except (OSError, termios.error):
        return None


async def _start(
    command: ForegroundCommand, relay: TerminalRelay | PipeRelay | None, terminals: Sequence[int]
) -> asyncio.subprocess.Process:
    """Start the process that becomes the command, and wait until it has."""
    loop = asyncio.get_running_loop()
    words = (command.program, command.args, command.env)
    message = foreground_message(*words, folder=command.folder, user=command.user, terminals=terminals)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        ours.setblocking(False)
        streams = [_stream(relay, each, terminals) for each in _STREAMS]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", "-c", _PROGRAM, str(theirs.fileno())),
            pass_fds=(theirs.fileno(),),
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
        )
        theirs.close()
        if isinstance(relay, TerminalRelay):
            relay.close_slave()
        elif relay is not None:
            relay.close_writers()
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
    if int(number) == errno.ENOENT and reason.endswith(f": {command.program}"):
        raise CannotRun(f"{command.program}: command not found", _MISSING)
    raise CannotRun(f"cannot run {command.program}: {reason.removesuffix(f': {command.program}')}", _NOT_EXECUTABLE)


def _stream(relay: TerminalRelay | PipeRelay | None, stream: int, terminals: Sequence[int]) -> int | None:
    """The descriptor that the command gets as a standard stream; None for that of this program."""
    if isinstance(relay, TerminalRelay):
        return relay.slave if stream in terminals else None
    return relay.writer(stream) if relay is not None else None


def _forward(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)
