"""What a run plays of long comparisons: by its seed alone, of every sort, and all when all is asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
PROGRAM = """
import json
from samples import portions
cases = [f"{sort}/{number}" for sort in "abcde" for number in range(20 if sort == "a" else 2)]
print(json.dumps([
    portions.some(cases, 10, by=lambda case: case[0]), portions.some(cases, 10), portions.some(cases, 3, by=lambda case: case[0]),
    portions.count(sample=3, of=50), portions.seed_of("one"), portions.seed_of("two"),
]))
"""


def chosen(**variables: str) -> list:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STEERSMAN_")}
    environment |= {"PYTHONPATH": str(TESTS), **variables}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True)
    return json.loads(done.stdout)


def test_a_sample_follows_from_its_seed_and_has_something_of_every_sort() -> None:
    """A failure of last night can be played again, and no area is left out by chance."""
    first, other = chosen(STEERSMAN_SEED="7"), chosen(STEERSMAN_SEED="8")
    assert chosen(STEERSMAN_SEED="7") == first != other
    of_each, of_all, few, count, *seeds = first
    assert (len(of_each), len(of_all), len(few), count) == (10, 10, 5, 3)
    assert {case[0] for case in of_each} == {case[0] for case in few} == set("abcde")
    assert of_all == sorted(of_all, key=lambda case: (case[0], int(case[2:])))
    assert len(set(seeds)) == 2


def test_all_is_all_and_a_number_is_as_many_times_more() -> None:
    whole, more = chosen(STEERSMAN_COMPARISONS="all"), chosen(STEERSMAN_COMPARISONS="20")
    assert len(whole[0]) == len(whole[2]) == len(more[0]) == 28
    assert (whole[3], more[3]) == (50, 1000)


def test_every_run_has_a_seed_of_its_own() -> None:
    assert chosen() != chosen()
