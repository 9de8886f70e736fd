"""Skips time in tests: pending timers fire immediately, in order.

Guarantees
- While time is skipped, it jumps from one timer to the next, and only when nothing is left to run. Everything that an
  hour of waiting would have triggered has happened, in the same order.
- Otherwise time passes normally, so nothing hangs. The loop's time never goes back.
- Wall time (`steersman.aio.utc_now`) is skipped too, and is the machine's again after the test.

- While a call runs in a thread (`asyncio.to_thread`), time passes normally, so that no deadline ends the call.

Everything must run on one event loop: skipping does not wait for other threads, processes and sockets.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, cast
from weakref import WeakKeyDictionary, ref

from steersman import aio

#: More timers than this in one skip indicate a busy loop.
_TIMERS_MAX = 100_000
#: How many real seconds skipping waits for work in threads: one that never ends must not stop the time for ever.
_THREAD_SECONDS = 10.0


class Clock:
    """Skips time on the running loop: ``await clock.advance(3600)``."""

    def __init__(self) -> None:
        #: How many seconds were skipped in total.
        self.skipped = 0.0

    def now(self) -> datetime:
        """The current time of the running loop, as controllers see it."""
        _skipper()
        return aio.utc_now()

    async def advance(self, seconds: float | timedelta) -> None:
        """Skip this much time; returns when all due work has run and everything waits again."""
        length = seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)
        if not 0 <= length < float("inf"):
            raise ValueError(f"clock.advance() needs a non-negative number of seconds (got {seconds})")
        skipper = _skipper()
        before = skipper.offset
        idle = asyncio.get_running_loop().create_future()
        with skipper.skipping(asyncio.get_running_loop().time() + length, idle):
            await idle
        self.skipped += skipper.offset - before

    @contextmanager
    def skipping(self, until: float) -> Generator[None]:
        """Skip time while the block waits, up to a moment of the loop's time."""
        skipper = _skipper()
        before = skipper.offset
        with skipper.skipping(until, None):
            yield
        self.skipped += skipper.offset - before


#: The clock of the current test.
_current: list[Clock] = []


@contextmanager
def clock_in_use() -> Generator[Clock]:
    """A clock for one test: `eventually` and `consistently` skip time with it."""
    clock = Clock()
    _current.append(clock)
    try:
        yield clock
    finally:
        _current.remove(clock)
        for loop, skipper in list(_skippers.items()):
            skipper.unbind(loop)


@contextmanager
def time_flies(until: float) -> Generator[bool]:
    """Skip time while the block waits, if the test has a clock; yields whether it has one."""
    if not _current:
        yield False
        return
    with _current[-1].skipping(until):
        yield True


class _Skipper:
    """The time of one loop, and the selector that moves it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.offset = 0.0
        # weak: this must not keep the loop alive
        self._loop = ref(loop)
        self._bound = False
        self._began, self._began_at = aio.utc_now(), self.time()
        #: The end of each active skip; `advance` also passes a future to resolve once everything is idle.
        self._waits: list[tuple[float, asyncio.Future[None] | None]] = []
        self._timers = 0
        #: Since when threads have worked for the loop without a pause, in real time.
        self._threads_since: float | None = None

    def time(self) -> float:
        loop = self._loop()
        return (type(loop).time(loop) if loop is not None else 0.0) + self.offset

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Provide the loop's wall time from now on."""
        if not self._bound:
            self._bound = True
            self._began, self._began_at = aio.utc_now(), self.time()
            aio.bind(loop, clock=self, seed=aio.randomness().getrandbits(64))

    def unbind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Return the loop to the machine's wall time."""
        if self._bound:
            self._bound = False
            aio.unbind(loop)

    def now(self) -> datetime:
        return self._began + timedelta(seconds=self.time() - self._began_at)

    @contextmanager
    def skipping(self, until: float, idle: asyncio.Future[None] | None) -> Generator[None]:
        if idle is not None and self._waits:
            raise RuntimeError("clock.advance: another advance, eventually or consistently is already skipping time")
        wait = (until, idle)
        if not self._waits:
            self._timers = 0
        self._waits.append(wait)
        try:
            yield
        finally:
            if wait in self._waits:
                self._waits.remove(wait)

    def moved(self, timeout: float | None) -> bool:
        """When everything waits: move the time, or resolve `advance` at its end; return whether either happened."""
        if not self._waits:
            return False
        left = max(until for until, _ in self._waits) - self.time()
        if left > 0:
            self._timers += 1
            if self._timers > _TIMERS_MAX:
                return self._given_up(left)
            self.offset += left if timeout is None else min(left, timeout)
            return True
        waiting = [idle for _, idle in self._waits if idle is not None and not idle.done()]
        for idle in waiting:
            idle.set_result(None)
        return bool(waiting)

    def patience(self) -> float:
        """How many seconds to wait for threads that work for the loop, before time is skipped; 0 if none does."""
        if not self._waits:
            return 0.0
        # asyncio has no hook: an executor has as many permits as idle threads
        pool: Any = getattr(self._loop(), "_default_executor", None)
        if pool is None or len(pool._threads) <= pool._idle_semaphore._value:  # noqa: SLF001
            self._threads_since = None
            return 0.0
        moment = self.time() - self.offset
        if self._threads_since is None:
            self._threads_since = moment
        return max(0.0, self._threads_since + _THREAD_SECONDS - moment)

    def _given_up(self, left: float) -> bool:
        """Stop skipping, and raise the reason from `advance`."""
        waits, self._waits = self._waits, []
        for _, idle in waits:
            if idle is not None and not idle.done():
                idle.set_exception(
                    RuntimeError(
                        f"clock.advance: passed {_TIMERS_MAX:,} timers with {left:,.0f} s left: some code keeps"
                        " sleeping for very short times. Advance by less, or let it wait for an event"
                    )
                )
        return True


class _Selector:
    """A loop's selector that skips time instead of waiting."""

    def __init__(self, inner: selectors.BaseSelector, skipper: _Skipper) -> None:
        self._inner = inner
        self._skipper = skipper

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or timeout > 0:
            ready = self._inner.select(0)
            if ready:
                return ready
            patience = self._skipper.patience()
            if patience:
                timeout = patience if timeout is None else min(timeout, patience)
            elif self._skipper.moved(timeout):
                return []
        return self._inner.select(timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


#: Weak, so that a closed loop is not kept.
_skippers: WeakKeyDictionary[asyncio.AbstractEventLoop, _Skipper] = WeakKeyDictionary()


def _skipper() -> _Skipper:
    """The skipper of the running loop, made on first use and then kept, since time must not go back."""
    loop = asyncio.get_running_loop()
    if (found := _skippers.get(loop)) is not None:
        found.bind(loop)
        return found
    inner = getattr(loop, "_selector", None)
    if not isinstance(inner, selectors.BaseSelector):
        raise TypeError(f"cannot skip time on a {type(loop).__name__}: run the test on asyncio's own selector loop")
    skipper = _Skipper(loop)
    changed = cast("Any", loop)
    changed.time, changed._selector = skipper.time, _Selector(inner, skipper)  # noqa: SLF001 - asyncio has no hook
    skipper.bind(loop)
    _skippers[loop] = skipper
    return skipper
