"""A probe as data, and the interface of what runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from steersman.workloads.probes.checks import Check, subject


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """When a probe runs, in seconds."""

    interval: float
    timeout: float
    initial_delay: float = 0.0
    until_success: bool = False
    """Whether the first success is the last run."""
    failure_threshold: int = 1
    """After how many failures in a row the probe fails."""
    start_period: float = 0.0
    """How long failures do not count, until the first success."""


class Probe(msgspec.Struct, frozen=True):
    """A check with a name and a schedule; all templates are expanded."""

    name: str
    check: Check
    schedule: Schedule


class Verdict(msgspec.Struct, frozen=True):
    """What one run of a check found."""

    succeeded: bool
    reason: str = ""
    """Why it failed, as a sentence's part: what, then where, because a narrow view cuts the end."""


#: Called once with the verdict of a check, in a later turn of the event loop.
OnVerdict = Callable[[Verdict], None]
SUCCESS = Verdict(succeeded=True)


class Run(Protocol):
    """A run of a check."""

    def cancel(self) -> object:
        """Cancel the run. It leaves nothing behind and reports nothing."""
        ...


class Prober(Protocol):
    """Runs checks. It never raises for a check that fails: that is a verdict."""

    def start(self, check: Check, timeout: float, report: OnVerdict) -> Run:
        """Run a check once, for at most ``timeout`` seconds."""
        ...


def overdue(check: Check, timeout: float) -> Verdict:
    """The verdict of a check that timed out."""
    return Verdict(succeeded=False, reason=f"no result within {timeout:g} s: {subject(check)}")
