"""Work on an event loop in another thread.

Guarantees: the work runs on that loop, with the caller's context variables, and its outcome arrives on the caller's.
Cancelling the caller cancels the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar

R = TypeVar("R")


async def call_on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, R]) -> R:
    """Run ``work`` on a loop in another thread, or here if it is the caller's own."""
    here = asyncio.get_running_loop()
    if loop is here:
        return await work
    call = _Call(loop, here, work)
    try:
        loop.call_soon_threadsafe(call.begin)
    except RuntimeError:
        work.close()
        raise
    try:
        return await call.answer
    except asyncio.CancelledError:
        with suppress(RuntimeError):  # its loop is closed
            loop.call_soon_threadsafe(call.cancel)
        raise


class _Call(Generic[R]):
    """Work on another loop: cheaper than `asyncio.run_coroutine_threadsafe`, which locks and chains futures."""

    __slots__ = ("_here", "_loop", "_task", "_work", "answer")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, here: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, R]
    ) -> None:
        self._loop = loop
        self._here = here
        self._work = work
        self._task: asyncio.Task[R] | None = None
        #: Belongs to the caller's loop.
        self.answer: asyncio.Future[R] = here.create_future()

    def begin(self) -> None:
        self._task = self._loop.create_task(self._work)
        self._task.add_done_callback(self._done)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _done(self, task: asyncio.Task[R]) -> None:
        with suppress(RuntimeError):  # the caller's loop is closed
            self._here.call_soon_threadsafe(self._resolve, task)

    def _resolve(self, task: asyncio.Task[R]) -> None:
        """Resolve the future, on the caller's loop."""
        if self.answer.done():
            return
        if task.cancelled():
            self.answer.cancel()
        elif (error := task.exception()) is not None:
            self.answer.set_exception(error)
        else:
            self.answer.set_result(task.result())
