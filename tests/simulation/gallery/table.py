# ruff: noqa: T201 - a program that prints
"""The table of the gallery for docs/simulation.md: ``PYTHONPATH=tests python -m simulation.gallery.table``.

It runs every single fault on each wrong operator, so it takes some minutes.
"""

from __future__ import annotations

from simulation.gallery.catalog import EXHIBITS
from simulation.gallery.exhibit import Exhibit

from steersman.simulation import Exploration, Scenario, fault_name
from steersman.simulation.runs.schedules import Result

SEED = 1
PAIRS = 200


def row(name: str, exhibit: Exhibit) -> str:
    """One line of the table: the failure, the faults that show it, and the first violation."""
    scenario = Scenario(exhibit.wrong, exhibit.workload, checks=exhibit.checks, replicas=exhibit.replicas)
    exploration = Exploration(scenario, seed=SEED)
    violations, faults = exploration.prepare(), "none needed"
    if not violations:
        results: list[Result] = []
        exploration.singles(results.append)
        if exhibit.pairs:
            exploration.runs(exploration.pairs(PAIRS), results.append)
        failed = [result for result in results if any(exhibit.words in str(each) for each in result.violations)]
        violations = failed[0].violations if failed else ()
        names = dict.fromkeys(fault_name(placed.fault) for result in failed for placed in result.schedule.faults)
        faults = ", ".join(names) or "NOT FOUND"
    words = next((str(each) for each in violations if exhibit.words in str(each)), "")
    return f"| {name.replace('_', ' ')} | {exhibit.defect} | {faults} | {SEED} | {words.replace('|', '/')} |"


def main() -> None:
    """Print the table."""
    print("| Failure | What is wrong | Found by | Seed | Violation |\n|---|---|---|---|---|")
    for name, exhibit in EXHIBITS.items():
        print(row(name, exhibit), flush=True)


if __name__ == "__main__":
    main()
