"""The files of regressions: their names, and what they hold.

Guarantee: a file appears whole, and is never overwritten, also when several processes keep findings in one folder.
"""

from __future__ import annotations

import os
import re
from itertools import count
from pathlib import Path

import msgspec

from steersman.simulation.report import MOMENT, Finding
from steersman.simulation.runs.schedules import FaultSchedule, PlacedFault, Violation

#: What a name can do without: names of objects, numbers, and small words.
_SMALL = re.compile(r"\S*/\S*|\d+|\b(a|an|and|at|be|is|of|should|the|was|when)\b")
#: How many words of a violation name its file.
_WORDS = 6


class Regression(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule that failed once."""

    path: Path
    #: The scenario that it belongs to.
    scenario: str
    schedule: FaultSchedule
    #: What was wrong then.
    violations: tuple[Violation, ...] = ()


class _Content(msgspec.Struct, kw_only=True):
    scenario: str = ""
    seed: int
    faults: tuple[PlacedFault, ...] = ()
    violations: tuple[Violation, ...] = ()


def read_regression(path: Path) -> Regression:
    """The schedule in a file. Raises ValueError if it holds none, OSError if it cannot be read."""
    content = msgspec.json.decode(path.read_bytes(), type=_Content)
    return Regression(
        path=path,
        scenario=content.scenario,
        schedule=FaultSchedule(seed=content.seed, faults=content.faults),
        violations=content.violations,
    )


def regressions_in(folder: Path, scenario: str) -> list[Regression]:
    """The regressions of a scenario in a folder, by name."""
    found = [read_regression(path) for path in sorted(folder.glob("*.json"))]
    return [regression for regression in found if regression.scenario == scenario]


def keep_finding(folder: Path, finding: Finding, *, scenario: str) -> Path:
    """Keep the schedule of a finding in a file named after its violation; returns its path."""
    name = _name(finding)
    for number in count(1):
        path = folder / (f"{name}.json" if number == 1 else f"{name}-{number}.json")
        if _is_written(path, finding, scenario):
            return path
        kept = read_regression(path)
        if (kept.scenario, kept.schedule) == (scenario, finding.schedule):
            return path
    raise AssertionError


def _is_written(path: Path, finding: Finding, scenario: str) -> bool:
    """Write a new file; False if there is one, which another process may have just written."""
    schedule = finding.schedule
    content = _Content(scenario=scenario, seed=schedule.seed, faults=schedule.faults, violations=finding.violations)
    path.parent.mkdir(parents=True, exist_ok=True)
    unnamed = path.with_suffix(f".{os.getpid()}")
    try:
        unnamed.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
        # A link replaces no file, unlike a rename.
        path.hardlink_to(unnamed)
    except FileExistsError:
        return False
    finally:
        unnamed.unlink(missing_ok=True)
    return True


def _name(finding: Finding) -> str:
    """``secret-left-behind``."""
    violations = finding.story.violations if finding.story is not None else tuple(map(str, finding.violations))
    words = re.findall(r"[a-z]+", _SMALL.sub(" ", MOMENT.sub("", violations[0]).lower())) if violations else []
    return "-".join(words[:_WORDS]) or "violation"
