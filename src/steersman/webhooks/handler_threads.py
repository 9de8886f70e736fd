"""Threads for handlers that are not async, and tasks for those that are.

Guarantees
- An async handler that ignores cancellation does not delay the response. If many do, further calls fail at once.
- A blocking handler occupies one thread, and never the event loop.
- The number of threads is bounded. While all are busy, further calls wait; the caller's timeout bounds the wait.
- Neither `close` nor the end of the process waits for a blocked thread.
- On a loop with its own clock (`steersman.aio.bind`), handlers run on the loop, so that a simulation is repeatable.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any

from steersman.aio import CancellableCalls, is_bound

#: More threads would only compete for the interpreter.
THREADS_MAX = 16
#: The number of async calls that may ignore their cancellation.
IGNORING_MAX = 100


class HandlerThreads:
    """Runs functions in daemon threads. Starts a thread when it is needed, and keeps it."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._threads = 0
        #: The number of calls that wait or run. Only the loop's thread changes it.
        self._unfinished = 0
        self._waits = CancellableCalls(IGNORING_MAX)

    @property
    def all_busy(self) -> bool:
        """Whether a further call would have to wait."""
        return self._unfinished >= THREADS_MAX

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in a thread. A cancellation ends the wait, but not the function."""
        if is_bound():
            return function(*arguments)
        loop = asyncio.get_running_loop()
        call = _Call(copy_context(), function, arguments, loop, loop.create_future(), self._finished)
        if self._unfinished >= self._threads and self._threads < THREADS_MAX:
            self._threads += 1
            threading.Thread(target=_work, args=(self._calls,), name="webhook handler", daemon=True).start()
        self._unfinished += 1
        self._calls.put(call)
        return await call.result

    async def wait(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Await an async handler. A cancellation ends the wait even if the handler ignores it."""
        return await self._waits.run(coroutine)

    def close(self) -> None:
        """End each thread after its current call."""
        for _ in range(self._threads):
            self._calls.put(None)
        self._threads = 0

    def _finished(self) -> None:
        self._unfinished -= 1


class _Call:
    """One call, and the future of its result on the loop."""

    __slots__ = ("arguments", "context", "finished", "function", "loop", "result")

    def __init__(
        self,
        context: Context,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        result: asyncio.Future[Any],
        finished: Callable[[], None],
    ) -> None:
        self.context, self.function, self.arguments = context, function, arguments
        self.loop, self.result, self.finished = loop, result, finished

    def perform(self) -> None:
        outcome: Any = None
        error: BaseException | None = None
        # Drops a call that timed out before a thread was free.
        if not self.result.cancelled():
            try:
                outcome = self.context.run(self.function, *self.arguments)
            except BaseException as raised:  # noqa: BLE001 - the loop raises it where the result is awaited
                error = raised
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self._settle, outcome, error)

    def _settle(self, outcome: Any, error: BaseException | None) -> None:
        self.finished()
        if self.result.done():
            return
        if error is None:
            self.result.set_result(outcome)
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            self.result.set_exception(error)
        else:
            # SystemExit and KeyboardInterrupt would end the loop; a future does not accept StopIteration
            self.result.set_exception(RuntimeError(f"the handler raised {type(error).__name__}"))


def _work(calls: SimpleQueue[_Call | None]) -> None:
    while (call := calls.get()) is not None:
        call.perform()
        del call  # otherwise an idle thread would keep the object of the last review alive
