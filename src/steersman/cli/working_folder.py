"""The folder in which a command runs."""

from __future__ import annotations

from pathlib import Path

from steersman.cli.failure import Failure


def working_folder() -> Path:
    """The current folder. Raises `Failure` if it was removed, for example by a checkout of another branch."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise Failure("the current folder was removed: change to another folder, and run the command again") from None
