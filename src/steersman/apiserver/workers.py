"""Worker threads for the computations of large requests.

Guarantees
- A computation over `LARGE` bytes or more runs in a worker thread, while the event loop answers other clients.
- At most `TURNS` requests with large bodies are processed at a time, so that the memory for their trees is bounded.
  Waiting users take turns: a user with a hundred large requests delays another user's by a few, not by a hundred.
- At most one piece of one answer is computed at a time. Waiting users take turns here, too.
- On a loop with its own clock (`steersman.aio.bind`) every computation runs on the loop, so that a run is reproducible.

A computation is a function that does not wait and shares nothing mutable with other requests: decoding, defaults,
managed fields, validation. Everything that touches the store, admission or a socket stays on the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any, Final, TypeVar

from steersman.aio import is_bound

_T = TypeVar("_T")

#: The size in bytes of a large request: smaller ones are computed in a few hundredths of a second.
LARGE: Final = 32 * 1024
#: The size in bytes of an answer, or a piece of one, that is computed in a thread: clients can ask for many.
LARGE_ANSWER: Final = 4 * 1024
#: How many bytes of computed answers are kept until they are sent, in total.
ANSWERS_MAX: Final = 32 * 1024 * 1024
#: How many large requests are processed at a time.
TURNS: Final = 4
#: Number of threads. More would make the loop wait longer for its share of the interpreter.
_THREADS: Final = 2

#: Whether the request of this context already has a turn: requests that its admission sends need no second one.
_has_turn: ContextVar[bool] = ContextVar("steersman_large_request", default=False)


class Workers:
    """The worker threads of a server; `close` ends them."""

    def __init__(self) -> None:
        self._turns = _Rotation(TURNS)
        # A second one would only make the loop wait longer for the interpreter, and writes for a thread.
        self._answers = _Rotation(1)
        self._memory = ANSWERS_MAX
        self._executor: ThreadPoolExecutor | None = None

    def in_turn(self, work: Coroutine[Any, Any, _T], *, size: int, user: str = "") -> Coroutine[Any, Any, _T]:
        """The processing of a user's request of this size in bytes, once it has a turn. A small one needs none."""
        return work if size < LARGE or _has_turn.get() else self._in_turn(work, user)

    async def _in_turn(self, work: Coroutine[Any, Any, _T], user: str) -> _T:
        try:
            await self._turns.take(user)
        except BaseException:
            work.close()
            raise
        token = _has_turn.set(True)
        try:
            return await work
        finally:
            _has_turn.reset(token)
            self._turns.give_back()

    async def run(self, work: Callable[[], _T], *, size: int) -> _T:
        """Run a computation over this many bytes."""
        return work() if size < LARGE or is_bound() else await self._in_thread(work)

    async def answer(self, work: Callable[[], _T], *, size: int, user: str = "") -> _T:
        """Compute an answer to a user, or a piece of it, of this many bytes."""
        if size < LARGE_ANSWER or is_bound():
            return work()
        await self._answers.take(user)
        try:
            return await self._in_thread(work)
        finally:
            self._answers.give_back()

    def keep(self, size: int) -> bool:
        """Take this many bytes of the memory for computed answers; returns whether there were as many."""
        is_free = size <= self._memory
        self._memory -= size if is_free else 0
        return is_free

    def drop(self, size: int) -> None:
        """Give memory back."""
        self._memory += size

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(_THREADS, "api server")
        return await asyncio.get_running_loop().run_in_executor(self._executor, copy_context().run, work)

    def close(self) -> None:
        """End the threads after their running computations."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)


class _Rotation:
    """Turns that rotate between users; each user's requests are in order."""

    def __init__(self, number: int) -> None:
        self._free = number
        #: The waiting requests of each user; the user whose turn is next comes first.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def take(self, user: str) -> None:
        """Wait for a turn."""
        if self._free:
            self._free -= 1
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(woken)
        try:
            await woken
        except asyncio.CancelledError:
            if woken.done() and not woken.cancelled():
                # It got its turn while it was being cancelled.
                self.give_back()
            raise

    def give_back(self) -> None:
        """End a turn: the next user takes it."""
        while self._waiting:
            user = next(iter(self._waiting))
            requests = self._waiting.pop(user)
            woken = requests.popleft()
            if requests:
                self._waiting[user] = requests
            if not woken.done():
                woken.set_result(None)
                return
        self._free += 1
