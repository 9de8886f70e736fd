"""One contender on one fresh engine: converge, rest, follow changes, restart; and the cost of each."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.contenders.preparing import Contender
from bench.controller_process import ControllerFailed, ControllerProcess, running
from bench.sites_world import World, fresh_world

#: How long a contender may take to converge.
PATIENCE = 600.0
#: A controller that used less of a core than this, and wrote nothing, has settled.
QUIET = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of a run."""

    objects: int
    changes: int
    idle_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The measurements of one contender in one round. None: does not apply, since a loader only writes once."""

    #: Seconds from the start of the process until the last status was seen.
    wall: float
    #: Seconds of CPU until it had settled.
    cpu: float
    peak_bytes: int
    #: By verb and resource, from the counters of the API server, until it had settled.
    writes: dict[str, int]
    reconciles: int | None = None
    #: Share of a core, converged and without changes.
    idle_cpu: float | None = None
    latency_p50: float | None = None
    latency_p99: float | None = None
    restart_writes: dict[str, int] | None = None
    restart_reconciles: int | None = None
    restart_cpu: float | None = None

    def document(self) -> dict[str, Any]:
        """The measurements as JSON."""
        return asdict(self)


async def measure(contender: Contender, command: list[str], sizes: Sizes, say: Callable[[str], None]) -> Measured:
    """Run a contender on its own engine."""
    with tempfile.TemporaryDirectory(prefix="steersman-bench-") as scratch:
        folder = Path(scratch)
        say("engine and objects")
        async with fresh_world(sizes.objects, folder) as (world, environment):
            before = await world.writes()
            started = time.perf_counter()
            async with running(contender.name, command, environment=environment, folder=folder) as controller:
                wall = await _converged(world, controller, sizes.objects, say) - started
                writes = await _settled(world, controller)
                first = Measured(
                    wall=wall, cpu=controller.cpu(), peak_bytes=controller.peak(), writes=dict(writes - before)
                )
                if not contender.reconciles:
                    return first
                reconciles = await controller.reconciles()
                idle = await _idle(controller, sizes.idle_seconds)
                say(f"{sizes.changes} changes")
                latencies = await _follow(world, sizes)
                converged = await _settled(world, controller)
            say("starting again")
            async with running(contender.name, command, environment=environment, folder=folder) as controller:
                await _seen_all(controller, sizes.objects)
                again = await _settled(world, controller)
                return Measured(
                    wall=first.wall,
                    cpu=first.cpu,
                    peak_bytes=first.peak_bytes,
                    writes=first.writes,
                    reconciles=reconciles,
                    idle_cpu=idle,
                    latency_p50=statistics.median(latencies),
                    latency_p99=_percentile(latencies, 0.99),
                    restart_writes=dict(again - converged),
                    restart_reconciles=await controller.reconciles(),
                    restart_cpu=controller.cpu(),
                )


async def _converged(world: World, controller: ControllerProcess, count: int, say: Callable[[str], None]) -> float:
    """Wait until every status is right, and report progress."""
    deadline = time.monotonic() + PATIENCE
    finished = asyncio.ensure_future(world.converged())
    try:
        while not finished.done():
            say(f"{world.progress} of {count} converged")
            await asyncio.wait([finished], timeout=2.0)
            controller.check()
            if time.monotonic() > deadline:
                raise ControllerFailed(f"{controller.name} converged {world.progress} of {count} sites in {PATIENCE} s")
        return finished.result()
    finally:
        finished.cancel()


async def _settled(world: World, controller: ControllerProcess) -> Counter[str]:
    """Wait until the controller rests; returns the writes counted by the server until then."""
    deadline = time.monotonic() + PATIENCE
    before: Counter[str] = Counter()
    while time.monotonic() < deadline:
        spent = controller.cpu()
        await asyncio.sleep(1.0)
        controller.check()
        if controller.cpu() - spent > QUIET:
            continue
        writes = await world.writes()
        if writes == before:
            return writes
        before = writes
    raise ControllerFailed(f"{controller.name} did not come to rest in {PATIENCE} s")


async def _seen_all(controller: ControllerProcess, count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while await controller.reconciles() < count:
        await asyncio.sleep(0.5)
        if time.monotonic() > deadline:
            raise ControllerFailed(f"{controller.name} did not reconcile all sites within {PATIENCE} s of its restart")


async def _idle(controller: ControllerProcess, seconds: float) -> float:
    spent, started = controller.cpu(), time.perf_counter()
    await asyncio.sleep(seconds)
    return (controller.cpu() - spent) / (time.perf_counter() - started)


async def _follow(world: World, sizes: Sizes) -> list[float]:
    """Change one site after the other, each after the previous one has its status."""
    return [await world.change(number % sizes.objects, 10 + number) for number in range(sizes.changes)]


def _percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * len(ordered)))]
