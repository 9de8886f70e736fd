"""Bugs that Sieve and Acto published, as small operators: each is found, and its corrected twin passes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from simulation.published.stand_ins import Bug, operator

from samples import portions
from steersman.simulation import simulate

#: One in a sample; `.ci/full` plays all.
BUGS = portions.some(sorted(path.stem for path in (Path(__file__).parent / "published").glob("*_[0-9]*.py")), 1)


def bug(name: str) -> Bug:
    return import_module(f"simulation.published.{name}").BUG


@pytest.mark.parametrize("name", BUGS)
def test_a_published_bug_is_found(name: str) -> None:
    """A simulator that misses what others have found on clusters is no help."""
    found = bug(name)
    report = simulate(lambda: operator(found.wrong), found.workload, faults=found.faults, checks=found.checks)
    assert report.findings or report.without_faults
    assert all(len(finding.schedule.faults) == 1 for finding in report.findings)
    if found.faults:
        assert not report.without_faults


@pytest.mark.parametrize("name", BUGS)
def test_its_corrected_twin_passes(name: str) -> None:
    """The finding is about the defect: without it, nothing is reported."""
    found = bug(name)
    report = simulate(lambda: operator(found.right), found.workload, faults=found.faults, checks=found.checks)
    assert report.ok, str(report)
