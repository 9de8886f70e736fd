"""The API server's benchmark measures all it promises: a small run on both servers, and its arithmetic without any."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from bench.apiserver import Row
from bench.apiserver_objects import NAMESPACE, config_map, new_pod
from bench.apiserver_subjects import EMBEDDED, ENGINE
from samples.small_runs import small_run

ROOT = Path(__file__).parents[2]
COMPARED = {
    "CPU per create of a ConfigMap",
    "CPU per create of a Pod",
    "CPU per update of a ConfigMap",
    "CPU per status patch of a Pod",
    "CPU per apply of a Deployment (create)",
    "CPU per apply of a Deployment (no change)",
    "CPU per apply of a Deployment (change)",
    "CPU per get of a ConfigMap",
    "CPU per watch event, one watcher from an old version",
    "CPU per object of a list",
    "LIST of 50 x 2.7 KB",
    "CPU per watch event, 10 watchers at once",
    "write to the last of 10 watchers",
}
ALONE = {"in-process start to first answer", "memory of an object / its wire size"}


@pytest.mark.slow
@small_run("apiserver")
def test_a_small_run_has_a_finite_value_for_every_bar(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- bench apiserver -->\n<!-- end of bench apiserver -->\nafter\n", encoding="utf-8")
    answer = subprocess.run(
        [
            *(sys.executable, "-m", "bench", "apiserver", "--rounds", "1", "--requests", "20", "--objects", "50"),
            *("--watchers", "10", "--kept", "500", "--starts", "1", "--rest", "0.1"),
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
    assert bars.keys() == {f"{name} / kube-apiserver" for name in COMPARED} | ALONE
    assert [name for name, value in bars.items() if not math.isfinite(value) or value < 0] == []
    columns = {column["name"]: column["contenders"] for column in document["columns"]}
    assert columns.keys() > COMPARED
    sizes = columns["size of that list"]
    assert sizes[EMBEDDED]["median"] == pytest.approx(sizes[ENGINE]["median"], rel=0.01)
    assert sizes[EMBEDDED]["median"] * 1e6 > 50 * 2700
    shown = page.read_text(encoding="utf-8")
    assert [name for name in (*COMPARED, *ALONE) if f"\n| {name}" not in shown] == []


def test_ratios_are_formed_within_a_round() -> None:
    """The machine was four times as slow in the second round, for both: neither is to blame."""
    row = Row("CPU per get", "us", 0.75)
    for slower in (1, 4, 2):
        row.add(EMBEDDED, 70.0 * slower)
        row.add(ENGINE, 100.0 * slower)
    assert row.bar().value == pytest.approx(0.7)
    assert row.bar().holds


def test_an_engine_that_took_no_time_breaks_the_bar() -> None:
    """Nothing can be said of a round in which nothing was measured."""
    row = Row("CPU per get", "us", 1.0)
    row.add(EMBEDDED, 1.0)
    row.add(ENGINE, 0.0)
    assert not row.bar().holds


@pytest.mark.parametrize("body", [config_map(NAMESPACE, 7), new_pod(7)])
def test_objects_have_the_size_that_the_bars_name(body: bytes) -> None:
    assert len(body) == pytest.approx(2700, rel=0.05)
