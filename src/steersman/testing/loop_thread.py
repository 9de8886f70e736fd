"""An event loop in its own thread, so that tests with different loops can share what lives on it.

Guarantees: the context manager is entered and left on that one loop. Calling it from any loop, or from none, is safe.
Stopping waits until everything on it has ended. Cancelling the caller cancels the work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Generic, TypeVar

from steersman.aio import call_on

T = TypeVar("T")
R = TypeVar("R")


class LoopThread(Generic[T]):
    """Keeps an async context manager open on its own loop until `stop`."""

    def __init__(self, life: Callable[[], AbstractAsyncContextManager[T]], *, name: str) -> None:
        self._life = life
        # Not the policy's loop: this one is always the standard library's.
        self._runner = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
        self._loop = self._runner.get_loop()
        self._living: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._started: Future[T] = Future()
        self._ended: Future[None] = Future()
        for future in (self._started, self._ended):
            # A cancelled waiter must not cancel the outcome for the others.
            future.set_running_or_notify_cancel()
        # A daemon: it does not delay the exit of a program that forgets to stop it; the supervisor process cleans up.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> Future[T]:
        """Start the thread; the future gets the value of the context manager, or its failure."""
        self._thread.start()
        return self._started

    def stop(self) -> Future[None]:
        """Leave the context manager, or interrupt entering it; the future is done when everything has ended."""
        # The loop closes just before the future is resolved.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._interrupt)
        return self._ended

    def submit(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        """Run `work` on the loop."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise

    async def call(self, work: Coroutine[Any, Any, R]) -> R:
        """Run `work` on the loop and wait for it on the caller's."""
        return await call_on(self._loop, work)

    def _interrupt(self) -> None:
        self._stopping.set()
        if self._living is not None and not self._started.done():
            self._living.cancel()

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            with self._runner:
                self._runner.run(self._live())
        except BaseException as error:  # noqa: BLE001 - passed to the waiters
            failure = error
        finally:
            self._conclude(failure)

    def _conclude(self, failure: BaseException | None) -> None:
        if self._started.done():
            if failure is None:
                self._ended.set_result(None)
            else:
                self._ended.set_exception(failure)
        else:
            # Resolve `_ended` first: after a failed start, callers may rely on nothing being left.
            self._ended.set_result(None)
            self._started.set_exception(failure or RuntimeError("stopped before it was started"))

    async def _live(self) -> None:
        if self._stopping.is_set():
            return
        self._living = asyncio.current_task()
        async with self._life() as value:
            self._started.set_result(value)
            await self._stopping.wait()
