"""The banner of a long-running program: what it does, then labeled lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from steersman._version import __version__


def print_banner(what: str, lines: Iterable[tuple[str, str]]) -> None:
    """Print the banner to stderr; a repeated label is printed once."""
    colors = sys.stderr.isatty()
    print(_painted(f"steersman {__version__}", "1", colors=colors), what, file=sys.stderr)
    before = ""
    for label, words in lines:
        shown = "" if label == before else label
        print(f"  {_painted(f'{shown:<12}', '2', colors=colors)}{words}", file=sys.stderr)
        before = label
    print(file=sys.stderr, flush=True)


def _painted(text: str, color: str, *, colors: bool) -> str:
    return f"\x1b[{color}m{text}\x1b[0m" if colors else text
