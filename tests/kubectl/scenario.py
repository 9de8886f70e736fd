"""Scenarios: what a user types into a shell, line by line.

| Line | Meaning |
|---|---|
| ``kubectl get pods`` | run by the shell, in a folder with a copy of ``manifests/``; pipes and redirections work |
| ``$ sed -i ... file`` | run as well, but only to prepare the next line: it must succeed, and what it prints is not compared |
| ``& kubectl get pods -w`` | started in the background; the next line is run when it has printed something |
| ``&3`` | what runs in the background has printed three lines and is ended; its output is compared here |
| ``# words`` | for people |

``{ns}`` is the scenario's own namespace, which the kubeconfig names as the default. Cluster-wide names contain it; so do
the groups of the definitions that a scenario installs: ``{ns}.play.steersman.dev``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

MANIFESTS = Path(__file__).with_name("manifests")


@dataclass(frozen=True, slots=True)
class Scenario:
    """Lines that are run one after the other."""

    name: str
    transcript: str

    @property
    def is_everyday(self) -> bool:
        """Whether each run of the tests plays it."""
        return self.name.startswith("everyday/")

    @property
    def installs(self) -> bool:
        """Whether it installs definitions: what all kubectl commands find changes while it is played."""
        return "crd.yaml" in self.transcript

    @property
    def lines(self) -> list[str]:
        """The lines to run."""
        joined = re.sub(r"\\\n\s*", "", self.transcript)
        found = [line.strip() for line in joined.splitlines()]
        return [line for line in found if line and not line.startswith("#")]


@cache
def all_scenarios() -> tuple[Scenario, ...]:
    """Every scenario, by the name of its theme and its own: ``getting/selectors``."""
    found: dict[str, Scenario] = {}
    for path in sorted(Path(__file__).with_name("scenarios").glob("*.py")):
        module = import_module(f"kubectl.scenarios.{path.stem}")
        for one in module.SCENARIOS:
            name = f"{path.stem}/{one.name}"
            if name in found:
                raise ValueError(f"two scenarios are called {name}")
            found[name] = Scenario(name, one.transcript)
    return tuple(found.values())


@cache
def manifests() -> dict[str, str]:
    """The files that every scenario finds in its folder."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(MANIFESTS.iterdir())}
