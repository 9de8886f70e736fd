"""Patterns beside the bare runtime: requests per change against the minimum, and CPU per child of many owners.

Requests are counted on the engine, at the operator's transport and by the API server itself. CPU is that of the
operator's process, with the embedded server as a separate process. The forms of the operator take turns, pass by pass
and start by start (see `bench.patterns_cost`); ratios are computed within a round, and the median of the rounds counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.converge_page import fill_between
from bench.patterns_cost import Cost, Sizes, measure
from bench.patterns_counting import READ, READS, writes
from bench.patterns_operator import Spent
from bench.patterns_requests import Row, count
from bench.report import Bar, Column, Figure, Report, cell, describe_machine, number, table
from steersman.testing import Engine

OURS, BARE, CHILDREN_ONLY = "patterns", "bare", "bare-children"
LIMIT = 1.25
#: Known requests beyond the minimum, and why.
KNOWN: dict[tuple[str, str], int] = {}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--owners", type=int, default=1_000, help="objects with children")
    parser.add_argument("--children", type=int, default=10, help="children of each")
    parser.add_argument("--passes", type=int, default=10, help="reconciles of all converged owners")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of all forms; 0: only count requests")
    parser.add_argument("--no-requests", action="store_true", help="do not count requests")
    parser.add_argument("--doc", type=Path, metavar="FILE", help="write the tables into this page, between its marks")


@dataclass(frozen=True, kw_only=True)
class PatternsReport(Report):
    """The measurements, with the requests of every change."""

    rows: tuple[Row, ...] = ()

    def document(self) -> dict[str, Any]:
        """Give the report as JSON."""
        return super().document() | {"requests": [row.document() for row in self.rows]}

    def __str__(self) -> str:
        return f"{requests_table(self.rows)}\n\n{super().__str__()}" if self.rows else super().__str__()


async def run(options: argparse.Namespace) -> Report:
    rows: list[Row] = []
    if not options.no_requests:
        async with Engine.start() as engine:
            rows = await count(engine)
    sizes = Sizes(owners=options.owners, children=options.children, passes=options.passes)
    rounds = await _rounds(sizes, options.rounds)
    report = PatternsReport(
        name="patterns",
        rows=tuple(rows),
        bars=(*request_bars(rows), *cost_bars(rounds)),
        columns=columns(rounds, sizes) if rounds else (),
        figures=(*figures(rounds), Figure(name="load average at the end", value=os.getloadavg()[0], unit="")),
        notes=_notes(sizes, options.rounds),
    )
    if options.doc is not None:
        fill_between(options.doc, "patterns", as_markdown(report, rows, sizes, options.rounds))
    return report


async def _rounds(sizes: Sizes, wanted: int) -> list[dict[str, Cost]]:
    forms = (OURS, BARE, CHILDREN_ONLY)
    rounds: list[dict[str, Cost]] = []
    for turn in range(wanted):
        begins = turn % len(forms)
        measured = await measure((*forms[begins:], *forms[:begins]), sizes)
        for form, cost in measured.items():
            spent = f"create {cost.create.cpu:.2f} s, looks {cost.again.cpu:.2f} s, restart {cost.restart.cpu:.2f} s"
            print(f"bench patterns: round {turn + 1} of {wanted}: {form}: {spent}", file=sys.stderr, flush=True)
        rounds.append({form: measured[form] for form in forms})
    return rounds


#: The CPU of a stage, in seconds; every child is reconciled once in it.
STAGES: dict[str, Callable[[Cost], float]] = {
    "create": lambda cost: cost.create.cpu,
    "look again": lambda cost: cost.again.cpu,
    "restart": lambda cost: cost.restart.cpu,
}
PARTS = {"create": "create", "look again": "again", "restart": "restart"}


def columns(rounds: list[dict[str, Cost]], sizes: Sizes) -> tuple[Column, ...]:
    """CPU per child and requests, with the forms side by side."""
    found: list[Column] = []
    for stage, cpu in STAGES.items():
        values = {form: tuple(cpu(one[form]) / sizes.all_children * 1e6 for one in rounds) for form in rounds[0]}
        found.append(Column(name=f"{stage}: CPU per child", unit="us", rounds=values))
    for stage, part in PARTS.items():
        totals = {form: tuple(float(_made(one[form], part).total()) for one in rounds) for form in rounds[0]}
        found.append(Column(name=f"{stage}: writes", unit="", rounds=totals))
    for name, what in (("reads", READ), ("Events", "create events")):
        totals = {form: tuple(float(one[form].create.requests.get(what, 0)) for one in rounds) for form in rounds[0]}
        found.append(Column(name=f"create: {name}", unit="", rounds=totals))
    return tuple(found)


def _made(cost: Cost, part: str) -> Counter[str]:
    """The writes of a stage, without Events."""
    spent: Spent = getattr(cost, part)
    return writes(Counter(spent.requests))


def figures(rounds: list[dict[str, Cost]]) -> tuple[Figure, ...]:
    """The spread of the rounds, without which a median says little; and the ratio to children alone."""
    found: list[Figure] = []
    for stage, cpu in STAGES.items():
        if spread := [cpu(each[OURS]) / cpu(each[BARE]) for each in rounds if cpu(each[BARE])]:
            found.append(Figure(name=f"{stage}: CPU / bare, lowest round", value=min(spread), unit="x"))
            found.append(Figure(name=f"{stage}: CPU / bare, highest round", value=max(spread), unit="x"))
        ratios = [cpu(each[OURS]) / cpu(each[CHILDREN_ONLY]) for each in rounds if CHILDREN_ONLY in each]
        if ratios:
            found.append(Figure(name=f"{stage}: CPU / bare-children", value=statistics.median(ratios), unit="x"))
    return tuple(found)


def cost_bars(rounds: list[dict[str, Cost]]) -> tuple[Bar, ...]:
    """The CPU of every stage relative to the bare runtime with the same result, by round."""
    if not rounds:
        return ()
    found: list[Bar] = []
    for stage, cpu in STAGES.items():
        ratios = [cpu(each[OURS]) / cpu(each[BARE]) if cpu(each[BARE]) else float("nan") for each in rounds]
        found.append(Bar(name=f"{stage}: CPU / bare", value=statistics.median(ratios), bar=LIMIT))
    idle = [spent for each in rounds for spent in (each[OURS].again, each[OURS].restart)]
    # Including Events: nothing should be reported if nothing happened.
    rewritten = max(sum(times for what, times in spent.requests.items() if what not in READS) for spent in idle)
    found.append(Bar(name="writes of looks and restarts, any round", value=rewritten, bar=0, unit=""))
    return tuple(found)


def request_bars(rows: list[Row]) -> tuple[Bar, ...]:
    """No request beyond the minimum; and the server counts as many as the transport."""
    if not rows:
        return ()
    over = max(abs(row.total - row.minimum - KNOWN.get((row.shape, row.change), 0)) for row in rows)
    restarts = max(row.total for row in rows if row.change == "started again")
    return (
        Bar(name="writes of a converged restart", value=restarts, bar=0, unit=""),
        Bar(name="writes off the fewest possible, any change", value=over, bar=0, unit=""),
        Bar(
            name="writes that only the API server counted",
            value=max(abs(row.served - row.total) for row in rows),
            bar=0,
            unit="",
        ),
    )


HEADER = ("change", "writes", "fewest possible", "reads", "Events")


def _cells(row: Row) -> tuple[str, ...]:
    return (f"{row.shape}: {row.change}", *map(str, (row.total, row.minimum, row.reads, row.events)))


def requests_table(rows: Sequence[Row]) -> str:
    """The table for a terminal."""
    return table(HEADER, [_cells(row) for row in rows])


def as_markdown(report: Report, rows: list[Row], sizes: Sizes, rounds: int) -> str:
    """The tables for the page."""
    machine = ", ".join(f"{key} {value}" for key, value in describe_machine().items())
    lines = [f"| {' | '.join(HEADER)} |", "|---|---:|---:|---:|---:|"]
    lines += [f"| {' | '.join(_cells(row))} |" for row in rows]
    if report.columns:
        forms = list(report.columns[0].rounds)
        lines += [
            "",
            f"{sizes.owners:,} owners with {sizes.children} children each, median of {rounds} rounds; {machine}.",
            "",
            f"| | {' | '.join(forms)} |",
            f"|---|{'---:|' * len(forms)}",
        ]
        for column in report.columns:
            name = f"{column.name}, {column.unit}" if column.unit else column.name
            lines.append(f"| {name} | {' | '.join(cell(column.median(form)) for form in forms)} |")
        lines += [
            f"| {each.name}, {each.unit} | {number(each.value)} |{' |' * (len(forms) - 1)}"
            for each in report.figures[:-1]
        ]
    lines += ["", "| Bar | measured | limit | |", "|---|---:|---:|---|"]
    lines += [
        f"| {bar.name} | {number(bar.value)} | {number(bar.bar)} | {'holds' if bar.holds else '**does not hold**'} |"
        for bar in report.bars
    ]
    return "\n".join(lines)


def _notes(sizes: Sizes, rounds: int) -> tuple[str, ...]:
    return (
        "Fewest possible: one write per child to create, change or delete, and one per changed status.",
        "One more each to set and to remove a finalizer. Events are counted separately.",
        "Reads: of single objects, from the server.",
        f"CPU: of the operator's process, {sizes.owners} owners with {sizes.children} children, {rounds} round(s).",
        "The API is the embedded server as a separate process, fresh for every form in every round.",
        f"create: the median of {sizes.batches} batches of owners in each round, forms in turns.",
        f"look again, restart: the cheapest of {sizes.passes} passes and {sizes.restarts} starts in each round, forms in turns.",
        "Their writes are those of all passes and all starts.",
        "bare: the same children and status with ctx.client alone, without prune, ownership checks and readiness.",
    )
