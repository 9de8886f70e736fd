"""The queue of one controller: `QueueState` with a loop around it.

Guarantees are those of `steersman.controller.queue_state`; beyond them:

- `take` waits for a request whose time has come; the running loop's `time()` is the time.
- A cancelled `take` takes nothing, and somebody else is woken in its place.
- After `close` nothing is handed out; whoever waits or asks gets `QueueClosed`. What was not taken is left: the next
  start lists everything again.
"""

from __future__ import annotations

import asyncio
from collections import deque

from steersman.aio import randomness
from steersman.controller.causes import Cause, Request
from steersman.controller.queue_state import QueueOptions, QueueState, QueueStatistics, Taken

_RETRY = Cause(what="retry")


class QueueClosed(Exception):
    """The queue hands out nothing more."""


class Queue:
    """Requests to work on, each once at a time."""

    def __init__(self, options: QueueOptions | None = None) -> None:
        self._state = QueueState(options)
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def add(self, request: Request, cause: Cause, *, priority: int = 0, after: float = 0.0) -> None:
        """Let the request run, not before ``after`` seconds from now; after `close` this does nothing."""
        if self._closed:
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
                # Others may be ready too, and this waiter may have been the only one that was woken.
                self._wake()
                return taken
            await self._wait()

    def done(self, request: Request) -> None:
        """The work on the request has ended."""
        self._state.done(request, now=_now())
        self._wake()

    def retry(self, request: Request, cause: Cause = _RETRY, *, at_least: float = 0.0, failed: bool = True) -> float:
        """Let the request run again after its backoff, which grows with every call; return the seconds.

        ``failed`` is false if the run itself asked for it.
        """
        if self._closed:
            return 0.0
        delay = self._state.retry(request, cause, now=_now(), rng=randomness(), at_least=at_least, failed=failed)
        self._wake()
        return delay

    def forget(self, request: Request) -> None:
        """The request succeeded: its next failure backs off from the start."""
        self._state.forget(request)

    def failures(self, request: Request) -> int:
        """How often the request failed in a row."""
        return self._state.failures(request)

    def is_running(self, request: Request) -> bool:
        """Whether the request was taken and is not done."""
        return self._state.is_running(request)

    def due_in(self, request: Request) -> float | None:
        """In how many seconds the request runs next at the earliest; None if nothing asks for it."""
        due = self._state.due(request)
        return None if due is None else max(0.0, due - _now())

    def close(self) -> None:
        """Hand out nothing more."""
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
        """Whether a request is ready, runs or is tried again; one that only waits for its time does not count."""
        return self._state.busy

    def statistics(self) -> QueueStatistics:
        """Count, and name those that wait and run for the longest time."""
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
        """Call as many waiters as there are requests ready, and wait for the next time."""
        if self._closed or not self._waiters:
            # Nobody to call: whoever comes next looks for himself, and sets the timer if he has to wait.
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
