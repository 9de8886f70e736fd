"""The gallery of wrong controllers: each is found and explained, and each corrected twin survives.

A run plays the faults that show each defect, on some wrong controllers and some twins; `.ci/full` plays all of them, all
faults, pairs and random schedules. ``tests/simulation/gallery/table.py`` prints what each fault finds.
"""

from __future__ import annotations

from typing import get_args

import pytest
from simulation.gallery.catalog import EXHIBITS

from samples import portions
from steersman.simulation import FaultName, SimulationReport, simulate

#: The kinds of faults, as reports and the exhibits name them.
FAULTS: dict[str, FaultName] = {name.replace("-", " "): name for name in get_args(FaultName)}
#: How many pairs and random schedules each twin survives.
SCHEDULES = portions.count(sample=0, of=500)
#: How many kinds of faults a twin meets in a sample, beside those that show the defect.
KINDS = 2
#: How many wrong controllers and twins a sample plays.
WRONG, TWINS = 6, 3


def faults_for(shown_by: tuple[str, ...]) -> list[FaultName]:
    """The faults that show a defect, and some others."""
    chosen = portions.some([fault for fault in FAULTS if fault not in shown_by], KINDS)
    return [name for fault, name in FAULTS.items() if fault in shown_by or fault in chosen]


def test_the_gallery_has_many_exhibits() -> None:
    """A module that is not an exhibit, and one that is not found, would go unnoticed."""
    assert len(EXHIBITS) >= 25
    assert {name for exhibit in EXHIBITS.values() for name in exhibit.shown_by} <= set(FAULTS)


@pytest.mark.parametrize("name", portions.some(EXHIBITS, WRONG))
def test_a_wrong_controller_is_found(name: str) -> None:
    """Users trust a simulation that finds the failures that they know."""
    exhibit = EXHIBITS[name]
    # A pair is found among many only by many schedules.
    every = portions.ALL and not exhibit.pairs
    faults = [name for fault, name in FAULTS.items() if every or fault in exhibit.shown_by]
    report = _simulated(name, wrong=True, faults=faults, pairs=exhibit.pairs)
    violations = [str(violation) for violation in report.without_faults]
    assert bool(violations) == (not exhibit.shown_by), str(report)
    if not violations:
        assert exhibit.pairs or set(exhibit.shown_by) <= {fault for _, fault in report.broken}, str(report)
        assert all(len(finding.schedule.faults) <= 2 for finding in report.findings)
        violations = [str(violation) for finding in report.findings for violation in finding.violations]
    assert any(exhibit.words in words for words in violations), str(report)


@pytest.mark.parametrize("name", portions.some(EXHIBITS, TWINS))
def test_a_corrected_twin_survives(name: str) -> None:
    """A simulation that cries wolf is turned off."""
    exhibit = EXHIBITS[name]
    pairs = max(exhibit.pairs, SCHEDULES)
    report = _simulated(name, wrong=False, faults=faults_for(exhibit.shown_by), pairs=pairs, schedules=SCHEDULES)
    assert report.ok, str(report)


def _simulated(
    name: str, *, wrong: bool, faults: list[FaultName], pairs: int = 0, schedules: int = 0
) -> SimulationReport:
    exhibit = EXHIBITS[name]
    return simulate(
        exhibit.wrong if wrong else exhibit.corrected,
        exhibit.workload,
        faults=faults,
        checks=exhibit.checks,
        replicas=exhibit.replicas,
        pairs=pairs,
        random_schedules=schedules,
        jobs=1,
    )
