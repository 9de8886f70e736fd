"""A terminal for a command of another user, and the copying between it and the user's own terminal."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import termios
import tty
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from steersman.aio import Supervisor

_PIECE = 16 << 10
#: The pieces of output that are copied after the command has ended.
_LAST_PIECES = 64
#: What a terminal sends at the end of its input.
_END_OF_INPUT = b"\x04"
#: The index of the local modes in the answer of `termios.tcgetattr`.
_LOCAL_MODES = 3


class TerminalRelay:
    """A new terminal with the modes and the size of the user's; use it in a ``with`` block, which restores the latter.

    ``terminals`` are the standard streams that are terminals, at least one.
    """

    def __init__(self, terminals: Sequence[int]) -> None:
        self._shown = next((each for each in (1, 2) if each in terminals), terminals[0])
        #: A background job must neither read the terminal nor change it.
        self._has_input = 0 in terminals and _is_in_foreground()
        #: At the end of a pipe, another program may use the terminal too: its modes stay as they are.
        self._is_raw = self._has_input and 1 in terminals
        self._modes = termios.tcgetattr(self._shown)
        self.master, self.slave = os.openpty()
        self._target = reopened(self._shown)
        #: Output that is not yet written.
        self._left = b""

    def __enter__(self) -> Self:
        os.set_blocking(self.master, False)
        modes = termios.tcgetattr(self._shown)
        if not self._is_raw:
            # The user's terminal shows what is typed.
            modes[_LOCAL_MODES] &= ~termios.ECHO
        termios.tcsetattr(self.slave, termios.TCSANOW, modes)
        self._resize()
        if self._is_raw:
            tty.setraw(0, termios.TCSADRAIN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_raw:
            with suppress(termios.error):
                termios.tcsetattr(0, termios.TCSADRAIN, self._modes)
        self.close_slave()
        for descriptor in {self.master, self._target} - {self._shown}:
            os.close(descriptor)

    def close_slave(self) -> None:
        """Leave the new terminal to the command."""
        if self.slave >= 0:
            os.close(self.slave)
            self.slave = -1

    async def copy_until(self, ended: Coroutine[Any, Any, int]) -> int:
        """Copy in both directions until the command has ended; returns its exit code."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGWINCH, self._resize)
        try:
            async with Supervisor() as tasks:
                tasks.start(self._copy_output(), name="terminal: output")
                if self._has_input:
                    tasks.start(self._copy_input(), name="terminal: input")
                code = await ended
                tasks.cancel()
            for _ in range(_LAST_PIECES):
                await self._show()
                # Only what is there: a background process may keep the terminal open.
                self._left = self._read() or b""
                if not self._left:
                    break
            await self._show()
        finally:
            loop.remove_signal_handler(signal.SIGWINCH)
        return code

    async def _copy_output(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await _ready(self.master, loop.add_reader, loop.remove_reader)
            data = self._read()
            if data == b"":
                return
            self._left = data or b""
            await self._show()

    async def _show(self) -> None:
        while self._left:
            self._left = self._left[await _write(self._target, self._left) :]

    async def _copy_input(self) -> None:
        loop = asyncio.get_running_loop()
        # The terminal is gone, or the command no longer has its own.
        with suppress(OSError):
            while True:
                await _ready(0, loop.add_reader, loop.remove_reader)
                data = os.read(0, _PIECE)
                left = data or _END_OF_INPUT
                while left:
                    left = left[await _write(self.master, left) :]
                if not data:
                    return

    def _read(self) -> bytes | None:
        """Output of the command: None if there is none now, and empty if no process has the terminal open."""
        try:
            return os.read(self.master, _PIECE)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _resize(self) -> None:
        with suppress(OSError):
            size = fcntl.ioctl(self._shown, termios.TIOCGWINSZ, bytes(8))
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)


def _is_in_foreground() -> bool:
    """Whether this program may read the terminal at its standard input: every program may, if it controls none of them."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return True  # it is not the controlling terminal, as below su -c


def reopened(descriptor: int) -> int:
    """A terminal, opened again: its flags would otherwise change for the shell too."""
    try:
        return os.open(os.ttyname(descriptor), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return descriptor


async def _write(descriptor: int, data: bytes) -> int:
    """Write as much as a terminal takes, once it takes anything. Returns the number of bytes; all if it is gone."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return os.write(descriptor, data)
        except BlockingIOError:
            await _ready(descriptor, loop.add_writer, loop.remove_writer)
        except OSError:
            return len(data)


async def _ready(descriptor: int, add: Callable[..., object], remove: Callable[[int], object]) -> None:
    """Wait until a descriptor can be read or written."""
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    add(descriptor, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        remove(descriptor)
