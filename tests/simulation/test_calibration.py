"""Calibration: defects that Steersman once had are brought back one by one, and a simulation finds each.

A run plays some defects, with the faults that show them; `.ci/full` plays all defects, and all faults on the code without
them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from simulation.calibration.catalog import DEFECTS
from simulation.calibration.defect import Defect
from simulation.calibration.mutation import Mutation, reintroduced

from samples import portions
from steersman.simulation import ALL_FAULTS, Fault, Scenario, SimulationReport, simulated

#: How many defects a sample brings back, and for how many it plays today's code.
BROKEN, WHOLE = 3, 2


def played(defect: Defect, faults: Sequence[Fault]) -> SimulationReport:
    scenario = Scenario(defect.setup, defect.workload, checks=defect.checks, replicas=defect.replicas)
    return simulated(scenario, faults=faults, pairs=defect.pairs, jobs=1)


def test_every_mutation_fits_the_code() -> None:
    """A run brings back some defects only: the lines of the others must not change unnoticed."""
    assert len(DEFECTS) >= 10
    for defect in DEFECTS.values():
        with reintroduced(*defect.mutations):
            pass


@pytest.mark.parametrize("name", portions.some(DEFECTS, BROKEN))
def test_a_defect_of_the_past_is_found(name: str) -> None:
    """A simulation that misses what once went wrong would miss it again."""
    defect = DEFECTS[name]
    with reintroduced(*defect.mutations):
        report = played(defect, defect.faults)
    assert all(len(finding.schedule.faults) <= 2 for finding in report.findings), str(report)
    violations = [*report.without_faults, *(each for finding in report.findings for each in finding.violations)]
    assert any(each.oracle == defect.oracle and defect.words in each.words for each in violations), str(report)


@pytest.mark.parametrize("name", portions.some(DEFECTS, WHOLE))
def test_nothing_is_found_without_it(name: str) -> None:
    """The finding is about the defect: today's code passes the same schedules."""
    defect = DEFECTS[name]
    report = played(defect, (*ALL_FAULTS, *defect.faults) if portions.ALL else defect.faults)
    assert report.ok, str(report)


def test_a_mutation_whose_lines_have_changed_fails() -> None:
    """It would change nothing, and the test of the defect would show nothing."""
    outdated = Mutation("steersman.manager.term_controllers:Barrier.passed", "no such line", "pass")
    with pytest.raises(AssertionError, match="no longer has these lines"), reintroduced(outdated):
        pass
