"""The shards benchmark measures all it promises, and its judge finds what is wrong."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from bench.shards import MEASURES
from bench.shards_audit import Write, wrong_writes
from samples.small_runs import small_run
from steersman.manager.shards.assignment import Assignment, Part
from steersman.manager.shards.records import assignment_text
from steersman.wire import HashRange

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@small_run("shards")
def test_a_small_run_has_a_finite_value_for_every_measure(tmp_path: Path) -> None:
    answer = subprocess.run(
        [
            *(sys.executable, "-m", "bench", "shards", "--replicas", "1,2", "--namespaces", "20", "--objects", "1"),
            *("--size", "100", "--reconciles", "20", "--gates", "on", "--json", str(tmp_path / "report.json")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode in {0, 1}, answer.stderr  # so few objects say nothing about cost
    document = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [bar["name"] for bar in document["bars"] if not math.isfinite(bar["value"])] == []
    columns = {column["name"]: column["contenders"] for column in document["columns"]}
    assert columns.keys() == MEASURES.keys()
    assert all(set(each) == {"1, gate on", "2, gate on"} for each in columns.values())


def _assigned(owner: str, at: float) -> Write:
    assignment = Assignment(1, (Part(range=HashRange(), owner=f"sharer-{owner}.x"),))
    body = {"data": {"assignment": assignment_text(assignment)}}
    return _write("coordinator", "configmaps", "sharer-assignment", at, at, body=body)


def _elected(holder: str, at: float) -> Write:
    return _write(holder, "leases", "sharer", at, at, body={"spec": {"holderIdentity": holder}})


def _write(user: str, resource: str, name: str, received: float, completed: float, *, body=None, code=200) -> Write:
    return Write(
        user=user,
        resource=resource,
        namespace="shop",
        name=name,
        received=received,
        completed=completed,
        code=code,
        body=body,
    )


def _copied(user: str, received: float, completed: float, *, code: int = 200) -> Write:
    return _write(user, "secrets", "copy", received, completed, code=code)


@pytest.mark.parametrize(
    ("write", "is_wrong"),
    [
        (_copied("a", 1.5, 1.6), False),
        (_copied("b", 2.5, 2.6), False),
        (_copied("b", 1.5, 1.6), True),
        (_copied("a", 2.5, 2.6), True),
        (_copied("a", 1.9, 2.1), True),
        (_copied("a", 2.5, 2.6, code=409), False),
        (_copied("a", 2.5, 2.6, code=504), True),
        (_copied("old", 3.5, 3.6), False),
        (_copied("b", 3.5, 3.6), True),
        (_copied("old", 0.5, 0.6), True),
    ],
)
def test_a_write_outside_of_its_actors_time_is_found(write, is_wrong) -> None:
    """A judge that finds nothing would pass two actors of one key."""
    record = [_assigned("a", 1.0), _assigned("b", 2.0), _elected("old", 3.0), write]
    assert bool(wrong_writes(record, leaders={"old"})) == is_wrong
