"""A context manager kept open on a loop for as long as tests need it, and never longer than the loop.

Guarantees: its own task enters and leaves it, whichever caller came first. Callers during the start wait for the same
start. It is left on `stop` or `end`, and when the loop is closed under it, as test runners do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

T = TypeVar("T")


class BackgroundContext(Generic[T]):
    """Keeps an async context manager open on the loop that first asked for it."""

    def __init__(self, life: Callable[[], AbstractAsyncContextManager[T]], *, name: str) -> None:
        self._life = life
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started: asyncio.Future[T] | None = None
        self._stopping: asyncio.Event | None = None
        self._ended: asyncio.Event | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """Its loop; None before the start."""
        return self._loop

    async def start(self) -> T:
        """Start it, or wait for the start in progress; raises the failure of the start."""
        if self._started is None:
            loop = self._loop = asyncio.get_running_loop()
            self._started, self._stopping, self._ended = loop.create_future(), asyncio.Event(), asyncio.Event()
            # Detached: it outlives the test or fixture that came first, and ends with `end` or with the loop.
            asyncio.run_coroutine_threadsafe(self._live(self._started, self._stopping, self._ended), loop)
        elif self._loop is not asyncio.get_running_loop():
            raise RuntimeError(f"{self._name} belongs to another event loop")
        return await asyncio.shield(self._started)

    async def stop(self) -> None:
        """Leave it, on its own loop."""
        if self._ended is not None and self._stopping is not None:
            self._stopping.set()
            await self._ended.wait()

    def end(self) -> None:
        """Leave it from outside of its loop; if the loop is running elsewhere, a moment later."""
        loop, ended, stopping = self._loop, self._ended, self._stopping
        if loop is None or ended is None or stopping is None or loop.is_closed() or ended.is_set():
            return
        if loop.is_running():
            loop.call_soon_threadsafe(stopping.set)
            return
        stopping.set()
        loop.run_until_complete(ended.wait())

    async def _live(self, started: asyncio.Future[T], stopping: asyncio.Event, ended: asyncio.Event) -> None:
        try:
            async with self._life() as value:
                started.set_result(value)
                await stopping.wait()
        except asyncio.CancelledError:
            # the loop is closing, which ends everything on it
            if not started.done():
                started.cancel()
            raise
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)
        finally:
            ended.set()
