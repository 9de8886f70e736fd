"""Replicas that share objects through joins, ends, kills, suspensions, cuts and rolling updates, judged by the server's record.

It runs as long as you like: ``python -m bench shards_chaos --minutes 30 --server engine``. Clocks are hours apart and run at
different speeds. Meanwhile objects change all the time.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time

from bench.report import Bar, Figure, Report
from bench.shards_audit import assignments
from bench.shards_replica import VALUE
from bench.shards_world import World, opened
from steersman import MergePatch
from steersman.aio import Supervisor
from steersman.client import Added, Modified
from steersman.errors import ApiError
from steersman.kinds.core_v1 import ConfigMap, Secret

FAULTS = ("join", "leave", "kill", "suspend", "cut", "update")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--minutes", type=float, default=30.0, help="how long faults happen (default 30)")
    parser.add_argument("--server", choices=("engine", "embedded"), default="engine")
    parser.add_argument("--gate", choices=("on", "off"), default="on")
    parser.add_argument("--replicas", type=int, default=4, help="about so many (default 4)")
    parser.add_argument("--namespaces", type=int, default=500, help="default 500")
    parser.add_argument("--objects", type=int, default=10, help="in each namespace (default 10)")
    parser.add_argument("--rate", type=float, default=20.0, help="changes a second (default 20)")
    parser.add_argument("--lease", type=float, default=15.0, help="seconds; renew is two thirds of it (default 15)")
    parser.add_argument("--seed", type=int, default=None, help="repeat the choices of an earlier run")


def say(text: str) -> None:
    """Tell what happens."""
    print(f"bench shards_chaos: {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


class Changes:
    """Changes objects all the time, and measures how long each waits for its Secret."""

    def __init__(self, world: World, objects: int, rate: float, chance: random.Random) -> None:
        self._world = world
        self._objects = objects
        self._rate = rate
        self._chance = chance
        #: The newest value of each object, and when it was written; without those that its Secret shows.
        self._waiting: dict[tuple[str, str], tuple[str, float]] = {}
        self.count = 0
        self.longest = 0.0

    async def run(self) -> None:
        """Change objects until cancelled."""
        while True:
            self.count += 1
            key = (self._chance.choice(self._world.namespaces), f"source-{self._chance.randrange(self._objects)}")
            value = f"change-{self.count}"
            # A key that waits counts from its first change on.
            _, since = self._waiting.get(key, ("", time.monotonic()))
            self._waiting[key] = (value, since)
            patch = MergePatch({"metadata": {"annotations": {VALUE: value}}})
            await self._world.client.patch(ConfigMap, key, patch)
            await asyncio.sleep(1 / self._rate)

    async def follow(self) -> None:
        """Watch the Secrets until cancelled."""
        while True:
            try:
                async with self._world.client.watch(Secret) as events:
                    async for event in events:
                        if isinstance(event, Added | Modified):
                            self._see(event.object)
            except ApiError as error:
                say(f"the watch of Secrets ended: {error}")

    def _see(self, secret: Secret) -> None:
        key = (secret.key.namespace, secret.key.name)
        value, since = self._waiting.get(key, ("", 0.0))
        if value and (secret.data or {}).get("value", b"").decode() == value:
            self.longest = max(self.longest, time.monotonic() - since)
            del self._waiting[key]


class Chaos:
    """Lets replicas come and go."""

    def __init__(self, world: World, options: argparse.Namespace, chance: random.Random) -> None:
        self._world = world
        self._options = options
        self._chance = chance
        self._started = 0
        self.counts = dict.fromkeys(FAULTS, 0)

    async def start(self) -> None:
        """Start a replica with clocks of its own."""
        self._started += 1
        skew, rate = self._chance.uniform(-7200, 7200), self._chance.uniform(0.9, 1.1)
        await self._world.start(f"r{self._started}", skew=skew, rate=rate)

    async def run(self) -> None:
        """Cause one fault after the other until cancelled."""
        while True:
            await asyncio.sleep(self._chance.uniform(0, 1.5 * self._options.lease))
            world, some = self._world, self._options.replicas
            fault = self._chance.choice(FAULTS)
            if len(world.replicas) > some + 1:
                fault = self._chance.choice(("leave", "kill"))
            elif len(world.replicas) < some - 1:
                fault = "join"
            name = self._chance.choice([*world.replicas])
            say(f"{fault} {name if fault not in {'join', 'update'} else ''}, of {', '.join(world.replicas)}")
            await getattr(self, f"_{fault}")(name)
            self.counts[fault] += 1

    async def _join(self, _: str) -> None:
        await self.start()

    async def _leave(self, name: str) -> None:
        await self._world.stop(name)

    async def _kill(self, name: str) -> None:
        await self._world.kill(name)

    async def _suspend(self, name: str) -> None:
        replica = self._world.replicas[name]
        replica.suspend()
        try:
            await asyncio.sleep(self._options.lease * self._chance.uniform(0.3, 2.0))
        finally:
            replica.resume()

    async def _cut(self, name: str) -> None:
        cable = self._world.replicas[name].cable
        cable.cut()
        try:
            await asyncio.sleep(self._options.lease * self._chance.uniform(0.1, 2.0))
        finally:
            cable.mend()

    async def _update(self, _: str) -> None:
        for name in [*self._world.replicas]:
            await self.start()
            await self._world.stop(name)


async def run(options: argparse.Namespace) -> Report:
    """Let faults happen, then judge."""
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    say(f"seed {seed}")
    chance = random.Random(seed)
    retry = min(2.0, options.lease / 10)
    async with opened(
        options.server, gate=options.gate == "on", lease=options.lease, renew=options.lease * 2 / 3, retry=retry
    ) as world:
        await world.fill([f"ns-{number:03}" for number in range(options.namespaces)], options.objects)
        await world.change("first")
        chaos = Chaos(world, options, chance)
        for _ in range(options.replicas):
            await chaos.start()
        await world.converged("first")
        changes = Changes(world, options.objects, options.rate, chance)
        say("all objects are reconciled; faults begin")
        async with Supervisor() as tasks:
            following = tasks.start(changes.follow(), name="watch of Secrets")
            changing = tasks.start(changes.run(), name="changes")
            faults = tasks.start(chaos.run(), name="faults")
            await asyncio.wait([changing, faults], timeout=options.minutes * 60)
            for task in (changing, faults):
                if task.done():
                    task.result()
                task.cancel()
            await asyncio.wait([changing, faults])
            say("no more faults; waiting until everything has converged")
            await world.copied()
            following.cancel()
        await world.balanced()
        since = len(world.record.read())
        await chaos.start()
        await world.balanced()
        rebalanced = world.unexpected(since)
        wrong = world.wrong_writes()
        for each in (*wrong[:10], *sorted(rebalanced)[:10]):
            say(each)
        seen = world.record.read()
        written = sum(each.resource == "secrets" and each.may_count for each in seen)
        return Report(
            name="shards_chaos",
            bars=(
                Bar(name="writes by a replica that did not have the key", value=len(wrong), bar=0, unit=""),
                Bar(name="writes for a rebalance of a converged world", value=len(rebalanced), bar=0, unit=""),
            ),
            figures=(
                Figure(name="minutes of faults", value=options.minutes, unit=""),
                Figure(name="judged writes", value=written, unit=""),
                Figure(name="assignments", value=len(assignments(seen)), unit=""),
                Figure(name="longest wait of a key", value=changes.longest, unit="s"),
                *(Figure(name=f"fault: {name}", value=count, unit="") for name, count in chaos.counts.items()),
            ),
            notes=(
                (
                    f"seed {seed}, {options.server}, gate {options.gate}, {options.namespaces} namespaces,"
                    f" {options.objects} objects in each, a lease of {options.lease:g} s"
                ),
            ),
        )
