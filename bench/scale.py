"""How far one manager and one embedded server go: memory, start, changes, loop turns and watchers at several sizes.

The server is `steersman serve --data`, the manager caches and reconciles every object, and a third process makes the
changes. CPU is that of the process itself, and a turn is the CPU time of one turn of its loop, so other programs on the
machine change little. The wall time of a turn or a start is longer on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import signal
import sys
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from bench import memory
from bench.apiserver_load import Command
from bench.apiserver_objects import MANY, NAMESPACE
from bench.apiserver_subjects import EMBEDDED, Subject, cpu_clock, process
from bench.converge_page import fill_between
from bench.loop_turns import Pause
from bench.report import Bar, BenchmarkFailed, Column, Figure, Report, cell, number
from bench.scale_manager import Stage, Task

#: Objects to create per command, so that progress shows.
BATCH = 10_000
#: Few writes per number of watchers: each write reaches all of them.
WRITES = 5
#: Longer than any stage takes.
PATIENCE = 1800.0
#: Measures that should not depend on the size, and measures that should grow with it and no faster.
FLAT = (
    "server: CPU per create",
    "server: CPU per update, with one watch",
    "manager: CPU per change, read only",
    "manager: CPU per change, one apply each",
)
LINEAR = ("manager: CPU of its start until synced", "manager: CPU of its start until all are reconciled")
#: Work on all objects that must not take one turn of the loop.
SLICED = (
    "server: longest turn, one list of all",
    "server: longest turn, a cache syncs",
    "manager: longest turn, its start",
)
#: A process that uses less of a core than this is at rest.
QUIET = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=_numbers, default=(10_000, 100_000, 300_000), help="objects of 2.7 KB")
    parser.add_argument("--changes", type=int, default=5_000, help="changes per measurement")
    parser.add_argument("--watchers", type=_numbers, default=(100, 1_000, 4_000), help="watchers of one kind")
    parser.add_argument("--doc", type=Path, metavar="FILE", help="write the tables into this page, between its marks")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted(map(int, text.split(","))))


def say(text: str) -> None:
    print(f"bench scale: {text}", file=sys.stderr, flush=True)


class Rows:
    """Measures by name and unit, with one value per size."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], dict[int, float]] = {}

    def add(self, name: str, unit: str, size: int, value: float) -> None:
        """Add the value for a size."""
        self._rows.setdefault((name, unit), {})[size] = value

    def of(self, name: str) -> dict[int, float]:
        """The values of a measure, by size."""
        return next((values for (each, _), values in self._rows.items() if each == name), {})

    def growth(self, name: str, *, per_object: bool = False) -> float:
        """The value at the largest size divided by the one at the smallest."""
        values = self.of(name)
        least, most = min(values), max(values)
        return values[most] / values[least] / (most / least if per_object else 1)

    def slope(self, name: str) -> float:
        """The growth per object between the smallest size and the largest."""
        values = self.of(name)
        least, most = min(values), max(values)
        return (values[most] - values[least]) / (most - least) if most > least else math.nan

    def columns(self) -> tuple[Column, ...]:
        """All measures."""
        return tuple(
            Column(name=name, unit=unit, rounds={f"{size:,}": (value,) for size, value in values.items()})
            for (name, unit), values in self._rows.items()
        )

    def figures(self, what: str) -> tuple[Figure, ...]:
        """All measures, one figure for each size."""
        return tuple(
            Figure(name=f"{name}, {size:,} {what}", value=value, unit=unit)
            for (name, unit), values in self._rows.items()
            for size, value in values.items()
        )


class Server:
    """A running server with its load; made by `serving`."""

    def __init__(self, process: Process, load: Process, kubeconfig: Path, turns: Path) -> None:
        self.kubeconfig = kubeconfig
        self.pid = process.pid
        self._process = process
        self._turns = turns
        self.load = Subject(EMBEDDED, load, {EMBEDDED: process.pid})
        #: Seconds of CPU of its start, until it was at rest.
        self.start = 0.0

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        return time.clock_gettime(cpu_clock(self.pid))

    async def rest(self) -> None:
        """Wait until it uses no CPU."""
        while True:
            before = self.cpu()
            await asyncio.sleep(1.0)
            if self.cpu() - before < QUIET:
                return

    async def pause(self) -> Pause:
        """Its longest pauses since the last call."""
        self._turns.unlink(missing_ok=True)
        self._process.send_signal(signal.SIGUSR1)
        async with asyncio.timeout(60):
            while not self._turns.exists():  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.05)
        return msgspec.json.decode(self._turns.read_bytes(), type=Pause)


@asynccontextmanager
async def serving(folder: Path) -> AsyncGenerator[Server]:
    """A server over the objects of a folder, at rest."""
    kubeconfig, turns = folder / "kubeconfig", folder / "turns"
    serve = ("serve", "--data", str(folder / "data"), "--kubeconfig", str(kubeconfig))
    async with process("-m", "bench.loop_turns", str(turns), *serve) as server:
        assert server.stdout is not None
        if not await server.stdout.readline():
            raise BenchmarkFailed("steersman serve exited before it served; see its output above")
        async with process("-m", "bench.apiserver_load", str(kubeconfig)) as load:
            found = Server(server, load, kubeconfig, turns)
            await found.rest()
            found.start = found.cpu()
            yield found


class Measurement:
    """All measurements of a run."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self._options = options
        self._folder = folder
        self.objects = Rows()
        self.watchers = Rows()

    async def run(self) -> None:
        """Measure every size, then the watchers."""
        held = 0
        for turn, size in enumerate(self._options.sizes):
            async with serving(self._folder) as server:
                if not turn:
                    for namespace in (NAMESPACE, MANY):
                        await server.load.do(Command(do="namespace", namespace=namespace))
                    await server.load.do(Command(do="create"))
                await server.pause()
                await self._fill(server, held, size)
                held = size
            async with serving(self._folder) as server:
                await self._server(server, size)
                await self._manager(server, turn, size)
        async with serving(self._folder) as server:
            await self._fan_out(server)

    async def _fill(self, server: Server, held: int, size: int) -> None:
        spent = 0.0
        for first in range(held, size, BATCH):
            say(f"created {first:,} of {size:,} objects")
            count = min(BATCH, size - first)
            done = await server.load.do(Command(do="create", namespace=MANY, first=first, count=count, concurrency=32))
            spent += done.cpu[EMBEDDED]
        self.objects.add("server: CPU per create", "us", size, spent / (size - held) * 1e6)
        self._pause("server", "creating", size, await server.pause())

    def _pause(self, program: str, when: str, size: int, pause: Pause) -> None:
        """Add the longest turn of a stage, and keep the longest collection of all stages."""
        self.objects.add(f"{program}: longest turn, {when}", "ms", size, pause.turn)
        collection = f"{program}: longest garbage collection"
        before = self.objects.of(collection).get(size, 0.0)
        self.objects.add(collection, "ms", size, max(before, pause.collection))

    async def _server(self, server: Server, size: int) -> None:
        say(f"{size:,} objects: the server")
        rows = self.objects
        rows.add("server: CPU of its start", "s", size, server.start)
        await server.pause()  # of its start, when no client waits yet
        rows.add("server: memory after its start", "MB", size, memory.private(server.pid) / 1e6)
        listed = await server.load.do(Command(do="list", namespace=MANY))
        rows.add("wire size of an object", "bytes", size, listed.done.size / size)
        rows.add("server: CPU per object of one list of all", "us", size, listed.cpu[EMBEDDED] / size * 1e6)
        self._pause("server", "one list of all", size, await server.pause())

    async def _manager(self, server: Server, turn: int, size: int) -> None:
        say(f"{size:,} objects: the manager")
        rows, changes = self.objects, self._options.changes
        command = ("-m", "bench.scale_manager", str(server.kubeconfig), str(size))
        async with process(*command, "metadata") as manager:
            rows.add("manager: memory, metadata only", "MB", size, (await _stage(manager)).memory / 1e6)
        await server.pause()
        async with process(*command) as manager:
            started = await _stage(manager)
            self._pause("server", "a cache syncs", size, await server.pause())
            rows.add("manager: CPU of its start until synced", "s", size, started.sync)
            rows.add("manager: CPU of its start until all are reconciled", "s", size, started.cpu - started.connect)
            self._pause("manager", "its start", size, started.pause)
            rows.add("manager: memory", "MB", size, started.memory / 1e6)
            rows.add("manager: peak memory of its start", "MB", size, started.peak / 1e6)
            for write, name in ((False, "read only"), (True, "one apply each")):
                await _tell(manager, Task(changes=changes, write=write))
                # A new revision for every stage: an update that changes nothing causes no event.
                spent = await server.load.do(
                    Command(
                        do="update",
                        namespace=MANY,
                        first=turn * changes,
                        count=changes,
                        concurrency=16,
                        revision=1 + 2 * turn + write,
                    )
                )
                stage = await _stage(manager)
                if stage.reconciles != changes or stage.requests != ({"apply secrets": changes} if write else {}):
                    raise BenchmarkFailed(
                        f"{changes} changes: {stage.reconciles} reconciles, requests {stage.requests}"
                    )
                rows.add(f"manager: CPU per change, {name}", "us", size, stage.cpu / changes * 1e6)
                self._pause("manager", name, size, stage.pause)
                if not write:
                    rows.add("server: CPU per update, with one watch", "us", size, spent.cpu[EMBEDDED] / changes * 1e6)
            self._pause("server", "these changes", size, await server.pause())
            rows.add("server: memory with its history", "MB", size, memory.private(server.pid) / 1e6)
            rows.add("server: peak memory", "MB", size, memory.peak(server.pid) / 1e6)

    async def _fan_out(self, server: Server) -> None:
        version = (await server.load.do(Command(do="list"))).done.version
        opened, before = 0, memory.private(server.pid)
        for count in self._options.watchers:
            say(f"{count:,} watchers")
            opening = await server.load.do(Command(do="watch", count=count - opened, version=version))
            self.watchers.add("CPU to open a watch", "us", count, opening.cpu[EMBEDDED] / (count - opened) * 1e6)
            self.watchers.add("memory per watch", "KB", count, (memory.private(server.pid) - before) / count / 1e3)
            opened = count
            await server.pause()
            command = Command(do="write", count=WRITES, revision=1000 + count)
            await server.load.do(command)  # a version that every watch has seen
            command.revision += WRITES
            spent = await server.load.do(command)
            self.watchers.add("CPU per event and watch", "us", count, spent.cpu[EMBEDDED] / (WRITES * count) * 1e6)
            self.watchers.add("longest turn of a write", "ms", count, (await server.pause()).turn)


async def _tell(manager: Process, task: Task) -> None:
    assert manager.stdin is not None
    assert manager.stdout is not None
    manager.stdin.write(msgspec.json.encode(task) + b"\n")
    if await manager.stdout.readline() != b"ready\n":
        raise BenchmarkFailed("the manager exited by itself; see its output above")


async def _stage(manager: Process) -> Stage:
    assert manager.stdout is not None
    async with asyncio.timeout(PATIENCE):
        line = await manager.stdout.readline()
    if not line:
        raise BenchmarkFailed("the manager exited by itself; see its output above")
    return msgspec.json.decode(line, type=Stage)


async def run(options: argparse.Namespace) -> Report:
    if options.doc is not None:
        # Check the page first: a run of minutes must not end with a page without marks.
        fill_between(options.doc, "scale", None)
    with tempfile.TemporaryDirectory(prefix="steersman-bench-") as scratch:
        measured = Measurement(options, Path(scratch))
        await measured.run()
    report = _report(measured.objects, measured.watchers)
    if options.doc is not None:
        fill_between(options.doc, "scale", as_markdown(report))
    return report


def _report(objects: Rows, watchers: Rows) -> Report:
    wire = objects.of("wire size of an object")
    size = wire[max(wire)]
    ratios = [
        ("memory of a cached object / its wire size", objects.slope("manager: memory") * 1e6 / size, 1.4),
        (
            "memory of a stored object / its wire size",
            objects.slope("server: memory after its start") * 1e6 / size,
            1.6,
        ),
    ]
    ratios += [(f"{name}, largest / smallest size", objects.growth(name), 1.5) for name in FLAT]
    ratios += [
        (f"{name}, per object, largest / smallest size", objects.growth(name, per_object=True), 1.5) for name in LINEAR
    ]
    return Report(
        name="scale",
        bars=(
            *(Bar(name=name, value=value, bar=bar) for name, value, bar in ratios),
            *(Bar(name=name, value=max(objects.of(name).values()), bar=250.0, unit="ms") for name in SLICED),
        ),
        columns=objects.columns(),
        figures=watchers.figures("watches"),
        notes=(
            "CPU is that of the process itself. A turn is the CPU time of one turn of its loop, without garbage collections.",
            "Memory is private dirty memory; that of the server is measured after a start, before any change.",
            "The server stores its objects in a folder, runs its controllers, and syncs every write to the disk.",
        ),
    )


def as_markdown(report: Report) -> str:
    """The machine, the measurements and the bars."""
    machine = ", ".join(f"{key} {value}" for key, value in report.machine.items())
    sizes = list(report.columns[0].rounds)
    lines = [f"One run; {machine}.", "", f"| objects | {' | '.join(sizes)} |", f"|---|{'---:|' * len(sizes)}"]
    lines += [
        f"| {column.name}, {column.unit} | {' | '.join(cell(column.median(each)) for each in sizes)} |"
        for column in report.columns
    ]
    lines += ["", "| Watches on one kind | |", "|---|---:|"]
    lines += [f"| {figure.name} | {number(figure.value)} {figure.unit} |" for figure in report.figures]
    lines += ["", "| Bar | measured | limit | |", "|---|---:|---:|---|"]
    lines += [
        f"| {bar.name} | {number(bar.value)} | {number(bar.bar)} | {'holds' if bar.holds else '**does not hold**'} |"
        for bar in report.bars
    ]
    return "\n".join(lines)
