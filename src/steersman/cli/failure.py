"""Failures that end the command with one sentence, and the exit code of each."""

from __future__ import annotations

from typing import ClassVar


class Failure(Exception):
    """What went wrong and what to do next."""

    exit_code: ClassVar[int] = 1


class Misuse(Failure):
    """A command line that makes no sense, whatever the files and servers it names hold."""

    exit_code: ClassVar[int] = 2
