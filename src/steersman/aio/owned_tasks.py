"""The tasks of an object that is closed, not left like a block.

Guarantees
- `close` cancels every task, in reverse start order, and waits until all have ended.
- The task that starts another one does not own it: a failure cancels neither the starter nor any other task. It is logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_log = logging.getLogger("steersman.aio")


class OwnedTasks:
    """Tasks that belong to an object: ``self._tasks.start(work(), name="work")``, and later ``await self._tasks.close()``.

    Use a `Supervisor` wherever the object is an ``async with`` block: its block fails with its tasks.
    """

    def __init__(self) -> None:
        # A dict keeps the start order; a set would cancel in the order of memory addresses.
        self._tasks: dict[asyncio.Task[Any], None] = {}

    def start(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        """Run ``work`` as a task."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        """Cancel every task and wait until all have ended."""
        if tasks := [*reversed(self._tasks)]:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        del self._tasks[task]
        if not task.cancelled() and (failure := task.exception()) is not None:
            _log.error("task %r failed", task.get_name(), exc_info=failure)
