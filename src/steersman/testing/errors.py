"""What goes wrong with an engine, each said so that the reader knows what to do next."""

from __future__ import annotations

from collections import deque
from pathlib import Path

_LINES_SHOWN = 20


class EngineError(Exception):
    """An engine could not be started, changed or asked."""


class KubectlError(EngineError):
    """kubectl ended with an error; `stderr` is what it said."""

    def __init__(self, arguments: tuple[str, ...], code: int, stderr: str) -> None:
        super().__init__(
            f"kubectl {' '.join(arguments)} ended with status {code}: {stderr.strip() or 'it said nothing'}"
        )
        self.code = code
        self.stderr = stderr


def last_lines(log: Path) -> str:
    """The end of a log, indented, for the text of an error."""
    try:
        with log.open(encoding="utf-8", errors="replace") as lines:
            shown = deque(lines, maxlen=_LINES_SHOWN)
    except OSError:
        shown = deque[str]()
    return "".join(f"    {line.rstrip()}\n" for line in shown) or "    (nothing)\n"
