"""The scale benchmark measures all it promises, at two small sizes."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from bench.scale import FLAT, LINEAR, SLICED, Rows
from samples.small_runs import small_run

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@small_run("scale")
def test_a_small_run_has_a_finite_value_for_every_measure(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- bench scale -->\n<!-- end of bench scale -->\nafter\n", encoding="utf-8")
    answer = subprocess.run(
        [
            *(sys.executable, "-m", "bench", "scale", "--sizes", "50,150", "--changes", "20", "--watchers", "2,4"),
            *("--json", str(tmp_path / "report.json"), "--doc", str(page)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode in {0, 1}, answer.stderr  # so few objects say nothing about size
    document = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [bar["name"] for bar in document["bars"] if not math.isfinite(bar["value"])] == []
    columns = {column["name"]: column["contenders"] for column in document["columns"]}
    assert columns.keys() >= {*FLAT, *LINEAR, *SLICED, "manager: memory", "server: memory after its start"}
    assert all(set(each) == {"50", "150"} for each in columns.values())
    shown = page.read_text(encoding="utf-8")
    assert [name for name in columns if f"\n| {name}" not in shown] == []
    assert "| memory per watch, 4 watches |" in shown


def test_growth_and_slope_are_between_the_smallest_and_the_largest_size() -> None:
    rows = Rows()
    for size, value in ((100, 5.0), (1_000, 50.0), (300, 15.0)):
        rows.add("memory", "MB", size, value)
    assert rows.growth("memory") == pytest.approx(10)
    assert rows.growth("memory", per_object=True) == pytest.approx(1)
    assert rows.slope("memory") == pytest.approx(0.05)


def test_a_long_turn_is_measured() -> None:
    """In a process of its own: measuring changes the loop for good."""
    program = (
        "import asyncio, time\nfrom bench.loop_turns import Pauses\n"
        "pauses = Pauses()\n"
        "def busy(seconds):\n    began = time.thread_time()\n    while time.thread_time() - began < seconds: pass\n"
        "async def main():\n    busy(0.01); await asyncio.sleep(0); busy(0.2); await asyncio.sleep(0.3)\n"
        "began = time.thread_time()\nasyncio.run(main())\n"
        "print(pauses.take().turn, pauses.take().turn, 1000 * (time.thread_time() - began))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT)
    longest, after, spent = map(float, done.stdout.split())
    assert 200 <= longest < spent, "a turn that only waits costs no CPU"
    assert after == 0
