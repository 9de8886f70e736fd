"""The benchmark runner: it finds benchmarks, prints a table, writes JSON, and its status says whether the bars hold."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BENCHMARK = '''
"""A pace, measured for the test of the runner.

More text.
"""

from bench.report import Bar, Figure, Report


def add_arguments(parser):
    parser.add_argument("--knots", type=float, default=9.0)


async def run(options):
    return Report(
        name="pace",
        bars=(Bar(name="speed", value=options.knots, bar=10.0, unit="knots"),),
        figures=(Figure(name="wind", value=1234.5, unit="kg"),),
        notes=("the hull limits it",),
    )
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The runner with one benchmark of the test's own."""
    shutil.copytree(ROOT / "bench", tmp_path / "bench", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "bench" / "pace.py").write_text(BENCHMARK, encoding="utf-8")
    return tmp_path


def bench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def test_a_benchmark_is_found_by_its_module(folder: Path) -> None:
    answer = bench(folder)
    assert answer.returncode == 0
    assert "A pace, measured for the test of the runner." in answer.stdout
    assert "\nreport" not in answer.stdout


def test_a_bar_that_holds_is_said_in_table_json_and_status(folder: Path) -> None:
    answer = bench(folder, "pace", "--json", "out/pace.json")
    assert answer.returncode == 0, answer.stderr
    assert "9.00 knots" in answer.stdout
    assert "1,234 kg" in answer.stdout
    document = json.loads((folder / "out" / "pace.json").read_text(encoding="utf-8"))
    assert document["bars"] == [
        {"name": "speed", "value": 9.0, "bar": 10.0, "unit": "knots", "at_least": False, "holds": True}
    ]


def test_a_bar_that_does_not_hold_fails_the_run(folder: Path) -> None:
    answer = bench(folder, "pace", "--knots", "11")
    assert answer.returncode == 1
    assert "DOES NOT HOLD" in answer.stdout
    assert "the hull limits it" in answer.stdout


def test_a_value_that_is_not_a_number_holds_no_bar(folder: Path) -> None:
    assert bench(folder, "pace", "--knots", "nan").returncode == 1


def test_an_unknown_name_says_which_there_are(folder: Path) -> None:
    answer = bench(folder, "space")
    assert answer.returncode == 2
    assert "unknown benchmark 'space'" in answer.stderr
    assert "pace" in answer.stderr
