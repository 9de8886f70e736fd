"""Runs a coroutine in virtual time: an hour of patience takes no time."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine
from typing import Any, TypeVar

from steersman.simulation.runs.loop import SimulatedLoop

T = TypeVar("T")


def run_virtual(work: Coroutine[Any, Any, T], *, seed: int = 1) -> tuple[T, float]:
    """Run to the end on a loop of its own; the result, and how many seconds passed on it."""
    loop = SimulatedLoop(seed=seed)
    try:
        return loop.run_until_complete(work), loop.time()
    finally:
        loop.run_until_complete(_end(asyncio.all_tasks(loop)))
        loop.close()


async def _end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """End what a run leaves: it would end when garbage is collected, in the middle of another run."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
