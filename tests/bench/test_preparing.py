"""Two processes that need the same prepared program get the same one: the first builds it, the second waits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WAITING = "bench: waiting for another process that prepares program-"
PROGRAM = """
import sys
from pathlib import Path
from bench.contenders.preparing import _kept

def make(target):
    target.mkdir()
    (target / "made").write_text("once")
    print("making", flush=True)
    sys.stdin.readline()

print(_kept("program", [Path(sys.argv[1])], "", make), flush=True)
"""


@pytest.fixture
def prepare(tmp_path: Path):
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, __file__],
                cwd=ROOT,
                env=os.environ | {"STEERSMAN_BENCH_CACHE": str(tmp_path)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_the_second_waits_for_what_the_first_builds(prepare) -> None:
    first = prepare()
    assert first.stdout.readline() == "making\n"
    second = prepare()
    assert second.stderr.readline().startswith(WAITING)
    made, _ = first.communicate("go on\n", timeout=60)
    found, complaints = second.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0), complaints
    assert found == made
    assert (Path(made.strip()) / "made").read_text() == "once"


def test_a_killed_process_delays_no_other(prepare) -> None:
    """Its lock ends with it, and its directory does not look complete."""
    first = prepare()
    assert first.stdout.readline() == "making\n"
    second = prepare()
    assert second.stderr.readline().startswith(WAITING)
    first.kill()
    assert second.stdout.readline() == "making\n"
    found, complaints = second.communicate("go on\n", timeout=60)
    assert second.returncode == 0, complaints
    assert Path(found.strip()).is_dir()
