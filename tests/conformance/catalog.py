"""All scenarios written by hand: what the modules of the folder ``scenarios`` list."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

from conformance.scenario import Scenario


@cache
def all_scenarios() -> tuple[Scenario, ...]:
    """Every scenario, by the name of its theme and its own: ``deleting/finalizers``."""
    found: dict[str, Scenario] = {}
    for path in sorted((Path(__file__).parent / "scenarios").glob("*.py")):
        module = import_module(f"conformance.scenarios.{path.stem}")
        for one in module.SCENARIOS:
            name = f"{path.stem}/{one.name}"
            if name in found:
                raise ValueError(f"two scenarios are called {name}")
            found[name] = replace(one, name=name)
    return tuple(found.values())
