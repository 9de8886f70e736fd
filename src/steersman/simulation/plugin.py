"""The pytest plugin of simulations: the fixture `simulation`.

Guarantees: only pytest is imported until the fixture is used. A schedule that failed is kept in the folder ``regressions``
beside the test, and replayed first in the next run.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from steersman.simulation.regressions import Replay
    from steersman.simulation.report import SimulationReport
    from steersman.simulation.scenario import Scenario, Setup, Workload


class Simulation:
    """Runs simulations for a test: ``simulation(setup, workload)``. See `simulate` for the options."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._calls = 0

    def __call__(self, setup: Setup | str, workload: Workload, **options: Any) -> SimulationReport:
        """Replay what failed before, then try every fault; raises AssertionError with the stories of what breaks."""
        __tracebackhide__ = True
        from steersman.simulation.regressions import keep_finding  # noqa: PLC0415 - see the module's guarantees
        from steersman.simulation.report import scenario_of, simulate  # noqa: PLC0415 - as above

        self._calls += 1
        # A generator would be used up by the replay.
        options |= {option: tuple(options[option]) for option in ("checks", "kinds", "faults") if option in options}
        name = self._name if self._calls == 1 else f"{self._name} ({self._calls})"
        self._replay(scenario_of(setup, workload, options), name)
        report = simulate(setup, workload, **options)
        paths = [keep_finding(self._folder, finding, scenario=name) for finding in report.findings]
        try:
            report.check()
        except AssertionError as error:
            kept = "".join(f"\nkept in {path}: the next run replays it first" for path in paths)
            raise AssertionError(f"{error}\n{kept}") from None
        return report

    def _replay(self, scenario: Scenario, name: str) -> None:
        __tracebackhide__ = True
        from steersman.simulation.regressions import regressions_in, replayed  # noqa: PLC0415 - see above

        regressions = regressions_in(self._folder, name)
        wrong, replays = replayed(scenario, [regression.schedule for regression in regressions])
        if wrong:
            return  # the simulation says so
        failed: list[str] = []
        for regression, replay in zip(regressions, replays, strict=True):
            failed += _failures(regression.path, replay)
        if failed:
            raise AssertionError("\n\n".join(failed))


def _failures(path: Path, replay: Replay) -> list[str]:
    if replay.finding is not None:
        return [f"the regression {path} fails again:\n{replay.finding.story}"]
    if not replay.complete:
        warnings.warn(f"not all faults of {path} happen any more: delete the file", stacklevel=4)
    return []


@pytest.fixture
def simulation(request: pytest.FixtureRequest) -> Simulation:
    """Runs an operator with every fault at every request: ``simulation(setup, workload)``."""
    path: Path = request.node.path
    return Simulation(path.parent / "regressions", f"{path.name}::{request.node.name}")
