"""A loop whose time moves only when everything waits: an hour of patience takes no time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Collection, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from steersman import aio

T = TypeVar("T")


class _Jumping(selectors.SelectSelector):
    """Moves the loop's time to the next timer instead of sleeping until it."""

    elapsed = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("everything waits and no timer is set: the program hangs")
            self.elapsed += timeout
        return ready


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.elapsed

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self.time())


def run_virtual(work: Coroutine[Any, Any, T], *, seed: int = 1) -> tuple[T, float]:
    """Run to the end on a loop of its own; the result, and how many seconds passed on it."""
    loop = _VirtualLoop()
    try:
        aio.bind(loop, clock=loop, seed=seed)
        return loop.run_until_complete(work), loop.time()
    finally:
        loop.run_until_complete(_end(asyncio.all_tasks(loop)))
        loop.close()
        # A clock that refers to its loop would keep the two alive.
        aio.unbind(loop)


async def _end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """End what a run leaves: it would end when garbage is collected, in the middle of another run."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
