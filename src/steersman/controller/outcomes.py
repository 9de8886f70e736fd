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


#: The shortest time between two runs that `RequeueAfter` can ask for, in seconds.
SOONEST = 0.01


class RequeueAfter(msgspec.Struct, frozen=True):
    """Look again after so many seconds, or earlier if something happens.

    0 and less, such as the time left until a moment that has passed, mean as soon as possible: after `SOONEST`. Each in a
    row waits no longer than asked for, so whoever waits for something that may take long returns `Requeue`.
    """

    seconds: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.seconds):
            raise ValueError(
                f"RequeueAfter needs a number of seconds, got {self.seconds}; to wait for a change alone return Done()"
            )

    @property
    def delay(self) -> float:
        """The seconds that it stands for: never so few that the controller would run hot."""
        return max(float(self.seconds), SOONEST)


Outcome: TypeAlias = Done | Requeue | RequeueAfter


class TerminalError(Exception):
    """Trying again cannot help: the error is reported and the object waits for a change."""
