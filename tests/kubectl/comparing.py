"""Two plays of a scenario, compared line by line."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from kubectl.known_differences import KNOWN, Known
from kubectl.player import Play, Printed
from kubectl.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Outcome:
    """What differs: the report of each line of the scenario that no known difference explains."""

    scenario: Scenario
    lines: int
    reports: tuple[str, ...]
    used: frozenset[Known]


def compare(scenario: Scenario, reference: Play, subject: Play) -> Outcome:
    """Compare what both printed."""
    reports: list[str] = []
    used: set[Known] = set()
    for left, right in zip(reference.printed, subject.printed, strict=True):
        report: list[str] = []
        for part, theirs, ours in _parts(left, right):
            lines = _differing(scenario, left.line, theirs, ours, used)
            if lines:
                report += [f"  {part}:", *(f"    {line}" for line in lines)]
        if report:
            reports.append("\n".join([left.line, *report]))
    return Outcome(scenario, len(reference.printed), tuple(reports), frozenset(used))


def _parts(left: Printed, right: Printed) -> list[tuple[str, str, str]]:
    return [
        ("exit code", f"{left.code}", f"{right.code}"),
        ("standard output", left.out, right.out),
        ("standard error", left.err, right.err),
    ]


def _differing(scenario: Scenario, line: str, theirs: str, ours: str, used: set[Known]) -> list[str]:
    """The difference as ``diff`` shows it, if not all of it is known."""
    if theirs == ours:
        return []
    shown = list(difflib.unified_diff(theirs.splitlines(), ours.splitlines(), lineterm="", n=2))[2:]
    unexplained = False
    for text in shown:
        if text[:1] in {"+", "-"}:
            reasons = [known for known in KNOWN if known.explains(scenario.name, line, text[1:])]
            used.update(reasons)
            unexplained = unexplained or not reasons
    # the same lines, but for the last line's end
    return (shown or [f"-{theirs!r}", f"+{ours!r}"]) if unexplained or not shown else []
