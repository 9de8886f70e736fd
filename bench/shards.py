"""Replicas that share one program's objects: memory, watches and CPU of N against one, with the gate on and off.

Each run has its own embedded server, with the same objects in sequentially named namespaces. A stage of changes that no
controller reacts to measures the watches; one of changes that each apply an object measures the reconciles. CPU is that of
the processes themselves, from the end of the start on, so it includes the Leases, for as long as a stage takes.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping

from bench.report import Bar, BenchmarkFailed, Column, Report
from bench.shards_replica import VALUE, Status
from bench.shards_world import World, opened

#: An annotation that no controller reacts to.
OTHER = "bench.example.com/other"
SHARE = "largest replica: part of the stored bytes x N"
WATCH = "largest replica: CPU of the watches"
RECEIVED = "largest replica: received for the watches"
CPU = "all replicas: CPU of the reconciles"
SERVER = "server: CPU of the reconciles"
MEASURES = {
    SHARE: "",
    "largest replica: memory": "MB",
    WATCH: "s",
    RECEIVED: "MB",
    "all replicas: CPU of the watches": "s",
    CPU: "s",
    SERVER: "s",
    "reconciles": "",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--replicas", type=_numbers, default=(1, 2, 4), metavar="N,N", help="how many (default 1,2,4)")
    parser.add_argument("--namespaces", type=int, default=200, help="default 200")
    parser.add_argument("--objects", type=int, default=10, help="in each namespace (default 10)")
    parser.add_argument("--size", type=int, default=3000, help="bytes of each object's payload (default 3000)")
    parser.add_argument("--reconciles", type=int, default=20_000, help="at least so many (default 20000)")
    parser.add_argument("--gates", type=_words, default=("on", "off"), help="on, off or both (default on,off)")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(","))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def say(text: str) -> None:
    """Tell how far the run is."""
    print(f"bench shards: {text}", file=sys.stderr, flush=True)


def contender(replicas: int, gate: str) -> str:
    """The name of a column."""
    return f"{replicas}, gate {gate}"


class Run:
    """The replicas on one server."""

    def __init__(self, world: World, options: argparse.Namespace) -> None:
        self._world = world
        self._options = options
        self.measured: dict[str, float] = {}

    async def measure(self, count: int) -> None:
        """Start so many replicas, and measure them."""
        world, options = self._world, self._options
        await world.fill(
            [f"ns-{number:03}" for number in range(options.namespaces)], options.objects, size=options.size
        )
        await world.change("0")
        for number in range(count):
            await world.start(f"r{number}")
        await world.converged("0")
        found = await world.balanced() if count > 1 else await world.divided()
        stored = [status.stored for status in found.values()]
        self.measured[SHARE] = max(stored) / sum(stored) * count
        self.measured["largest replica: memory"] = max(status.memory for status in found.values()) / 1e6
        await self._watch()
        await self._reconcile()

    async def _watch(self) -> None:
        for turn in range(10):
            before, cpu = await self._rested(), self._cpu()
            await self._world.change(str(turn), annotation=OTHER)
            after = await self._rested()
            if all(after[name].reconciles == before[name].reconciles for name in after):
                break
            say("a range moved meanwhile, and its objects were reconciled; once more")
        else:
            raise BenchmarkFailed("ranges move all the time, or a change of the other annotation is reconciled")
        spent = {name: used - cpu[name] for name, used in self._cpu().items()}
        received = {name: after[name].received - before[name].received for name in after}
        self.measured[WATCH] = max(spent.values())
        self.measured["all replicas: CPU of the watches"] = sum(spent.values())
        self.measured[RECEIVED] = max(received.values()) / 1e6

    async def _reconcile(self) -> None:
        world = self._world
        before, cpu, server = await self._rested(), self._cpu(), world.server_cpu()
        done = turn = 0
        while done < self._options.reconciles:
            turn += 1
            await world.change(f"value-{turn}")
            await world.converged(f"value-{turn}")
            now = await world.statuses()
            done = sum(now[name].reconciles - before[name].reconciles for name in now)
            say(f"{done:,} reconciles")
        now = await self._rested()
        if any(status.failures for status in now.values()):
            raise BenchmarkFailed("a reconcile failed")
        self.measured[CPU] = sum(used - cpu[name] for name, used in self._cpu().items())
        self.measured[SERVER] = world.server_cpu() - server
        self.measured["reconciles"] = sum(now[name].reconciles - before[name].reconciles for name in now)

    def _cpu(self) -> dict[str, float]:
        return {name: replica.cpu() for name, replica in self._world.replicas.items()}

    async def _rested(self) -> dict[str, Status]:
        """Wait until no replica reconciles or receives more than its Leases."""
        before: dict[str, Status] = {}
        while True:
            found = await self._world.statuses()
            if before and all(
                found[name].reconciles == before[name].reconciles
                and found[name].received - before[name].received < 20_000
                for name in found
            ):
                return found
            before = found
            await asyncio.sleep(1.0)


async def run(options: argparse.Namespace) -> Report:
    """Measure each number of replicas with each gate."""
    if any(gate not in {"on", "off"} for gate in options.gates):
        raise BenchmarkFailed("--gates takes on and off")
    measured: dict[str, dict[str, float]] = {}
    for gate in options.gates:
        for count in options.replicas:
            say(f"{contender(count, gate)}: {options.namespaces * options.objects:,} objects")
            async with opened("embedded", gate=gate == "on", lease=120.0, renew=90.0) as world:
                one = Run(world, options)
                await one.measure(count)
            measured[contender(count, gate)] = one.measured
    return Report(
        name="shards",
        bars=tuple(_bars(measured, options.replicas, options.gates)),
        columns=tuple(
            Column(name=name, unit=unit, rounds={each: (values[name],) for each, values in measured.items()})
            for name, unit in MEASURES.items()
        ),
        notes=(
            (
                f"{options.namespaces} namespaces with {options.objects} ConfigMaps of {options.size} bytes each, and a Secret"
                " for each."
            ),
            (
                "CPU is that of the processes themselves; it includes the Leases, whose cost grows with the time that a stage"
                " takes."
            ),
            f"An update of the annotation {VALUE} is reconciled, one of {OTHER} is only received.",
        ),
    )


def _bars(measured: Mapping[str, Mapping[str, float]], replicas: tuple[int, ...], gates: tuple[str, ...]) -> list[Bar]:
    found: list[Bar] = []
    for gate in gates:
        for count in replicas:
            if count == 1:
                continue
            values, label = measured[contender(count, gate)], contender(count, gate)
            found.append(Bar(name=f"{label}: {SHARE}", value=values[SHARE], bar=1.25))
            one = measured.get(contender(1, gate))
            if gate == "on" and one is not None:
                found += [
                    Bar(name=f"{label}: {name}, x N / one", value=values[name] * count / one[name], bar=1.25)
                    for name in (WATCH, RECEIVED)
                ]
                each = (values[CPU] / values["reconciles"]) / (one[CPU] / one["reconciles"])
                found.append(Bar(name=f"{label}: {CPU}, each, N / one", value=each, bar=1.15))
    return found
