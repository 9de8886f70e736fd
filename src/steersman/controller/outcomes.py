"""How a reconcile can end well: a closed union. Failures are raised."""

from __future__ import annotations

import math
from typing import TypeAlias

import msgspec


class Done(msgspec.Struct, frozen=True):
    """The object is as it should be, or an event will say when to look again.

    One's own writes to children and to the status are no such event: whoever goes on step by step returns `Requeue`.
    """


class Requeue(msgspec.Struct, frozen=True):
    """Look again soon; each in a row waits longer, as failures do."""


class RequeueAfter(msgspec.Struct, frozen=True):
    """Look again after so many seconds, or earlier if something happens."""

    seconds: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise ValueError(
                f"RequeueAfter needs a finite number of seconds above 0, got {self.seconds}; to run again at once use Requeue()"
            )


Outcome: TypeAlias = Done | Requeue | RequeueAfter


class TerminalError(Exception):
    """Trying again cannot help: the error is reported and the object waits for a change."""
