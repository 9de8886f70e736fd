"""Replays schedules: each runs again from the beginning, and is judged and shown as in a simulation."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from steersman.simulation.exploration.exploration import Exploration
from steersman.simulation.report import Finding
from steersman.simulation.runs.schedules import FaultSchedule, Result, Violation
from steersman.simulation.scenario import Scenario
from steersman.simulation.stories import Case, stories_of


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule that ran again."""

    schedule: FaultSchedule
    #: What it shows; None if nothing is wrong any more.
    finding: Finding | None = None
    #: Whether all its faults happened: a program that changed may no longer send the request of one.
    complete: bool = True


def replayed(
    scenario: Scenario, schedules: Sequence[FaultSchedule], *, jobs: int = 2
) -> tuple[tuple[Violation, ...], list[Replay]]:
    """What is wrong without any fault, and else what each schedule shows."""
    if not schedules:
        return (), []
    exploration = Exploration(scenario, seed=schedules[0].seed, jobs=jobs)
    if wrong := exploration.prepare():
        return wrong, []
    results: dict[FaultSchedule, Result] = {}
    exploration.runs(schedules, lambda result: results.__setitem__(result.schedule, result))
    failed = [schedule for schedule in schedules if results[schedule].violations]
    stories = stories_of(scenario, [Case(each, results[each].violations) for each in failed], jobs=jobs)
    findings = {
        schedule: Finding(schedule=schedule, violations=results[schedule].violations, story=story)
        for schedule, story in zip(failed, stories, strict=True)
    }
    return (), [
        Replay(
            schedule=schedule,
            finding=findings.get(schedule),
            complete=set(schedule.faults) <= set(results[schedule].fired),
        )
        for schedule in schedules
    ]
