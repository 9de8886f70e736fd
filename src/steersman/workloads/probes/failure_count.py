"""Counts the failed checks of one probe, and decides when the probe fails. Pure."""

from __future__ import annotations

from steersman.workloads.kinds import ProbeOutcome
from steersman.workloads.probes.probe import Schedule


class FailureCount:
    """Turns the checks of a probe into its outcome.

    - The outcome becomes Failure after ``failureThreshold`` consecutive failures; until then it does not change.
    - Before the first success, failures in the start period do not count; later ones count once in each interval.
    """

    def __init__(self, schedule: Schedule, began: float) -> None:
        self._schedule = schedule
        self._outcome: ProbeOutcome = "Unknown"
        self._failures = 0
        self._has_succeeded = False
        #: When the next failure counts, before the first success.
        self._counts_from = began + schedule.start_period

    def outcome(self, *, succeeded: bool, now: float) -> ProbeOutcome:
        """The outcome after one more run."""
        if succeeded:
            self._failures, self._has_succeeded, self._outcome = 0, True, "Success"
        elif self._has_succeeded or now >= self._counts_from:
            self._failures += 1
            self._counts_from = now + self._schedule.interval
            if self._failures >= self._schedule.failure_threshold:
                self._outcome = "Failure"
        return self._outcome
