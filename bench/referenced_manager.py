"""The manager of the referenced benchmark: a separate process that reports its cost.

``python -m bench.referenced_manager KUBECONFIG OWNERS FORM`` reconciles every ConfigMap, prints a `Stage`, and waits for a
line. With the form ``none`` a reconcile reads its ConfigMap alone, otherwise also the Secret that this names: of a manager
that refers to it (``referenced``), or that caches all (``whole``). After the line it waits until a change of the Secret of
each tenth ConfigMap, which the benchmark makes, has led to a reconcile, and prints a line.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec

from bench import memory
from bench.patterns_counting import Counting
from bench.patterns_operator import Runs, rested
from steersman import Client, Context, Done, Key, Manager, Request
from steersman.aio import Supervisor
from steersman.controller import View
from steersman.kinds.core_v1 import ConfigMap, Secret


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a start; all but memory in seconds."""

    first: float
    first_cpu: float
    all: float
    all_cpu: float
    memory: int
    requests: dict[str, int]


def secret_of(settings: View[ConfigMap]) -> str | None:
    """The Secret that a ConfigMap names."""
    return (settings.object.data or {}).get("secret")


def secret_users(secret: View[Secret]) -> list[Key]:
    """The ConfigMap of the same name."""
    return [secret.key]


class Reconciler:
    """Reads the ConfigMap and, if asked to, its Secret."""

    def __init__(self, *, reads_secret: bool) -> None:
        self._reads_secret = reads_secret
        self.first = self.first_cpu = 0.0
        self.names = set[str]()
        self.seen = Counter[str]()

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Reconcile one ConfigMap."""
        settings = await ctx.client.get(ConfigMap, request.key)
        name = (settings.data or {}).get("secret")
        if name is None:
            return Done()  # a server has ConfigMaps of its own
        if self._reads_secret:
            secret = await ctx.client.get(Secret, Key(request.key.namespace, name))
            self.seen[request.key.name] += (secret.data or {}).get("round", b"") == b"2"
        self.names.add(request.key.name)
        if not self.first:
            self.first, self.first_cpu = time.perf_counter(), time.process_time()
        return Done()


async def operate(kubeconfig: Path, owners: int, form: str) -> None:
    """Run, and report."""
    runs, counted, reconciler = Runs(), Counter[str](), Reconciler(reads_secret=form != "none")
    manager = Manager(name="bench")
    controller = manager.controller(ConfigMap, name="referenced").options(concurrency=16)
    if form == "referenced":
        controller.refers_to(Secret, by=secret_of)
    elif form == "whole":
        controller.watches(Secret, map=secret_users)
    controller.run_with(reconciler)
    manager.on_reconcile(runs.note)
    async with Client.connect(kubeconfig=kubeconfig, field_manager="bench") as client, Supervisor() as supervisor:
        counting = client.with_transport(lambda inner: Counting(inner, counted))
        await counting.live.get(ConfigMap, Key("team-000", "object-0"))  # connects
        counted.clear()
        gc.collect()
        began, cpu = time.perf_counter(), time.process_time()
        supervisor.start(manager.run(counting, signals=False), name="manager")
        await runs.until(lambda: len(reconciler.names) >= owners)
        ended, ended_cpu = time.perf_counter(), time.process_time()
        await rested(manager)
        gc.collect()
        assert not runs.failures, f"{runs.failures} reconciles failed"
        stage = Stage(
            first=reconciler.first - began,
            first_cpu=reconciler.first_cpu - cpu,
            all=ended - began,
            all_cpu=ended_cpu - cpu,
            memory=memory.private(),
            requests=dict(counted),
        )
        print(msgspec.json.encode(stage).decode(), flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        if form != "none":
            changed = [f"object-{number}" for number in range(0, owners, 10)]
            await runs.until(lambda: all(reconciler.seen[name] for name in changed))
            print("changed", flush=True)
        manager.stop()


if __name__ == "__main__":
    asyncio.run(operate(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
