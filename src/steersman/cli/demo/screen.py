"""A part of the terminal that is redrawn in place, below earlier output.

Guarantees: lines that fit into `Screen.size` never scroll away, even after a resize. Without a terminal, only new
content is printed, as lines. Text from objects and clients controls no terminal. At the end the cursor is restored and the last content stays.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import Self, TextIO

from steersman.telemetry import painted, rendered

_COLORS = {"good": "32", "busy": "33", "dim": "2", "strong": "1"}
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"


class Screen:
    """Draws lines in place: ``with Screen() as screen: screen.draw(lines)``."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self.live = self._out.isatty() and os.environ.get("TERM", "") != "dumb"
        self.colors = self.live and not os.environ.get("NO_COLOR")
        self._drawn = 0
        self._size = self.size
        self._last: list[str] = []

    def __enter__(self) -> Self:
        if self.live:
            self._out.write(_HIDE)
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            self._out.write(_SHOW)
        self._out.flush()

    @property
    def size(self) -> tuple[int, int]:
        """The columns and rows available for drawing."""
        terminal = shutil.get_terminal_size((100, 30))
        return max(terminal.columns - 1, 1), max(terminal.lines - 1, 1)

    def painted(self, text: str, mood: str) -> str:
        """A text in the color of a mood."""
        return painted(text, _COLORS.get(mood, ""))

    def draw(self, lines: list[str]) -> None:
        """Replace the drawn lines; does nothing if they are the same."""
        if not self.live or (lines == self._last and self.size == self._size):
            return
        self._last = lines
        # a terminal rewraps drawn lines on a resize, so their start is unknown
        resized, self._size = self.size != self._size and self._drawn, self.size
        up = "\x1b[2J\x1b[H" if resized else f"\x1b[{self._drawn}A" if self._drawn else ""
        self._out.write(f"{up}\r\x1b[J" + "".join(f"{self._rendered(line)}\n" for line in lines))
        self._out.flush()
        self._drawn = len(lines)

    def tell(self, make: Callable[[], str]) -> None:
        """Print a line where drawing is impossible."""
        if not self.live:
            self._out.write(f"{self._rendered(make())}\n")
            self._out.flush()

    def _rendered(self, text: str) -> str:
        return rendered(text, colors=self.colors)
