"""Errors of engines."""

from __future__ import annotations

from collections import deque
from pathlib import Path

_LINES_SHOWN = 20


class EngineError(Exception):
    """Starting, changing or querying an engine failed."""


class KubectlError(EngineError):
    """kubectl failed; `stderr` is its error output."""

    def __init__(self, arguments: tuple[str, ...], code: int, stderr: str) -> None:
        super().__init__(
            f"kubectl {' '.join(arguments)} exited with status {code}: {stderr.strip() or 'stderr is empty'}"
        )
        self.code = code
        self.stderr = stderr


def last_lines(log: Path) -> str:
    """The last lines of a log, indented, for an error message."""
    try:
        with log.open(encoding="utf-8", errors="replace") as lines:
            shown = deque(lines, maxlen=_LINES_SHOWN)
    except OSError:
        shown = deque[str]()
    return "".join(f"    {line.rstrip()}\n" for line in shown) or "    (nothing)\n"
