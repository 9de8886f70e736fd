"""The terminal as a device: raw mode, its size, and a writer that sends only changed lines.

Guarantees
- `close` restores the terminal, even if it accepts no output at the moment. It can be called more than once.
- A terminal that accepts output slowly, or not at all (Ctrl-S), blocks nothing: only the latest frame waits.
- No text in a frame controls the terminal: control characters are shown escaped, whatever they came from.
- A terminal with synchronized updates never shows half a frame.
"""

from __future__ import annotations

import asyncio
import os
import select
import termios
import tty
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from steersman.ui.terminal.frame import Size
from steersman.ui.terminal.styles import Line, clip_line, encode_line, harmless_line, line_width

#: Alternate screen, hidden cursor, no automatic wrap, bracketed paste.
_ENTER: Final = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h\x1b[H\x1b[2J"
_LEAVE: Final = b"\x1b[0m\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"
_BEGIN_UPDATE, _END_UPDATE = "\x1b[?2026h", "\x1b[?2026l"
#: Seconds to wait, when restoring, for a terminal that accepts no output.
_RESTORE_TIMEOUT: Final = 0.5


class Screen:
    """A terminal. `enter` and `leave` may follow each other; `close` ends its use."""

    def __init__(self, descriptor: int, *, colors: bool, encoding: str) -> None:
        # Opened again: non-blocking here, still blocking for the shell.
        self.descriptor = os.open(os.ttyname(descriptor), os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._modes = termios.tcgetattr(self.descriptor)
        self._colors, self._encoding = colors, encoding
        self._shown: list[Line] = []
        self._shown_size = Size(0, 0)
        self._pending = b""
        self._on_ready: Callable[[], None] | None = None
        #: Whether the view has the terminal; if not, the shell or another program has it.
        self.is_entered = False

    @property
    def is_foreground(self) -> bool:
        """Whether this program is in the foreground; a background program must not change the terminal's modes."""
        try:
            return os.tcgetpgrp(self.descriptor) == os.getpgrp()
        except OSError:
            # Either there is no job control (not the controlling terminal), or the terminal is gone: `enter` reports that.
            return True

    @property
    def size(self) -> Size:
        """The current size."""
        try:
            columns, rows = os.get_terminal_size(self.descriptor)
        except OSError:
            return Size(80, 24)
        # A terminal without a size, such as a serial line, reports 0.
        return Size(columns or 80, rows or 24)

    @property
    def is_busy(self) -> bool:
        """Whether the last frame is not completely written."""
        return bool(self._pending)

    def enter(self) -> None:
        """Switch the terminal to raw mode and the alternate screen."""
        self.is_entered = True
        tty.setraw(self.descriptor, termios.TCSANOW)
        self._pending = b""
        self.forget()
        self.send(_ENTER)

    def lend(self) -> None:
        """Switch to the main screen for another program, still in raw mode."""
        self.send(_LEAVE)

    def leave(self) -> None:
        """Restore the terminal."""
        if not self.is_entered:
            return
        self.is_entered = False
        self._stop_waiting()
        self._pending = b""
        self._restore(_LEAVE)
        with suppress(termios.error, OSError):
            termios.tcsetattr(self.descriptor, termios.TCSANOW, self._modes)

    def close(self) -> None:
        """Restore the terminal, and close it."""
        self.leave()
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def forget(self) -> None:
        """Make the next frame draw every line."""
        self._shown = []

    def draw(self, lines: Sequence[Line], size: Size) -> None:
        """Show a frame; only lines that have changed are sent."""
        if size != self._shown_size:
            self._shown, self._shown_size = [], size
        parts: list[str] = []
        for number, line in enumerate(lines):
            if number < len(self._shown) and self._shown[number] == line:
                continue
            shown = clip_line(harmless_line(line), size.columns)
            # Erasing after a full line would erase its last character.
            rest = "\x1b[K" if line_width(shown) < size.columns else ""
            parts.append(f"\x1b[{number + 1};1H{encode_line(shown, colors=self._colors)}{rest}")
        self._shown = list(lines)
        if parts:
            text = "".join((_BEGIN_UPDATE, *parts, _END_UPDATE))
            self.send(text.encode(self._encoding, "replace"))

    def send(self, data: bytes) -> None:
        """Write bytes as far as the terminal accepts them, and the rest when it accepts more."""
        self._pending += data
        self._flush()

    def when_ready(self, call: Callable[[], None]) -> None:
        """Call a function once everything is written."""
        self._on_ready = call

    async def drained(self) -> None:
        """Wait until everything is written."""
        if self.is_busy:
            ready = asyncio.Event()
            self.when_ready(ready.set)
            await ready.wait()

    def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._pending:
                self._pending = self._pending[os.write(self.descriptor, self._pending) :]
        except BlockingIOError:
            loop.add_writer(self.descriptor, self._flush)
            return
        except OSError:
            # The terminal is gone: the reader reports it.
            self._pending = b""
        self._stop_waiting()
        call, self._on_ready = self._on_ready, None
        if call is not None:
            call()

    def _stop_waiting(self) -> None:
        with suppress(RuntimeError, OSError):
            asyncio.get_running_loop().remove_writer(self.descriptor)

    def _restore(self, data: bytes) -> None:
        """Write bytes now, and give up after a timeout."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLOUT)
        with suppress(OSError):
            while data and poll.poll(1000 * _RESTORE_TIMEOUT):
                data = data[os.write(self.descriptor, data) :]
        if data:
            # Ctrl-S, or a slow line: drop the rest of an old frame.
            with suppress(termios.error, OSError):
                termios.tcflush(self.descriptor, termios.TCOFLUSH)
                termios.tcflow(self.descriptor, termios.TCOON)
                os.write(self.descriptor, data)
