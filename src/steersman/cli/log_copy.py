"""Copies the log of a program to stdout, piece by piece."""

from __future__ import annotations

import codecs
import sys
from typing import Final

from steersman.cli.console import show, show_data
from steersman.telemetry import program_text

#: How many characters of an unfinished line are held back.
_HELD_MAX: Final = 65536


class LogCopy:
    """Copies the log of a program to stdout: exactly, or on a terminal with its colors alone.

    Escape sequences may be cut anywhere, so a line with one is held back until it is complete. So is a carriage return at the
    end: with the line feed that may follow, it ends a line.
    """

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty()
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._held = ""

    def write(self, piece: bytes) -> None:
        """Write a piece of the log, as it arrives."""
        if not self._is_terminal:
            show_data(piece)
        else:
            *lines, self._held = (self._held + self._decoder.decode(piece)).split("\n")
            for line in lines:
                show(program_text(line))
            if "\x1b" not in self._held or len(self._held) > _HELD_MAX:
                self._show_held(up_to="\r")

    def close(self) -> None:
        """Write what was held back."""
        self._held += self._decoder.decode(b"", final=True)
        self._show_held()

    def _show_held(self, *, up_to: str = "") -> None:
        """Write what was held back, except this end."""
        shown = self._held.removesuffix(up_to)
        self._held = self._held[len(shown) :]
        show(program_text(shown), end="")
