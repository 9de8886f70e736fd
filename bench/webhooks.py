"""Webhooks beside controller-runtime's: a create, CPU per review, a list of converted objects; and a user's test.

Two programs serve the same defaults, checks and conversion for one engine: one written with Steersman, one in Go with
controller-runtime. They take turns; ratios are computed within a round, and the median of the rounds counts.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import statistics
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.converge_page import fill_between
from bench.report import Bar, BenchmarkFailed, Column, Report
from bench.report_page import add_doc_argument, fill_page
from bench.testing import run_suite
from bench.webhooks_world import GO, MANY, OURS, Served, ShopWorld, shop_world

#: Requests at the same time while CPU is measured.
AT_ONCE = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_doc_argument(parser)
    parser.add_argument("--rounds", type=int, default=5, help="rounds; both programs take part in each")
    parser.add_argument("--creates", type=int, default=500, help="objects to create per round and program")
    parser.add_argument("--tests", type=int, default=100, help="tests of a webhook with the fixture")
    parser.add_argument("--converted", type=int, default=10_000, help="objects in the list of converted objects")


def say(text: str) -> None:
    print(f"bench webhooks: {text}", file=sys.stderr, flush=True)


class Row:
    """One measure of both programs, with one value per round."""

    def __init__(self, name: str, unit: str, limit: float | None = None) -> None:
        self.name, self.unit, self.limit = name, unit, limit
        self.rounds: dict[str, list[float]] = {OURS: [], GO: []}

    def add(self, program: str, value: float) -> None:
        """Add the value of a round."""
        self.rounds[program].append(value)

    def bar(self) -> Bar:
        """The median of the ratios of all rounds."""
        assert self.limit is not None
        pairs = zip(self.rounds[OURS], self.rounds[GO], strict=True)
        ratios = [ours / theirs if theirs else math.inf for ours, theirs in pairs]
        return Bar(name=f"{self.name} / {GO}", value=statistics.median(ratios), bar=self.limit)

    def column(self) -> Column:
        """All values, side by side."""
        return Column(name=self.name, unit=self.unit, rounds={each: tuple(v) for each, v in self.rounds.items()})


async def _in_turns(world: ShopWorld, rounds: int, measure: Callable[[Served, int], Awaitable[None]]) -> None:
    """Measure both programs in every round; each is first in every second one. Round 0 only warms up."""
    for turn in range(rounds + 1):
        for served in world.served if turn % 2 else reversed(world.served):
            await measure(served, turn)


async def creates(world: ShopWorld, rounds: int, count: int, *, defaults: bool) -> list[Row]:
    """Whole creates, one after the other; then CPU per review with several at once."""
    what = "defaults and a check" if defaults else "a check"
    reviews = 2 if defaults else 1
    # Two calls in a row say more about the calls than about a create.
    latency = Row(f"create with {what}, p50", "ms", None if defaults else 1.3)
    cpu = Row(f"CPU per review, create with {what}", "us", 2.5)
    await world.call(defaults=defaults)
    say(f"creates with {what}: {rounds} rounds of {count}, one by one and {AT_ONCE} at once")

    async def measure(served: Served, turn: int) -> None:
        seconds = await world.create(served.name, f"single-{reviews}-{turn}", count)
        before = served.cpu()
        await world.create(served.name, f"several-{reviews}-{turn}", count, at_once=AT_ONCE)
        spent = served.cpu() - before
        if turn:
            latency.add(served.name, statistics.median(seconds) * 1e3)
            cpu.add(served.name, spent / count / reviews * 1e6)

    await _in_turns(world, rounds, measure)
    return [latency, cpu]


async def conversions(world: ShopWorld, rounds: int, count: int) -> list[Row]:
    """A list of all objects in the version that is not stored."""
    say(f"conversion: creating {count} objects")
    await world.create(MANY, "shop", count, at_once=16)
    seconds = Row(f"list of {count:,} converted objects", "s", 1.5)
    cpu = Row("CPU per converted object", "us")
    say(f"conversion: {rounds} rounds")

    async def measure(served: Served, turn: int) -> None:
        await world.convert_with(served)
        before = served.cpu()
        took, found = await world.list_converted()
        if found != count:
            raise BenchmarkFailed(f"the list with {served.name} has {found} of {count} objects")
        if turn:
            seconds.add(served.name, took)
            cpu.add(served.name, (served.cpu() - before) / count * 1e6)

    await _in_turns(world, rounds, measure)
    return [seconds, cpu]


async def run(options: argparse.Namespace) -> Report:
    if options.doc is not None:
        # Check the page first: a run of minutes must not end with a page without marks.
        fill_between(options.doc, "webhooks", None)
    with TemporaryDirectory(prefix="steersman-bench-") as scratch:
        say(f"{options.tests} tests of a webhook")
        test = await asyncio.to_thread(run_suite, "embedded", Path(scratch), tests=options.tests, file="test_shops.py")
        async with shop_world(Path(scratch)) as world:
            rows = [
                *await creates(world, options.rounds, options.creates, defaults=False),
                *await creates(world, options.rounds, options.creates, defaults=True),
                *await conversions(world, options.rounds, options.converted),
            ]
    report = Report(
        name="webhooks",
        bars=(
            *(row.bar() for row in rows if row.limit is not None),
            Bar(name="a test with the fixture, median", value=test.each * 1e3, bar=50.0, unit="ms"),
        ),
        columns=tuple(row.column() for row in rows),
        notes=(
            "create: from sending the request until its answer; one request at a time, objects with ten items.",
            f"CPU: of the webhooks' process alone, with {AT_ONCE} requests at once.",
            "list: in pages of 500. The API server converts each object by itself, one after the other.",
            "The API server has no watch cache, which would convert each object only once.",
            "test: a test of a user with three lines, from its setup to its teardown, on the embedded control plane.",
        ),
    )
    fill_page(options.doc, report)
    return report
