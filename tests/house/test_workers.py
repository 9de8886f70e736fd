"""A run with workers: what is alone is alone, what belongs together stays together, and a crash is one failure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from samples.inner_pytest import run_pytest

OPTIONS = """
[pytest]
markers = alone
addopts = --import-mode=importlib -p xdist -p no:cacheprovider
"""
CONFTEST = """
import json, os, time, pytest
from pathlib import Path
from samples import durations, scheduling
pytest_plugins = ["samples.workers"]
durations.TABLE = Path("durations.json")
scheduling.CORES = 2

@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    began = time.monotonic()
    yield
    with open(os.environ["PLAYED"], "a") as played:
        print(json.dumps([item.nodeid, os.getpid(), began, time.monotonic()]), file=played)
"""
QUICK = "def test_one(): pass\ndef test_two(): pass\n"
FILES = {
    "conftest.py": CONFTEST,
    "one/test_alone.py": f"import pytest\n{QUICK}\n@pytest.mark.alone\ndef test_alone(): pass\n",
    "faults/test_a.py": QUICK,
    "faults/test_b.py": f"import logging\n{QUICK}\ndef test_words(): logging.warning('\\udcff')\n",
    "faults/test_c.py": f"from samples.workers import summarize\n{QUICK}\ndef test_sums(request): summarize(request.config, 'a sum')\n",
    "two/test_a.py": QUICK,
    "two/test_ends.py": f"import os\n{QUICK}\ndef test_ends(): os._exit(3)\ndef test_after(): pass\n",
}
WAITING = {
    "conftest.py": CONFTEST,
    "one/test_work.py": QUICK,
    "one/test_more.py": QUICK,
    "one/test_most.py": QUICK,
    "two/test_waits.py": QUICK,
    "two/test_waits_longer.py": QUICK,
}
#: Seconds and CPU seconds.
DURATIONS = {
    "tests/one/test_work.py": [1, 0.9],
    "tests/one/test_more.py": [2, 1.8],
    "tests/one/test_most.py": [9, 9],
    "tests/two/test_waits.py": [3, 0.3],
    "tests/two/test_waits_longer.py": [4, 0.4],
}


@dataclass
class Played:
    """One test: its id, the process that ran it, and when."""

    name: str
    worker: int
    began: float
    ended: float


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Played]]:
    """The output of a run with two workers, and the tests that came to their end."""
    return play(tmp_path_factory.mktemp("workers"), FILES, workers=2)


def play(folder: Path, files: dict[str, str], *, workers: int) -> tuple[str, list[Played]]:
    """Run tests in so many workers on a machine with two cores."""
    (folder / "pytest.ini").write_text(OPTIONS, encoding="utf-8")
    (folder / "durations.json").write_text(json.dumps(DURATIONS), encoding="utf-8")
    for name, source in files.items():
        file = folder / "tests" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source, encoding="utf-8")
    played = folder / "played"
    done = run_pytest(folder, "-n", str(workers), "tests", PLAYED=str(played))
    lines = played.read_text(encoding="utf-8").splitlines()
    return done.stdout + done.stderr, [Played(*json.loads(line)) for line in lines]


def test_what_is_alone_runs_when_all_others_have_ended(run: tuple[str, list[Played]]) -> None:
    """Else the time or memory that it measures would be another test's."""
    *others, last = sorted(run[1], key=lambda each: each.began)
    assert last.name.endswith("test_alone")
    assert max(each.ended for each in others) <= last.began


def test_a_room_with_servers_of_its_own_stays_in_one_worker(run: tuple[str, list[Played]]) -> None:
    """Else its servers would be started twice."""
    assert len({each.worker for each in run[1] if "/faults/" in each.name}) == 1


def test_a_test_that_ends_its_worker_fails_once_and_hides_no_other(run: tuple[str, list[Played]]) -> None:
    output, played = run
    assert "1 failed, 16 passed" in output
    assert output.count("FAILED tests/two/test_ends.py::test_ends") == 1
    assert len({each.name for each in played}) == len(played) == 16


def test_the_summary_shows_what_a_worker_added(run: tuple[str, list[Played]]) -> None:
    assert run[0].count("\na sum\n") == 1


def test_workers_beyond_the_cores_begin_with_what_waits(tmp_path: Path) -> None:
    """Else three tests would compute on two cores. The longest begins first, else it would run alone at the end."""
    output, played = play(tmp_path, WAITING, workers=3)
    assert "10 passed" in output
    first: dict[int, str] = {}
    for each in sorted(played, key=lambda each: each.began):
        first.setdefault(each.worker, each.name.partition("::")[0])
    assert set(first.values()) == {
        "tests/one/test_most.py",
        "tests/one/test_more.py",
        "tests/two/test_waits_longer.py",
    }
