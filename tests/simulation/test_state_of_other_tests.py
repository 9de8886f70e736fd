"""The state of a scenario does not include that of other test modules: a run of tests has hundreds of them."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from steersman.simulation import ScenarioUser
from steersman.simulation.runs.module_state import ModuleState
from steersman.simulation.scenario import Scenario

number = 0


def setup() -> tuple[()]:
    return ()


async def workload(user: ScenarioUser) -> None:
    await user.settled()


def test_variables_of_other_test_modules_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copying them took longer than the run itself; a module of helpers is the scenario's."""
    global number  # noqa: PLW0603 - what a program should not do
    package = __name__.partition(".")[0]
    others = {name: ModuleType(f"{package}.{name}") for name in ("test_another", "another_test", "helpers")}
    for module in others.values():
        vars(module)["number"] = 0
        monkeypatch.setitem(sys.modules, module.__name__, module)
    state = ModuleState(Scenario(setup, workload), ())
    number = 1
    for module in others.values():
        vars(module)["number"] = 1
    assert set(state.restore()) == {f"{__name__}.number", f"{package}.helpers.number"}
