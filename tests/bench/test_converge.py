"""The converge benchmark counts what happened: a small run on the engine, and its arithmetic and pictures without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench.contenders.preparing import CannotPrepare, contenders
from bench.converge import bars, columns
from bench.converge_chart import chart
from bench.converge_page import BEGIN, END, fill_page
from bench.report import Report
from bench.sites_round import Measured, Sizes
from samples.small_runs import small_run

ROOT = Path(__file__).parents[2]
COLUMNS = {
    "wall / bare",
    "wall",
    "CPU per object",
    "peak memory",
    "writes",
    "reconciles",
    "writes when started again",
    "CPU when started again",
    "idle CPU",
    "change to status, p50",
    "change to status, p99",
}
SIZES = Sizes(objects=10, changes=5, idle_seconds=1.0)


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", "converge", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@small_run("converge")
def test_a_small_run_makes_two_writes_and_one_reconcile_an_object(tmp_path: Path) -> None:
    answer = bench(
        *("--objects", "20", "--rounds", "1", "--only", "steersman,bare", "--changes", "5", "--idle", "1"),
        *("--json", str(tmp_path / "converge.json"), "--svg", str(tmp_path / "converge.svg")),
    )
    assert answer.returncode in {0, 1}, answer.stderr  # so few objects say nothing about speed
    document = json.loads((tmp_path / "converge.json").read_text(encoding="utf-8"))
    found = {column["name"]: column["contenders"] for column in document["columns"]}
    assert found.keys() == COLUMNS
    assert [name for name in COLUMNS if f"\n{name}" not in answer.stdout] == []
    assert [name for name in COLUMNS if found[name]["steersman"]["median"] is None] == []
    assert found["writes"] == {each: {"median": 40, "rounds": [40]} for each in ("steersman", "bare")}
    assert found["reconciles"]["steersman"]["rounds"] == [20]
    assert found["writes when started again"]["steersman"]["rounds"] == [0]
    assert found["wall / bare"]["bare"]["rounds"] == [1.0]
    assert {bar["name"] for bar in document["bars"] if bar["name"].endswith("any round") and not bar["holds"]} == set()
    assert "steersman" in (tmp_path / "converge.svg").read_text(encoding="utf-8")


def measured(**changes: object) -> Measured:
    plain = {
        "wall": 2.0,
        "cpu": 0.02,
        "peak_bytes": 50_000_000,
        "writes": {"APPLY configmaps": 10, "PATCH sites/status": 10},
        "reconciles": 10,
        "idle_cpu": 0.001,
        "latency_p50": 0.01,
        "latency_p99": 0.03,
        "restart_writes": {},
        "restart_reconciles": 10,
        "restart_cpu": 0.5,
    }
    return Measured(**(plain | changes))


def test_ratios_are_formed_within_a_round() -> None:
    """The machine was four times as slow in the second round, for both: neither is to blame."""
    rounds = [
        {"steersman": measured(wall=wall * 1.2), "bare": measured(wall=wall, reconciles=None)}
        for wall in (1.0, 4.0, 1.5)
    ]
    found = {bar.name: bar for bar in bars(rounds, SIZES)}
    assert found["wall / bare"].value == pytest.approx(1.2)
    assert found["wall / bare"].holds
    assert "CPU / kopf" not in found


@pytest.mark.parametrize("writes", [19, 21])
def test_one_write_less_is_as_wrong_as_one_more(writes: int) -> None:
    rounds = [{"steersman": measured()}, {"steersman": measured(writes={"APPLY configmaps": writes})}]
    assert [bar.name for bar in bars(rounds, SIZES) if not bar.holds] == ["writes off 2 an object, any round"]


def test_a_write_after_a_restart_breaks_its_bar() -> None:
    rounds = [{"steersman": measured(restart_writes={"APPLY configmaps": 1})}]
    assert [bar.name for bar in bars(rounds, SIZES) if not bar.holds] == ["writes when started again, any round"]


def test_what_does_not_apply_is_a_dash_in_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nyesterday\n{END}\nafter\n", encoding="utf-8")
    rounds = [{"steersman": measured(), "bare": measured(reconciles=None)}]
    report = Report(name="converge", bars=bars(rounds, SIZES), columns=columns(rounds, SIZES))
    fill_page(page, report, objects=10, rounds=1, picture=tmp_path / "images" / "converge.svg")
    text = page.read_text(encoding="utf-8")
    assert "(images/converge.svg)\n" in text
    assert text.startswith(f"before\n{BEGIN}\n")
    assert "\n10 objects, median of 1 round; " in text
    assert text.endswith(f"{END}\nafter\n")
    assert "| reconciles | 10 | - |" in text
    assert "yesterday" not in text


def test_a_page_without_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has no place for the table"):
        fill_page(page, Report(name="converge", bars=()), objects=10, rounds=1)
    assert page.read_text(encoding="utf-8") == "nothing\n"


def test_the_chart_has_a_bar_for_every_value() -> None:
    rounds = [{"steersman": measured(), "a & b": measured(restart_writes={"APPLY configmaps": 10})}]
    picture = ET.fromstring(chart(columns(rounds, SIZES), objects=10))
    drawn = [element.get("width") for element in picture.iter("{http://www.w3.org/2000/svg}rect")]
    # without a bare loader there is no ratio to it: five measures are left
    assert len(drawn) == 2 * 5
    assert all(float(width or 0) > 0 for width in drawn)
    assert "a & b" in {element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")}


def test_an_unknown_contender_is_refused_with_those_there_are() -> None:
    answer = bench("--only", "steersman,flux")
    assert answer.returncode == 2
    assert "unknown contender flux" in answer.stderr
    assert "controller-runtime-tuned" in answer.stderr


def test_a_contender_that_cannot_be_built_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STEERSMAN_BENCH_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(CannotPrepare, match=r"cannot prepare controller_runtime: building it needs Go"):
        contenders()["controller-runtime"].prepare()
