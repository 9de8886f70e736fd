"""A reference without an engine: normalized answers saved to a file, and read back.

Guarantee: an answer is only given for the very steps that it was recorded for.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from conformance.player import Play
from conformance.scenario import Scenario


def fingerprint(scenario: Scenario) -> str:
    """What changes when the steps change."""
    steps = [repr(step).partition(", focus=")[0] for step in scenario.steps]
    return hashlib.sha256("\n".join(steps).encode()).hexdigest()[:16]


class Recording:
    """The answers of one server by scenario."""

    def __init__(self, plays: dict[str, Any] | None = None) -> None:
        self._plays = plays or {}

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Read a file that `write` wrote."""
        return cls(json.loads(path.read_text(encoding="utf-8")))

    def write(self, path: Path) -> None:
        """Save all that was added."""
        path.write_text(json.dumps(self._plays), encoding="utf-8")

    def add(self, scenario: Scenario, play: Play) -> None:
        """Keep what a scenario gave."""
        self._plays[scenario.name] = [fingerprint(scenario), play.requests, play.frames, play.answers]

    def play(self, scenario: Scenario) -> Play:
        """What a scenario gave when it was recorded."""
        steps, requests, frames, answers = self._plays.get(scenario.name, (None, 0, 0, []))
        if steps != fingerprint(scenario):
            raise LookupError(
                f"scenario {scenario.name} is not in the recording, or has changed since: record again with "
                "CONFORMANCE_RECORD=FILE"
            )
        return Play(answers, requests, frames)
