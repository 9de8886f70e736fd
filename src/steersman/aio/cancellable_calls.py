"""Awaits coroutines of user code, which may ignore cancellation.

Guarantees
- A cancelled wait ends at once, and cancels its coroutine.
- The number of coroutines that keep running after that is bounded. Beyond the bound, a call fails before it starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class CancellableCalls:
    """Runs coroutines in their own tasks: ``await calls.run(handler(obj))``. Up to ``limit`` may ignore a cancellation."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        #: Cancelled tasks that have not ended.
        self._ignoring: set[asyncio.Task[Any]] = set()

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await a coroutine. A cancellation cancels the coroutine, but does not wait for it to end."""
        if len(self._ignoring) >= self._limit:
            coroutine.close()
            raise RuntimeError(
                f"{self._limit} earlier calls ignore their cancellation: find the code that catches CancelledError"
            )
        task = asyncio.get_running_loop().create_task(coroutine)
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            if task.cancel():
                self._ignoring.add(task)
                task.add_done_callback(self._ended)
            raise
        return task.result()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._ignoring.discard(task)
        if not task.cancelled():
            task.exception()  # otherwise asyncio logs that it was never retrieved
