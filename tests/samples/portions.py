"""How much of a long comparison a run plays, and where chance begins.

| Environment | Meaning |
|---|---|
| ``STEERSMAN_COMPARISONS=sample`` | a part of each comparison, chosen by the seed: what a run does unless it is set |
| ``STEERSMAN_COMPARISONS=all`` | all of each: what `.ci/full` runs |
| ``STEERSMAN_COMPARISONS=20`` | of what is generated, 20 times as much as that |
| ``STEERSMAN_SEED=4711`` | repeats the choice of an earlier run; every run prints its seed |

Run the long forms with ``-o faulthandler_timeout=0``: they take longer than a test may.
"""

from __future__ import annotations

import os
import secrets  # noqa: TID251 - the one number that a run does not repeat unless it is given
from collections.abc import Callable, Hashable, Iterable
from random import Random  # noqa: TID251 - seeded, and the seed is printed
from typing import TypeVar

import pytest

T = TypeVar("T")

#: ``sample``, ``all`` or how many times as much as all.
PORTION = os.environ.get("STEERSMAN_COMPARISONS", "sample")
#: Workers and subprocesses inherit it: they collect the same tests.
SEED = int(os.environ.setdefault("STEERSMAN_SEED", str(secrets.randbelow(1_000_000))))
ALL = PORTION != "sample"
_TIMES = 1 if PORTION in {"sample", "all"} else int(PORTION)


def count(*, sample: int, of: int) -> int:
    """How many generated cases this run plays."""
    return of * _TIMES if ALL else sample


def some(cases: Iterable[T], sample: int, *, by: Callable[[T], Hashable] | None = None) -> list[T]:
    """The cases that this run plays, in their order: all, or so many, and with `by` at least one of each sort."""
    known = list(cases)
    if ALL or len(known) <= sample:
        return known
    shuffled = list(range(len(known)))
    Random(SEED).shuffle(shuffled)
    if by is not None:
        met: set[Hashable] = set()
        # the first of each sort, then the others: sorting keeps the order of the shuffle
        shuffled.sort(key=lambda place: (sort := by(known[place])) in met or met.add(sort) is not None)
        sample = max(sample, len(met))
    return [known[place] for place in sorted(shuffled[:sample])]


def seed_of(name: str) -> int:
    """The seed of one comparison: with the seed of the run it begins where it began."""
    return Random(f"{SEED}/{name}").randrange(1_000_000_000)


def _summary() -> str:
    words = {"sample": "a sample of each", "all": "all of each"}.get(PORTION, f"{PORTION} times all of each")
    return f"comparisons: {words}; STEERSMAN_COMPARISONS={PORTION} STEERSMAN_SEED={SEED} repeats them"


def pytest_report_header() -> str:
    return _summary()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(_summary())
