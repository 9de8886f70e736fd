"""A loop whose time only moves when everything waits: what the aio room must be repeatable under."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from steersman.aio import bind

_EPOCH = datetime(2030, 1, 1, tzinfo=UTC)


class _JumpingSelector(selectors.SelectSelector):
    """Instead of sleeping, moves the loop's time to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0

    def select(self, timeout: float | None = None):
        if timeout is None:
            raise RuntimeError("everything waits and no timer is set: the program would hang")
        ready = super().select(0)
        if not ready:
            self.elapsed += timeout
        return ready


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.elapsed


class _LoopClock:
    """Wall time that starts at a fixed moment and follows the loop's time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        return _EPOCH + timedelta(seconds=self._loop.time())


@pytest.fixture
def virtual_loop() -> Iterator[Callable[[int], asyncio.AbstractEventLoop]]:
    """Makes loops in virtual time, bound to a seed."""
    loops: list[asyncio.AbstractEventLoop] = []

    def make(seed: int) -> asyncio.AbstractEventLoop:
        loop = _VirtualLoop()
        loops.append(loop)
        bind(loop, clock=_LoopClock(loop), seed=seed)
        return loop

    yield make
    for loop in loops:
        loop.close()


@pytest.fixture
def run_virtual(virtual_loop):
    """Runs a coroutine to its end on a new virtual loop."""

    def run(work, *, seed: int = 1):
        return virtual_loop(seed).run_until_complete(work)

    return run
