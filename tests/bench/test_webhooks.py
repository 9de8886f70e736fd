"""The benchmark of webhooks measures what it says: a small run with both programs on one engine."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from bench.webhooks import Row
from bench.webhooks_world import GO, OURS
from samples.small_runs import small_run

ROOT = Path(__file__).parents[2]
BARS = {
    "create with a check, p50",
    "CPU per review, create with a check",
    "CPU per review, create with defaults and a check",
    "list of 20 converted objects",
}


@pytest.mark.slow
@small_run("webhooks")
def test_a_small_run_has_a_finite_value_for_every_bar(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- bench webhooks -->\n<!-- end of bench webhooks -->\nafter\n", encoding="utf-8")
    answer = subprocess.run(
        [
            *(sys.executable, "-m", "bench", "webhooks", "--rounds", "1", "--creates", "10", "--converted", "20"),
            *("--tests", "5"),
            *("--json", str(tmp_path / "report.json"), "--doc", str(page)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode in {0, 1}, answer.stderr  # so few requests say nothing about speed
    document = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    bars = {bar["name"]: bar["value"] for bar in document["bars"]}
    assert bars.keys() == {f"{name} / {GO}" for name in BARS} | {"a test with the fixture, median"}
    assert [name for name, value in bars.items() if not math.isfinite(value) or value <= 0] == []
    shown = page.read_text(encoding="utf-8")
    assert [name for name in BARS if f"\n| {name}" not in shown] == []


def test_ratios_are_formed_within_a_round() -> None:
    """The machine was four times as slow in the second round, for both."""
    row = Row("create, p50", "ms", 1.3)
    for slower in (1, 4, 2):
        row.add(OURS, 1.2 * slower)
        row.add(GO, 1.0 * slower)
    assert row.bar().value == pytest.approx(1.2)
    assert row.bar().holds
