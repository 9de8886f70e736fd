"""The banner of a long-running program: what it does, then labeled lines."""

from __future__ import annotations

from collections.abc import Iterable

from steersman._version import __version__
from steersman.cli.console import tell
from steersman.telemetry import painted


def print_banner(what: str, lines: Iterable[tuple[str, str]]) -> None:
    """Print the banner to stderr; a repeated label is printed once."""
    tell(f"{painted(f'steersman {__version__}', '1')} {what}")
    before = ""
    for label, words in lines:
        shown = "" if label == before else label
        tell(f"  {painted(f'{shown:<12}', '2')}{words}")
        before = label
    tell()
