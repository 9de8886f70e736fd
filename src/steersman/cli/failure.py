"""Failures that end a command with one sentence, and their exit codes."""

from __future__ import annotations

from typing import ClassVar


class Failure(Exception):
    """What failed, and what to do next."""

    exit_code: ClassVar[int] = 1


class Misuse(Failure):
    """An invalid command line, regardless of files and servers."""

    exit_code: ClassVar[int] = 2
