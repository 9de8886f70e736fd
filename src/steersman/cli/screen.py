"""A part of the terminal that is drawn again and again, below what was printed before.

Guarantees: on a terminal it never scrolls away and is never wider or higher than that; elsewhere only what is new is
printed, as lines; when it ends, the cursor is back and what was shown last stays.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import Self, TextIO

_COLOURS = {"good": "32", "busy": "33", "dim": "2", "strong": "1"}
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"


class Screen:
    """Draws texts in place: ``with Screen() as screen: screen.draw(lines)``."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self.live = self._out.isatty() and os.environ.get("TERM", "") != "dumb"
        self.colours = self.live and not os.environ.get("NO_COLOR")
        self._drawn = 0
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
        """Columns and rows there are for drawing."""
        found = shutil.get_terminal_size((100, 30))
        return max(found.columns - 1, 20), max(found.lines - 1, 5)

    def painted(self, text: str, mood: str) -> str:
        """A text in the colour of a mood."""
        return f"\x1b[{_COLOURS[mood]}m{text}\x1b[0m" if self.colours and mood in _COLOURS else text

    def draw(self, lines: list[str]) -> None:
        """Show lines in place of those that were shown; nothing happens if they are the same."""
        if lines == self._last or not self.live:
            return
        self._last = lines
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        self._out.write(f"{up}\r\x1b[J" + "".join(f"{line}\n" for line in lines))
        self._out.flush()
        self._drawn = len(lines)

    def tell(self, make: Callable[[], str]) -> None:
        """Print a line where nothing can be drawn."""
        if not self.live:
            self._out.write(f"{make()}\n")
            self._out.flush()
