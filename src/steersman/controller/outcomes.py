"""The successful outcomes of a reconcile: a closed union. Failures are raised."""

from __future__ import annotations

import math
from datetime import timedelta
from numbers import Real
from typing import TypeAlias

import msgspec


class Done(msgspec.Struct, frozen=True):
    """The object matches its spec, or an event will trigger the next reconcile.

    The reconcile's own writes to children and to the status trigger nothing. To continue step by step, return
    `Requeue`.
    """


class Requeue(msgspec.Struct, frozen=True):
    """Run again soon; consecutive requeues back off like failures."""


#: The shortest delay of `RequeueAfter`, in seconds.
SOONEST = 0.01


def no_timedelta(given: object, option: str) -> None:
    """Raise `TypeError` for a `timedelta`, and say how many seconds it is."""
    if isinstance(given, timedelta):
        name = option.rpartition(" ")[2]
        raise TypeError(f"{option} must be a number of seconds; write {name}={given.total_seconds():g}")


class RequeueAfter(msgspec.Struct, frozen=True):
    """Run again after this many seconds, or earlier if an event arrives.

    Zero and negative values, such as the time left until a past moment, mean as soon as possible: after `SOONEST`.
    Repeating it does not back off; to wait for something that may take long, return `Requeue`.
    """

    seconds: float

    def __post_init__(self) -> None:
        given: object = self.seconds
        if isinstance(given, timedelta):
            raise TypeError(f"RequeueAfter needs a number of seconds; write RequeueAfter({given.total_seconds():g})")
        if isinstance(given, bool) or not isinstance(given, Real):
            raise TypeError(f"RequeueAfter needs a number of seconds, such as RequeueAfter(30) (got {given!r})")
        if not math.isfinite(self.seconds):
            raise ValueError(
                f"RequeueAfter needs a finite number of seconds (got {self.seconds}); to wait only for events, return Done()"
            )

    @property
    def delay(self) -> float:
        """The delay in seconds: never so short that the controller would run hot."""
        return max(float(self.seconds), SOONEST)


#: How a reconcile ends: the return value of a reconciler.
Outcome: TypeAlias = Done | Requeue | RequeueAfter


class TerminalError(Exception):
    """A retry cannot help: Steersman reports the error, and reconciles the object again when it changes.

    Example: ``raise TerminalError(f"there is no region {site.spec.region}")``.
    """
