"""Output in lines: ``web-1 | line``, aligned, with a color for each service on a terminal.

Guarantees
- A slow or stopped reader never blocks the event loop: a thread writes, and coroutines wait for it.
- Output to a closed terminal or pipe, or to a full disk, is dropped.
- Colors are used only on a terminal, and not if ``NO_COLOR`` is set.
- A line of a service or of a file name never looks like a note.
- Of a service's escape sequences only colors reach a terminal, and none a file; other control characters are escaped.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import SimpleQueue
from typing import Final

import msgspec

from steersman.aio import Channel, ChannelFull
from steersman.cli.console import has_colors
from steersman.telemetry import indented, painted, program_text, rendered, visible

#: Colors of services, in the order of the file.
_COLORS: Final = ("36", "33", "32", "35", "34", "96", "93", "92", "95", "94")
_DIM, _RED = "2", "31"
_STDOUT, _STDERR = 1, 2
_END: Final = "\n"
#: Before each further line of a note.
_INDENT: Final = "   "
#: A terminal that is gone, and an output that the caller has closed.
_CLOSED: Final = (errno.EIO, errno.EBADF)
#: The widest label that others are aligned to.
_WIDTH_MAX: Final = 24
#: How many notes are held back while the terminal view runs.
_HELD_MAX: Final = 50


class Label(msgspec.Struct, frozen=True):
    """The beginning of a line: a service and its replica."""

    text: str
    #: The position of the service in its file; it selects the color.
    order: int = 0


class Output:
    """Writes lines to stdout, and notes to stderr."""

    def __init__(self, environment: Mapping[str, str], *, on_broken: Callable[[], None] = lambda: None) -> None:
        self._colors = {each: has_colors(environment, each) for each in (_STDOUT, _STDERR)}
        self._width = 0
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[int, bytes, asyncio.Future[None] | None]] = SimpleQueue()
        self._broken: set[int] = set()
        #: Why lines were dropped, unless their reader has ended.
        self.failure: OSError | None = None
        #: Notes that are held back while paused; None otherwise.
        self._held: deque[str] | None = None
        #: The notes that are held back, for a view that shows them.
        self.notices: Channel[str] = Channel(_HELD_MAX)
        threading.Thread(target=self._write_all, name="steersman: output", daemon=True).start()

    def align(self, width: int) -> None:
        """Align labels to at least this width."""
        self._width = min(max(width, self._width), _WIDTH_MAX)

    async def lines(self, lines: list[tuple[Label, str, bool]]) -> None:
        """Write log lines, each with its label and whether it is from stderr; returns when they are written."""
        text = "".join(self._line(label, words, is_error=is_error) for label, words, is_error in lines)
        await self._put(_STDOUT, text)

    def note(self, text: str) -> None:
        """Queue a message of the command itself for stderr: ``=>`` before its first line, and blanks before the others."""
        if self._held is not None:
            self._held.append(text)
            with suppress(ChannelFull):
                self.notices.send_nowait(text)
            return
        # A file name or the error of a program may have line feeds: no text in them looks like a message of its own.
        first, feed, rest = text.rstrip("\n").partition("\n")
        further = f"\n{indented(rest, _INDENT)}" if feed else ""
        self._queue_text(_STDERR, f"{painted('=>', _DIM)} {visible(first)}{further}")

    def pause(self) -> None:
        """Hold notes back while the terminal view runs."""
        self._held = deque(maxlen=_HELD_MAX)

    def resume(self) -> None:
        """Write the notes that were held back, and stop holding them back."""
        held, self._held = self._held, None
        for each in held or ():
            self.note(each)

    def text(self, text: str) -> None:
        """Queue text for stderr."""
        self._queue_text(_STDERR, text)

    async def drain(self, seconds: float = 1.0) -> None:
        """Wait until everything is written, for at most ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                await self._put(_STDERR, "")
        except TimeoutError:
            pass

    def _line(self, label: Label, words: str, *, is_error: bool) -> str:
        head = painted(f"{label.text:<{self._width}}", _COLORS[label.order % len(_COLORS)])
        mark = painted("!", _RED) if is_error else painted("|", _DIM)
        return f"{head} {mark} {program_text(' '.join(words.split(_END)))}{_END}"

    async def _put(self, descriptor: int, text: str) -> None:
        done = self._loop.create_future()
        self._queue.put((descriptor, self._encoded(descriptor, text), done))
        await done

    def _queue_text(self, descriptor: int, text: str) -> None:
        self._queue.put((descriptor, self._encoded(descriptor, f"{text}\n"), None))

    def _encoded(self, descriptor: int, text: str) -> bytes:
        return rendered(text, colors=self._colors[descriptor]).encode(errors="replace")

    def _write_all(self) -> None:
        """Write what is queued; the writer thread runs this."""
        while True:
            descriptor, data, done = self._queue.get()
            try:
                while data and descriptor not in self._broken:
                    data = data[os.write(descriptor, data) :]
            except OSError as error:
                self._broken.add(descriptor)
                if descriptor == _STDOUT and not isinstance(error, BrokenPipeError) and error.errno not in _CLOSED:
                    self.failure = error
                self._call(self._on_broken)
            if done is not None:
                self._call(lambda done=done: None if done.done() else done.set_result(None))

    def _call(self, callback: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            # The loop is closed; the text was written anyway.
            return
