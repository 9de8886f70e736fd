"""Output in lines: ``web-1 | line``, aligned, with a color for each service on a terminal.

Guarantees
- A slow or stopped reader never blocks the event loop: a thread writes, and coroutines wait for it.
- Output to a closed terminal or pipe is dropped.
- Colors are used only on a terminal, and not if ``NO_COLOR`` is set.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import SimpleQueue
from typing import Final

import msgspec

from steersman.aio import Channel, ChannelFull

#: Colors of services, in the order of the file.
_COLORS: Final = ("36", "33", "32", "35", "34", "96", "93", "92", "95", "94")
_DIM, _RED, _BOLD = "2", "31", "1"
_STDOUT, _STDERR = 1, 2
#: The widest label that others are aligned to.
_WIDTH_MAX: Final = 24
#: How many notes are held back while the terminal view runs.
_HELD_MAX: Final = 50
#: Escape sequences and control characters, of which only colors are kept on a terminal. Every ESC matches: what is left
#: after one pass has no new sequence.
_CONTROLS: Final = re.compile(
    r"(?P<color>\x1b\[[0-9;:]*m)"
    r"|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-Z\\^-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
)


def has_colors(environment: Mapping[str, str], descriptor: int = _STDOUT) -> bool:
    """Whether output to a descriptor is colored."""
    return os.isatty(descriptor) and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def printable(text: str, *, colors: bool = False) -> str:
    """The text without what could move the cursor, query the terminal or reorder the line; ``colors`` keeps colors."""
    return _CONTROLS.sub(lambda found: (found["color"] or "") if colors else "", text)


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
        """Queue a message of the command itself for stderr, prefixed with ``=>``."""
        if self._held is not None:
            self._held.append(text)
            with suppress(ChannelFull):
                self.notices.send_nowait(text)
            return
        shown = "\n".join(f"{self._paint('=>', _DIM, _STDERR)} {line}" for line in printable(text).splitlines())
        self._queue.put((_STDERR, f"{shown}\n".encode(errors="replace"), None))

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
        self._queue.put((_STDERR, f"{text}\n".encode(errors="replace"), None))

    def bold(self, text: str) -> str:
        """The text, bold on a terminal."""
        return self._paint(text, _BOLD, _STDERR)

    def dim(self, text: str) -> str:
        """The text, dim on a terminal."""
        return self._paint(text, _DIM, _STDERR)

    async def drain(self, seconds: float = 1.0) -> None:
        """Wait until everything is written, for at most ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                await self._put(_STDERR, "")
        except TimeoutError:
            pass

    def _line(self, label: Label, words: str, *, is_error: bool) -> str:
        colors = self._colors[_STDOUT]
        words = printable(words, colors=colors)
        head = self._paint(f"{label.text:<{self._width}}", _COLORS[label.order % len(_COLORS)], _STDOUT)
        mark = self._paint("!", _RED, _STDOUT) if is_error else self._paint("|", _DIM, _STDOUT)
        end = "\x1b[0m" if "\x1b" in words else ""
        return f"{head} {mark} {words}{end}\n"

    def _paint(self, text: str, color: str, descriptor: int) -> str:
        return f"\x1b[{color}m{text}\x1b[0m" if self._colors[descriptor] else text

    async def _put(self, descriptor: int, text: str) -> None:
        done = self._loop.create_future()
        self._queue.put((descriptor, text.encode(errors="replace"), done))
        await done

    def _write_all(self) -> None:
        """Write what is queued; the writer thread runs this."""
        while True:
            descriptor, data, done = self._queue.get()
            try:
                while data and descriptor not in self._broken:
                    data = data[os.write(descriptor, data) :]
            except OSError:
                self._broken.add(descriptor)
                self._call(self._on_broken)
            if done is not None:
                self._call(lambda done=done: None if done.done() else done.set_result(None))

    def _call(self, callback: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            # The loop is closed; the text was written anyway.
            return
