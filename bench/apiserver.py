"""The embedded API server beside kube-apiserver: CPU per request, a long list, a thousand watchers, start, memory.

`steersman serve` with objects in memory and kube-apiserver with etcd get the same requests over TLS, from a separate
process that runs the same program for both. They take turns; ratios are computed within a round, and the median of the
rounds counts. CPU is that of the server's process, beyond what it uses at rest.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bench.apiserver_alone import in_fresh_process
from bench.apiserver_load import Command, Done
from bench.apiserver_objects import MANY, NAMESPACE
from bench.apiserver_subjects import EMBEDDED, ENGINE, ETCD, Subject, both
from bench.converge_page import fill_between
from bench.report import Bar, Column, Figure, Report, cell, number

#: Few writes per round of watchers: each write reaches all of them.
WRITES = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds of everything")
    parser.add_argument("--requests", type=int, default=1_000, help="requests of each kind per round")
    parser.add_argument("--objects", type=int, default=10_000, help="objects of 2.7 KB in the list")
    parser.add_argument("--watchers", type=int, default=1_000, help="watchers of one kind")
    parser.add_argument("--kept", type=int, default=20_000, help="objects of 2.7 KB for the memory measurement")
    parser.add_argument("--starts", type=int, default=7, help="fresh processes for the start measurement")
    parser.add_argument(
        "--rest", type=float, default=3.0, metavar="SECONDS", help="how long to measure the servers at rest"
    )
    parser.add_argument("--doc", type=Path, metavar="FILE", help="write the table into this page, between its marks")


@dataclass(slots=True)
class Row:
    """One measure of both servers, with one value per round."""

    name: str
    unit: str
    #: The limit of the embedded server, relative to the engine.
    limit: float | None = None
    rounds: dict[str, list[float]] = field(default_factory=lambda: {EMBEDDED: [], ENGINE: [], ETCD: []})

    def add(self, subject: str, value: float) -> None:
        """Add the value of a round."""
        self.rounds[subject].append(value)

    def bar(self) -> Bar:
        """The median of the ratios of all rounds."""
        assert self.limit is not None
        pairs = zip(self.rounds[EMBEDDED], self.rounds[ENGINE], strict=True)
        ratios = [ours / theirs if theirs else math.inf for ours, theirs in pairs]
        return Bar(name=f"{self.name} / kube-apiserver", value=statistics.median(ratios), bar=self.limit)

    def column(self) -> Column:
        """All values, side by side."""
        return Column(name=self.name, unit=self.unit, rounds={each: tuple(v) for each, v in self.rounds.items()})


def say(text: str) -> None:
    print(f"bench apiserver: {text}", file=sys.stderr, flush=True)


class Comparison:
    """Both servers, and all their measurements."""

    def __init__(self, subjects: tuple[Subject, Subject], options: argparse.Namespace) -> None:
        self._subjects = subjects
        self._options = options
        self.rows: list[Row] = []

    def _row(self, name: str, unit: str, limit: float | None = None) -> Row:
        row = Row(name, unit, limit)
        self.rows.append(row)
        return row

    async def prepare(self) -> None:
        """Create namespaces, and measure the programs at rest."""
        idle = self._row("CPU at rest", "% of a core")
        for subject in self._subjects:
            for namespace in (NAMESPACE, MANY):
                await subject.do(Command(do="namespace", namespace=namespace))
            # Programs are still busy right after their start.
            await subject.rest(self._options.rest / 3)
            for program, share in (await subject.rest(self._options.rest)).items():
                idle.add(program, share * 100)

    async def _in_turns(self, row: Row, command: Command, *, per: float = 1e6) -> list[dict[str, Done]]:
        """Run the same command on both in all rounds; ``per`` converts CPU seconds to the unit of the row."""
        answers: list[dict[str, Done]] = []
        for turn in range(self._options.rounds + 1):
            now = msgspec.structs.replace(command, first=command.first + turn * command.count)
            if command.do in {"update", "status patch", "apply other", "get", "list", "replay"}:
                # These change existing objects again each time.
                now = msgspec.structs.replace(command, revision=turn + 1)
            elif command.do == "apply same":
                now = command
            found: dict[str, Done] = {}
            for subject in self._subjects if turn % 2 else reversed(self._subjects):
                spent = await subject.do(now)
                found[subject.name] = spent.done
                if turn:  # round 0 warms up connections, caches and compilers
                    for program, seconds in spent.cpu.items():
                        row.add(program, seconds / command.count * per)
            if turn:
                answers.append(found)
        return answers

    async def requests(self) -> None:
        """CPU of single-object requests."""
        count = self._options.requests
        for operation, name in (
            ("create", "create of a ConfigMap"),
            ("create pod", "create of a Pod"),
            ("update", "update of a ConfigMap"),
            ("status patch", "status patch of a Pod"),
            ("apply new", "apply of a Deployment (create)"),
            ("apply same", "apply of a Deployment (no change)"),
            ("apply other", "apply of a Deployment (change)"),
            ("get", "get of a ConfigMap"),
        ):
            say(f"{name}: {self._options.rounds} rounds of {count}")
            await self._in_turns(self._row(f"CPU per {name}", "us", 1.0), Command(do=operation, count=count))

    async def replay(self) -> None:
        """CPU of stored events that one watcher reads as fast as it can."""
        count = self._options.requests
        starts = {each.name: (await each.do(Command(do="list"))).done.version for each in self._subjects}
        for subject in self._subjects:
            await subject.do(Command(do="update", count=count, revision=100))
        row = self._row("CPU per watch event, one watcher from an old version", "us", 1.0)
        say(f"watch events: {self._options.rounds} rounds of {count} events that have happened")
        for turn in range(self._options.rounds + 1):
            for subject in self._subjects if turn % 2 else reversed(self._subjects):
                command = Command(do="replay", count=count, version=starts[subject.name])
                spent = await subject.do(command)
                if turn:
                    for program, seconds in spent.cpu.items():
                        row.add(program, seconds / count * 1e6)

    async def long_list(self) -> None:
        """CPU and time of one long list with objects of the same size on both."""
        count = self._options.objects
        say(f"list: creating {count} objects on each server")
        sizes: dict[str, int] = {}
        for subject in self._subjects:
            await subject.do(Command(do="create", namespace="default", first=10_000_000))
            answer = await subject.do(Command(do="get", namespace="default", first=10_000_000))
            sizes[subject.name] = answer.done.size
        largest = max(sizes.values())
        for subject in self._subjects:
            # Servers add different fields: pad the shorter objects to the same size.
            padding = largest - sizes[subject.name]
            await subject.do(Command(do="create", namespace=MANY, count=count, concurrency=32, padding=padding))
        say(f"list: {self._options.rounds} rounds")
        cpu = self._row("CPU per object of a list", "us", 1.0)
        seconds = self._row(f"LIST of {count:,} x 2.7 KB", "ms", 0.25)
        megabytes = self._row("size of that list", "MB")
        for found in await self._in_turns(cpu, Command(do="list", namespace=MANY), per=1e6 / count):
            for name, done in found.items():
                seconds.add(name, done.seconds * 1000)
                megabytes.add(name, done.size / 1e6)

    async def fan_out(self) -> None:
        """CPU of events for many watchers, and the time until the last of them has it."""
        count, rounds = self._options.watchers, self._options.rounds
        cpu = self._row(f"CPU per watch event, {count:,} watchers at once", "us", 1.0)
        last = self._row(f"write to the last of {count:,} watchers", "ms", 2.0)
        say(f"watchers: opening {count} on each server")
        for subject in self._subjects:
            version = (await subject.do(Command(do="list"))).done.version
            await subject.do(Command(do="watch", count=count, version=version))
        say(f"watchers: {rounds} rounds of {WRITES} writes")
        for turn in range(rounds + 1):
            command = Command(do="write", count=WRITES, revision=1000 + turn * WRITES)
            for subject in self._subjects if turn % 2 else reversed(self._subjects):
                spent = await subject.do(command)
                if turn:
                    last.add(subject.name, statistics.median(spent.done.delays) * 1000)
                    for program, seconds in spent.cpu.items():
                        cpu.add(program, seconds / (WRITES * count) * 1e6)


def alone(options: argparse.Namespace) -> tuple[list[Bar], list[Figure]]:
    """Measurements of the embedded server alone."""
    say(f"start: {options.starts} fresh processes")
    in_fresh_process("start")  # it compiles what the others read
    starts = [in_fresh_process("start")[0] for _ in range(options.starts)]
    say(f"memory of {options.kept} objects")
    kept, size = in_fresh_process("memory", str(options.kept))
    bars = [
        Bar(name="in-process start to first answer", value=statistics.median(starts), bar=50.0, unit="ms"),
        Bar(name="memory of an object / its wire size", value=kept / size, bar=1.5),
    ]
    figures = [
        Figure(name="the slowest of all starts", value=max(starts), unit="ms"),
        Figure(name="memory of a stored object", value=kept / options.kept, unit="bytes"),
        Figure(name="wire size of that object", value=size / options.kept, unit="bytes"),
    ]
    return bars, figures


async def run(options: argparse.Namespace) -> Report:
    if options.doc is not None:
        # Check the page first: a run of minutes must not end with a page without marks.
        fill_between(options.doc, "apiserver", None)
    own, figures = alone(options)
    async with both() as subjects:
        comparison = Comparison(subjects, options)
        await comparison.prepare()
        await comparison.requests()
        await comparison.replay()
        await comparison.long_list()
        await comparison.fan_out()
    report = Report(
        name="apiserver",
        bars=(*(row.bar() for row in comparison.rows if row.limit is not None), *own),
        columns=tuple(row.column() for row in comparison.rows),
        figures=tuple(figures),
        notes=_notes(options),
    )
    if options.doc is not None:
        fill_between(options.doc, "apiserver", as_markdown(report, options))
    return report


def _notes(options: argparse.Namespace) -> tuple[str, ...]:
    return (
        "CPU: of the server's process alone, without its use at rest; etcd's is listed beside kube-apiserver's.",
        "Requests: 8 at a time, HTTP/1.1 over TLS with a client certificate, responses not compressed.",
        "The embedded server keeps its objects in memory. The list has the same size on both.",
        f"Watchers: {options.watchers:,} connections of one load process, with the same reading cost for both.",
        f"A round of watchers is the median of {WRITES} writes, from sending one until the last watcher has its event.",
        f"Memory: private memory of a process for {options.kept:,} more objects, after a collection, without history.",
        "The wire size is that of a get.",
    )


def as_markdown(report: Report, options: argparse.Namespace) -> str:
    """The machine, the measurements and the bars."""
    machine = ", ".join(f"{key} {value}" for key, value in report.machine.items())
    lines = [f"Median of {options.rounds} rounds; {machine}.", "", "| | embedded | kube-apiserver | etcd beside it |"]
    lines.append("|---|---:|---:|---:|")
    for column in report.columns:
        values = " | ".join(cell(column.median(each)) for each in (EMBEDDED, ENGINE, ETCD))
        lines.append(f"| {column.name}, {column.unit} | {values} |")
    lines += ["", "| Bar | measured | limit | |", "|---|---:|---:|---|"]
    lines += [
        f"| {bar.name} | {number(bar.value)} {bar.unit} | {number(bar.bar)} {bar.unit} | "
        f"{'holds' if bar.holds else '**does not hold**'} |"
        for bar in report.bars
    ]
    return "\n".join(lines)
