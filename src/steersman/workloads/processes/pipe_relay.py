"""Copies what a command writes to pipes and files of this program, so that this program and not the command sees their ends.

The client of a container runtime reports a reader that has ended, or a full disk, in its own words. Behind a relay it never
meets one: the caller ends the client, as the kernel would end a program whose reader has ended (SIGPIPE).

The client also reports in its own words that the container does not have the command. Such words are held back until the client
ends, so that the caller can say it.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from steersman.aio import Supervisor
from steersman.workloads.processes.terminal_relay import reopened

_OUTPUTS, _ERRORS = (1, 2), 2
#: A pipe that can be written takes so many bytes without blocking; a file takes any number.
_PIPE_PIECE, _FILE_PIECE = select.PIPE_BUF, 64 << 10
#: The exit codes of a client that cannot execute the command in the container.
_CANNOT_EXECUTE = (126, 127)
#: Reads the error that a client reports; None for words of the command.
ReadReport = Callable[[str], Exception | None]


class PipeRelay:
    """Pipes in place of the errors, and of an output that is no terminal; use it in a ``with`` block.

    Two outputs with the same reader share a pipe, so that their order stays.
    """

    def __init__(self, read_report: ReadReport) -> None:
        self._read_report = read_report
        self._pipes: dict[tuple[int, int], _Pipe] = {}
        #: The pipe in place of each output.
        self._by_output: dict[int, _Pipe] = {}
        self._abandoned: asyncio.Future[None] | None = None
        #: Why an output could not be written.
        self.error: OSError | None = None

    def __enter__(self) -> Self:
        for each in _OUTPUTS:
            with suppress(OSError):
                found = os.fstat(each)
                is_terminal = os.isatty(each)
                if not is_terminal or each == _ERRORS:
                    place = found.st_dev, found.st_ino
                    can_wait = is_terminal or stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode)
                    made = self._pipes.get(place)
                    made = made or _Pipe(reopened(each) if is_terminal else each, can_wait=can_wait)
                    self._pipes[place] = self._by_output[each] = made
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close_writers()
        for each in self._pipes.values():
            os.close(each.reader)
            if each.target not in _OUTPUTS:
                os.close(each.target)

    def writer(self, output: int) -> int | None:
        """The descriptor for an output of the command; None if it gets that of this program."""
        found = self._by_output.get(output)
        return found.writer if found is not None else None

    def close_writers(self) -> None:
        """Leave the pipes to the command."""
        for each in self._pipes.values():
            if each.writer >= 0:
                os.close(each.writer)
                each.writer = -1

    def abandon(self) -> None:
        """Write no more: the user does not want to wait for the readers."""
        if self._abandoned is not None and not self._abandoned.done():
            self._abandoned.set_result(None)

    async def copy_until(self, ended: Coroutine[Any, Any, int], broken: Callable[[], None]) -> int:
        """Copy until the command has ended; returns its exit code. ``broken`` is called after the first `error`.

        If the client reports that it cannot execute the command, `report` has the error, and nothing is written.
        """
        self._abandoned = asyncio.get_running_loop().create_future()
        async with Supervisor() as tasks:
            for each in self._pipes.values():
                tasks.start(self._copy(each, broken), name="pipe: output")
            code = await ended
            tasks.cancel()
        for each in self._pipes.values():
            # Only what is there: another process may keep the pipe open.
            while await self._write(each) and each.read():
                each.hold(self._read_report)
            if code not in _CANNOT_EXECUTE:
                each.release()
                await self._write(each)
        return code

    @property
    def report(self) -> Exception | None:
        """The error that a client has reported at its end; None if the command was executed."""
        return next(filter(None, (each.error(self._read_report) for each in self._pipes.values())), None)

    async def _copy(self, pipe: _Pipe, broken: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        assert self._abandoned is not None
        while True:
            await self._ready(pipe.reader, loop.add_reader, loop.remove_reader)
            if self._abandoned.done() or pipe.read() is None:
                return
            pipe.hold(self._read_report)
            if not await self._write(pipe):
                broken()
                return

    async def _write(self, pipe: _Pipe) -> bool:
        """Write what was read. Returns False if that is no longer possible."""
        loop = asyncio.get_running_loop()
        assert self._abandoned is not None
        while pipe.left:
            try:
                if pipe.can_wait:
                    await self._ready(pipe.target, loop.add_writer, loop.remove_writer)
                if self._abandoned.done():
                    return False
                pipe.left = pipe.left[os.write(pipe.target, pipe.left) :]
            except BlockingIOError:
                continue
            except OSError as error:
                pipe.left, self.error = b"", self.error or error
                return False
        return True

    async def _ready(self, descriptor: int, add: Callable[..., object], remove: Callable[[int], object]) -> None:
        """Wait until a descriptor can be read or written, or until the rest is abandoned."""
        assert self._abandoned is not None
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        add(descriptor, lambda: ready.done() or ready.set_result(None))
        try:
            await asyncio.wait((ready, self._abandoned), return_when=asyncio.FIRST_COMPLETED)
        finally:
            remove(descriptor)


class _Pipe:
    """A pipe of the command, and the output of this program that it is copied to."""

    def __init__(self, target: int, *, can_wait: bool) -> None:
        self.target = target
        #: Whether the kernel says when the output takes more: a file always does.
        self.can_wait = can_wait
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        #: What was read and not yet written.
        self.left = b""
        #: What is held back, and whether the rest passes.
        self.held, self._passes = b"", False

    def read(self) -> bytes | None:
        """Read the next piece into ``left``: empty if there is none now, None at the end."""
        try:
            self.left = os.read(self.reader, _PIPE_PIECE if self.can_wait else _FILE_PIECE)
        except BlockingIOError:
            return b""
        return self.left or None

    def hold(self, read_report: ReadReport) -> None:
        """Hold back what was read, if all output so far is a report of the client."""
        if self._passes or not self.left:
            return
        self.held, self.left = self.held + self.left, b""
        if self.error(read_report) is None:
            self.release()

    def error(self, read_report: ReadReport) -> Exception | None:
        """The error that was held back."""
        return read_report(self.held.decode(errors="replace"))

    def release(self) -> None:
        """Write what was held back, and hold back no more."""
        self.held, self.left, self._passes = b"", self.held + self.left, True
