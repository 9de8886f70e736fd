"""The lines with which a program that runs for long begins: what it is, then a label and a few words each."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from steersman._version import __version__


def print_heading(what: str, lines: Iterable[tuple[str, str]]) -> None:
    """Print them to the standard error; a label that comes again is not repeated."""
    colours = sys.stderr.isatty()
    print(_painted(f"steersman {__version__}", "1", colours=colours), what, file=sys.stderr)
    before = ""
    for label, words in lines:
        shown = "" if label == before else label
        print(f"  {_painted(f'{shown:<12}', '2', colours=colours)}{words}", file=sys.stderr)
        before = label
    print(file=sys.stderr, flush=True)


def _painted(text: str, colour: str, *, colours: bool) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if colours else text
