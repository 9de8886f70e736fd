"""The benchmark of patterns counts what happened: its shapes on the engine, a small run of its forms, and its arithmetic."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.patterns import as_markdown, columns, cost_bars, figures, request_bars
from bench.patterns_cost import Cost, Sizes, measure
from bench.patterns_counting import described, writes
from bench.patterns_operator import Spent
from bench.patterns_requests import Row, count
from bench.patterns_shapes import SHAPES
from bench.report import Report
from samples.small_runs import small_run
from steersman.testing import Engine
from steersman.wire import HttpRequest

SIZES = Sizes(owners=5, children=10, batches=2, passes=2, restarts=2)


@pytest.mark.slow
async def test_every_change_takes_the_fewest_writes_possible(engine: Engine) -> None:
    # the one that does most; the benchmark itself counts the others too, and waits longer for what should not come
    rows = await count(engine, SHAPES[-1:], quiet=0.2)
    assert [row.change for row in rows] == [
        "created",
        "a field of one child changed",
        "a child deleted by hand",
        "a child changed by hand",
        "a child more",
        "a child less",
        "started again",
        "deleted",
    ]
    bars = request_bars(rows)
    told = "\n".join(f"{row.change}: {dict(row.writes)}, {row.served} served" for row in rows)
    assert [bar for bar in bars if not bar.holds] == [], told
    assert {row.reads for row in rows} == {0}


@pytest.mark.slow
@small_run("patterns")
async def test_a_form_makes_every_child_once_and_rests() -> None:
    cost = (await measure(["patterns"], SIZES))["patterns"]
    made = writes(Counter(cost.create.requests))
    assert {what: times for what, times in made.items() if "sites" not in what} == {
        "apply configmaps": 30,
        "apply secrets": 10,
        "apply serviceaccounts": 10,
    }
    assert sum(times for what, times in made.items() if what.endswith("sites/status")) == 5
    assert (cost.create.runs, cost.again.runs, cost.restart.runs) == (5, 5, 5)
    assert cost.again.requests == {}
    assert writes(Counter(cost.restart.requests)) == {}
    assert min(cost.create.cpu, cost.again.cpu, cost.restart.cpu) > 0


def cost(cpu: float, **requests: int) -> Cost:
    create = Spent(cpu=cpu, runs=5, requests={"apply configmaps": 50, "read": 50}, failures=0)
    rest = Spent(cpu=cpu / 10, runs=5, requests=dict(requests), failures=0)
    return Cost(create=create, again=rest, restart=rest)


def test_ratios_are_formed_within_a_round() -> None:
    """The machine was four times as slow in the second round, for both: neither is to blame."""
    rounds = [{"patterns": cost(1.2 * slow), "bare": cost(slow)} for slow in (1.0, 4.0, 2.0)]
    bars = {bar.name: bar for bar in cost_bars(rounds)}
    assert bars["create: CPU / bare"].value == pytest.approx(1.2)
    assert all(bar.holds for bar in bars.values())
    names = {column.name: column for column in columns(rounds, SIZES)}
    assert names["look again: CPU per child"].median("bare") == pytest.approx(0.2 / (5 * 10) * 1e6)
    assert names["create: writes"].median("bare") == 50
    assert names["create: reads"].median("bare") == 50


def test_rounds_that_lie_apart_are_reported() -> None:
    """A median of 1.0 that comes from 0.7 and 1.7 is no result."""
    rounds = [{"patterns": cost(ours), "bare": cost(1.0)} for ours in (1.0, 0.7, 1.7)]
    told = {each.name: each.value for each in figures(rounds)}
    assert told["restart: CPU / bare, lowest round"] == pytest.approx(0.7)
    assert told["restart: CPU / bare, highest round"] == pytest.approx(1.7)


def test_a_write_of_a_restart_breaks_its_bar() -> None:
    rounds = [{"patterns": cost(1.0, **{"apply secrets": 1}), "bare": cost(1.0)}]
    broken = [bar.name for bar in cost_bars(rounds) if not bar.holds]
    assert broken == ["writes of looks and restarts, any round"]


def row(total: int, *, served: int | None = None, change: str = "created") -> Row:
    found = Counter({"apply configmaps": total})
    told = total if served is None else served
    return Row(shape="generator", change=change, writes=found, served=told, minimum=4, reads=3, events=1)


@pytest.mark.parametrize("total", [3, 5])
def test_one_write_less_is_as_wrong_as_one_more(total: int) -> None:
    rows = [row(total), row(0, change="started again")]
    rows[1] = Row(shape="generator", change="started again", writes=Counter(), served=0, minimum=0, reads=0, events=0)
    assert [bar.name for bar in request_bars(rows) if not bar.holds] == ["writes off the fewest possible, any change"]


def test_a_write_past_the_transport_is_noticed() -> None:
    again = Row(shape="generator", change="started again", writes=Counter(), served=0, minimum=0, reads=0, events=0)
    bars = request_bars([row(4, served=5), again])
    assert [bar.name for bar in bars if not bar.holds] == ["writes that only the API server counted"]


@pytest.mark.parametrize(
    ("request_", "what"),
    [
        (HttpRequest("GET", "/api/v1/namespaces/default/configmaps/a"), "read"),
        (HttpRequest("GET", "/api/v1/configmaps"), "list"),
        (HttpRequest("GET", "/api/v1/configmaps", query=(("watch", "true"),)), "watch"),
        (HttpRequest("GET", "/version"), "other"),
        (HttpRequest("DELETE", "/api/v1/namespaces/default/secrets/a"), "delete secrets"),
        (
            HttpRequest(
                "PATCH",
                "/apis/x.example.com/v1/namespaces/default/sites/a/status",
                headers=(("Content-Type", "application/apply-patch+yaml"),),
            ),
            "apply sites/status",
        ),
    ],
)
def test_a_request_is_what_it_does(request_: HttpRequest, what: str) -> None:
    assert described(request_) == what


def test_events_are_no_part_of_what_is_compared() -> None:
    counted = Counter({"create events": 3, "read": 2, "apply configmaps": 1})
    assert writes(counted) == {"apply configmaps": 1}


def test_the_page_shows_rows_columns_and_bars() -> None:
    rounds = [{"patterns": cost(2.0), "bare": cost(1.0)}]
    report = Report(name="patterns", bars=cost_bars(rounds), columns=columns(rounds, SIZES))
    text = as_markdown(report, [row(4)], SIZES, 1)
    assert "| generator: created | 4 | 4 | 3 | 1 |" in text
    assert "| create: CPU / bare | 2.00 | 1.25 | **does not hold** |" in text
    assert "5 owners with 10 children each, median of 1 rounds" in text
