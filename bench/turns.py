"""The longest turn of the event loop with hundreds of thousands of objects, and the cost of a scrape.

A manager with one controller and one declared index runs over a server in the same process, which streams generated
objects. A turn is everything that the loop runs between two calls of ``select``. Its time is the CPU time of the loop's
thread, without garbage collections: their length depends on everything that the program holds.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import selectors
import statistics
import time
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from typing import Any

from bench.report import Bar, BenchmarkFailed, Report
from steersman import Client, Context, Done, Manager, Request
from steersman.aio import Supervisor
from steersman.controller import Stores, View
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import Key
from steersman.telemetry.exposition import expose
from steersman.transport import InProcessTransport, ServerResponse
from steersman.wire import HttpRequest

#: Limits in milliseconds.
TURN, SCRAPE = 50.0, 20.0
PATIENCE = 600.0
SCRAPES = 20
_PIECE = 100
_LABEL = {"app": "service-1"}
_JSON = (("Content-Type", "application/json"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--objects", type=int, default=300_000, help="objects in the cache and in the queue")
    parser.add_argument("--reconciles", type=int, default=10_000, help="reconciles to measure")


class Turns:
    """Measures the turns of a loop, by stage."""

    def __init__(self) -> None:
        self.stage = ""
        #: The longest turn of each stage, in seconds.
        self.longest: dict[str, float] = {}
        self._collected = 0.0
        self._began = self._collecting = time.thread_time()

    def clock(self) -> float:
        """The CPU time of this thread without garbage collections."""
        return time.thread_time() - self._collected

    def begin(self) -> None:
        """A turn begins."""
        self._began = self.clock()

    def end(self) -> None:
        """The turn ends."""
        self.longest[self.stage] = max(self.longest.get(self.stage, 0.0), self.clock() - self._began)

    @contextmanager
    def measured(self) -> Generator[asyncio.AbstractEventLoop]:
        """A loop whose turns are measured."""
        gc.callbacks.append(self._on_collection)
        try:
            yield asyncio.SelectorEventLoop(_Selector(self))
        finally:
            gc.callbacks.remove(self._on_collection)

    def _on_collection(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collecting = time.thread_time()
        else:
            self._collected += time.thread_time() - self._collecting


class _Selector(selectors.DefaultSelector):
    def __init__(self, turns: Turns) -> None:
        super().__init__()
        self._turns = turns

    def select(self, timeout: float | None = None) -> Any:
        self._turns.end()
        try:
            return super().select(timeout)
        finally:
            self._turns.begin()


class Server:
    """Streams generated ConfigMaps; `expire` makes its clients list again, with every third object changed."""

    def __init__(self, objects: int) -> None:
        self._objects = objects
        self._lists = 0
        self._expired = asyncio.Event()

    def expire(self) -> None:
        """End the watch; its version is too old to go on from."""
        self._expired.set()

    async def __call__(self, request: HttpRequest) -> ServerResponse:
        """Answer a request."""
        query = dict(request.query)
        if not request.path.endswith("/configmaps") or query.get("sendInitialEvents") != "true":
            return ServerResponse(status=410 if query.get("watch") else 404, headers=_JSON, body=_status(410))
        self._lists += 1
        self._expired.clear()
        return ServerResponse(status=200, headers=_JSON, body=self._stream(self._lists))

    async def _stream(self, turn: int) -> AsyncIterator[bytes]:
        for first in range(0, self._objects, _PIECE):
            numbers = range(first, min(first + _PIECE, self._objects))
            yield b"".join(b'{"type":"ADDED","object":%b}\n' % _object(number, turn) for number in numbers)
        yield (
            b'{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%d",'
            b'"annotations":{"k8s.io/initial-events-end":"true"}}}}\n' % (10 * self._objects * turn)
        )
        await self._expired.wait()
        yield b'{"type":"ERROR","object":%b}\n' % _status(410)


def _object(number: int, turn: int) -> bytes:
    version = number + 1 if number % 3 else 10 * turn * (number + 1)
    return (
        b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings-%d","namespace":"team-%d","uid":"uid-%d",'
        b'"resourceVersion":"%d","labels":{"app":"service-%d"},"ownerReferences":[{"apiVersion":"v1","kind":"Pod",'
        b'"name":"pod","uid":"owner-%d"}]},"data":{"number":"%d"}}'
        % (number, number % 50, number, version, number % 200, number % 1_000, number % 5_000)
    )


def _status(code: int) -> bytes:
    return b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":%d}' % code


async def run(options: argparse.Namespace) -> Report:
    turns = Turns()

    def measure() -> float:
        with turns.measured() as loop, asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(_play(turns, options.objects, options.reconciles))

    # Its own thread, because the benchmark itself was started in a loop.
    scrape = await asyncio.to_thread(measure)
    return Report(
        name="turns",
        bars=(
            *(
                Bar(name=f"longest turn: {stage}", value=longest * 1000, bar=TURN, unit="ms")
                for stage, longest in turns.longest.items()
                if stage
            ),
            Bar(name="scrape of the metrics, with every object queued", value=scrape * 1000, bar=SCRAPE, unit="ms"),
        ),
        notes=(
            f"{options.objects:,} objects, one declared index, one controller.",
            "CPU time of the loop's thread, without garbage collections.",
        ),
    )


async def _play(turns: Turns, objects: int, reconciles: int) -> float:
    server, manager = Server(objects), Manager(name="turns")
    hold, done, looking = asyncio.Event(), asyncio.Event(), asyncio.Event()
    count = 0

    async def reconcile(ctx: Context, request: Request) -> Done:
        nonlocal count
        await hold.wait()
        await ctx.client.find(ConfigMap, request.key)
        await ctx.client.owned_by(ConfigMap, "owner-1")
        count += 1
        if count >= reconciles:
            done.set()
        return Done()

    def mapped(_: View[ConfigMap], stores: Stores) -> list[Key]:
        if looking.is_set():
            found = [*stores.list(ConfigMap, namespace="team-1"), *stores.list(ConfigMap, labels=_LABEL)]
            looking.clear()
            return [found[0].key]
        return []

    manager.index(ConfigMap, "number", lambda found: [(found.data or {})["number"]])
    manager.controller(ConfigMap).watches(ConfigMap, map=mapped).options(concurrency=8, timeout=None).run_with(
        reconcile
    )
    async with Client(InProcessTransport(server), field_manager="turns") as client, Supervisor() as tasks:
        turns.stage = "first list, index and handlers"
        running = tasks.start(manager.run(client, signals=False), name="manager")
        await _until(lambda: bool(manager.controllers) and _adds(manager) >= objects)
        scrape = statistics.median(_timed(turns, lambda: expose(manager.registry)) for _ in range(SCRAPES))
        turns.stage = "relist, every third object changed, and a mapper's first lookups"
        looking.set()
        server.expire()
        await _until(lambda: _adds(manager) >= objects + objects // 3)
        turns.stage = "reconciles, and their first lookup by owner"
        hold.set()
        await done.wait()
        turns.stage = "stop"
        manager.stop()
        await asyncio.wait([running])
    return scrape


def _adds(manager: Manager) -> int:
    return sum(each.statistics(keys=0).queue.adds for each in manager.controllers)


async def _until(reached: Callable[[], bool]) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            while not reached():  # noqa: ASYNC110 - nothing else tells
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise BenchmarkFailed(f"not done after {PATIENCE:.0f} s") from None


def _timed(turns: Turns, work: Callable[[], object]) -> float:
    """The CPU time of a call, which does not count as part of its turn."""
    turns.end()
    began = turns.clock()
    work()
    took = turns.clock() - began
    turns.begin()
    return took
