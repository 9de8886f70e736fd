"""Every program that we ship survives every fault: the examples, the control plane's controllers, the workload controllers.

A run plays a few schedules of some; `.ci/full` plays every single fault, 2,000 pairs and 1,000 random schedules of each, as
``tools/simulate-shipped`` does.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from simulation.shipped.catalog import PROGRAMS

from samples import portions

#: How many programs a sample plays.
SAMPLE = 4
PAIRS = portions.count(sample=4, of=2000)
RANDOM = portions.count(sample=4, of=1000)

ROOT = Path(__file__).parents[2]
#: Examples without an operator.
_OTHERS = {"site_client", "rbac_in_a_test", "shop", "testing"}


def test_every_example_with_an_operator_is_simulated() -> None:
    """A new example that is forgotten would pass."""
    folders = {path.parent.name for path in (ROOT / "examples").glob("*/*.py")}
    modules = {path.stem for path in (ROOT / "examples").glob("*.py")}
    simulated = {name.partition(",")[0].partition(".")[0] for name in PROGRAMS}
    assert (folders | modules) - _OTHERS - simulated == set()


def _sort(name: str) -> str:
    """Examples, the control plane, workload controllers, or the developer control plane."""
    return name.partition(":")[0] if ":" in name else "examples"


@pytest.mark.parametrize("name", portions.some(PROGRAMS, SAMPLE, by=_sort))
def test_no_fault_breaks_it(name: str) -> None:
    report = PROGRAMS[name]().report(singles=portions.ALL, pairs=PAIRS, random_schedules=RANDOM)
    assert report.ok, str(report)
    assert report.schedules >= RANDOM
