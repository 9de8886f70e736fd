"""Shrinks a failing schedule: the fewest faults that still break the same promise.

A violation counts as the same if the same oracle finds it. A schedule without any fault that fails by its seed alone is the
smallest of all.
"""

from __future__ import annotations

from steersman.simulation.exploration.exploration import Exploration
from steersman.simulation.runs.schedules import FaultSchedule, Result


def shrunk(exploration: Exploration, result: Result) -> Result:
    """The smallest failing part of a failing schedule that could be found by leaving out faults."""
    oracles = {violation.oracle for violation in result.violations}
    best = result
    # Faults that never happened are left out first: they cannot matter.
    fired = set(result.fired)
    candidates = [tuple(fault for fault in result.schedule.faults if fault in fired)]
    while candidates:
        schedules = [FaultSchedule(seed=best.schedule.seed, faults=faults) for faults in candidates]
        results: list[Result] = []
        exploration.runs(schedules, results.append)
        outcomes = {outcome.schedule: outcome for outcome in results}
        failing = [
            outcomes[schedule]
            for schedule in schedules
            if schedule in outcomes and oracles & {violation.oracle for violation in outcomes[schedule].violations}
        ]
        if not failing:
            break
        best = failing[0]
        faults = best.schedule.faults
        candidates = [faults[:index] + faults[index + 1 :] for index in range(len(faults))]
    return best
