"""The queue of one controller: `QueueState` with a loop around it.

It has the guarantees of `steersman.controller.queue.state`, and these:

- `take` waits for a request that is due; time is the running loop's `time()`.
- A cancelled `take` takes nothing, and another waiter wakes instead.
- A request that ``admits`` refuses is never added, and `drain` removes requests without a trace.
- After `close`, `take` raises `QueueClosed`, also for those already waiting. Requests that were not taken are dropped:
  the next start lists everything again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from steersman.aio import randomness
from steersman.controller.causes import Cause, Request
from steersman.controller.queue.state import QueueOptions, QueueState, QueueStatistics, Taken

_RETRY = Cause(what="retry")


class QueueClosed(Exception):
    """The queue is closed."""


class Queue:
    """Requests to reconcile, each by one worker at a time."""

    def __init__(self, options: QueueOptions | None = None, *, admits: Callable[[Request], bool] | None = None) -> None:
        self._state = QueueState(options)
        self._admits = admits
        #: Set at the end of each run while a `drain` waits.
        self._ended: asyncio.Event | None = None
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def add(self, request: Request, cause: Cause, *, priority: int = 0, after: float = 0.0) -> None:
        """Queue the request to run after ``after`` seconds. After `close`, or if it is not admitted, this does nothing."""
        if self._closed or not (self._admits is None or self._admits(request)):
            return
        self._state.add(request, cause, now=_now(), priority=priority, after=after)
        self._wake()

    async def take(self) -> Taken:
        """Wait for the next request. Call `done` when the work on it has ended, however it ended."""
        while True:
            if self._closed:
                raise QueueClosed("the queue is closed")
            taken = self._state.take(_now())
            if taken is not None:
                # Other requests may be ready too, and this may have been the only waiter that woke.
                self._wake()
                return taken
            await self._wait()

    def done(self, request: Request) -> None:
        """End the work on the request."""
        self._state.done(request, now=_now())
        if self._ended is not None:
            self._ended.set()
        self._wake()

    async def drain(self, matches: Callable[[Request], bool]) -> None:
        """Remove requests, and return when none of them runs any more. They must not be admitted meanwhile."""
        self._state.drop(matches)
        while self._state.runs(matches):
            if self._ended is None or self._ended.is_set():
                self._ended = asyncio.Event()
            await self._ended.wait()
        self._state.drop(matches)

    def retry(self, request: Request, cause: Cause = _RETRY, *, at_least: float = 0.0, failed: bool = True) -> float:
        """Queue the request again after its backoff, which grows with every call. Returns the seconds.

        ``failed`` is false if the reconcile itself asked for it.
        """
        if self._closed or not (self._admits is None or self._admits(request)):
            return 0.0
        delay = self._state.retry(request, cause, now=_now(), rng=randomness(), at_least=at_least, failed=failed)
        self._wake()
        return delay

    def forget(self, request: Request) -> None:
        """Reset the backoff after a success."""
        self._state.forget(request)

    def throttle(self, request: Request, seconds: float) -> None:
        """Keep the request from running for this many seconds: it runs hot."""
        self._state.throttle(request, until=_now() + seconds)

    def failures(self, request: Request) -> int:
        """The number of consecutive failures of the request."""
        return self._state.failures(request)

    def is_running(self, request: Request) -> bool:
        """Whether the request was taken and is not done."""
        return self._state.is_running(request)

    def due_in(self, request: Request) -> float | None:
        """Seconds until the request may run next; None if it is not queued."""
        due = self._state.due(request)
        return None if due is None else max(0.0, due - _now())

    def close(self) -> None:
        """Close the queue: `take` returns nothing more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiters:
            _call(self._waiters.popleft())

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def busy(self) -> bool:
        """Whether a request is ready, running or in backoff. One that only waits for its time does not count."""
        return self._state.busy

    def statistics(self) -> QueueStatistics:
        """The counters, and the requests that have waited or run longest."""
        return self._state.statistics(_now())

    async def _wait(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._set_timer()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake()
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            raise

    def _wake(self) -> None:
        """Wake as many waiters as requests are ready, and set the timer for the next one."""
        if self._closed or not self._waiters:
            # No waiter: the next `take` checks for itself, and sets the timer if it must wait.
            return
        self._state.advance(_now())
        for _ in range(min(self._state.ready, len(self._waiters))):
            _call(self._waiters.popleft())
        self._set_timer()

    def _set_timer(self) -> None:
        due = self._state.next_due if self._waiters and not self._closed else None
        if self._timer is not None:
            if self._timer.when() == due and not self._timer.cancelled():
                return
            self._timer.cancel()
            self._timer = None
        if due is not None:
            self._timer = asyncio.get_running_loop().call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._wake()


def _call(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _now() -> float:
    return asyncio.get_running_loop().time()
