"""Work on a loop in another thread: its outcome and its cancellation cross both ways."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextvars import ContextVar

import pytest

from steersman.aio import Supervisor, call_on

WHO: ContextVar[str] = ContextVar("who", default="nobody")


@pytest.fixture
def other() -> Generator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def test_work_runs_there_with_the_callers_context(other):
    async def work() -> tuple[asyncio.AbstractEventLoop, str]:
        return asyncio.get_running_loop(), WHO.get()

    WHO.set("caller")
    assert await call_on(other, work()) == (other, "caller")
    assert await call_on(asyncio.get_running_loop(), work()) == (asyncio.get_running_loop(), "caller")


async def test_a_failure_arrives_here(other):
    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await call_on(other, work())


async def test_cancelling_the_caller_cancels_the_work(other):
    began, ended = threading.Event(), threading.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with Supervisor() as tasks:
        tasks.start(call_on(other, work()), name="call")
        assert await asyncio.to_thread(began.wait, 60)
        tasks.cancel()
    assert await asyncio.to_thread(ended.wait, 60)


async def test_work_that_is_cancelled_there_is_cancelled_here(other):
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await call_on(other, work())


async def test_a_closed_loop_is_an_error():
    loop = asyncio.new_event_loop()
    loop.close()

    async def work() -> None:
        raise AssertionError

    with pytest.raises(RuntimeError, match="closed"):
        await call_on(loop, work())
