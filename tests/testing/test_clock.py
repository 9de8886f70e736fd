"""Time that is skipped: what waits for an hour runs now."""

from __future__ import annotations

import asyncio
import socket
import threading
from datetime import datetime, timedelta

import pytest

from samples.page_operator import HOUR, Page, manager, page
from steersman import MergePatch, ObjectMeta
from steersman.aio import Supervisor, utc_now
from steersman.client import Client
from steersman.controlplane import ControlPlane
from steersman.kinds.core_v1 import ConfigMap
from steersman.testing import Clock, consistently, eventually
from steersman.testing.clock import clock_in_use
from steersman.transport import TransportWrapper

#: A loop for each: that of the session has tasks of others, whose time would be skipped too.
pytestmark = pytest.mark.asyncio(loop_scope="function")


async def test_a_requeue_after_an_hour(control_plane, clock):
    client = control_plane.client
    began = clock.now()
    async with control_plane.running(manager) as operator:
        await client.create(page(behavior="hourly"))
        await operator.drained()
        for checks in (1, 2, 3):
            await clock.advance(HOUR - 60)
            assert (await client.get(Page, "home")).status.checks == checks - 1
            await clock.advance(timedelta(minutes=1))
            assert (await client.get(Page, "home")).status.checks == checks
        # the controllers' own time, and that of the server, went along
        assert clock.now() - began >= timedelta(hours=3)
        late = await client.create(page("late"))
        assert late.metadata.creation_timestamp - began >= timedelta(hours=3, seconds=-1)


async def test_waiting_takes_no_time(control_plane, clock):
    client = control_plane.client
    async with asyncio.timeout(10_000_000), control_plane.running(manager):
        await client.create(page(behavior="hourly"))
        await eventually(client, Page, "home", has={"status": {"checks": 6}}, within=7 * HOUR)
        await consistently(client, ConfigMap, "home", has={"data": {"title": "hello"}}, during=6 * HOUR)
        with pytest.raises(AssertionError, match="within 3 h"):
            await eventually(client, Page, "home", gone=True, within=3 * HOUR)


class SlowFirstRead(TransportWrapper):
    """A connection whose first read takes an hour, after which ``then`` is called."""

    def __init__(self, inner, clock, then):
        super().__init__(inner)
        self._clock, self._then = clock, then

    async def send(self, request, **options):
        response = await super().send(request, **options)
        if self._then is not None and request.method == "GET":
            then, self._then = self._then, None
            await self._clock.advance(HOUR)
            then()
        return response


async def test_the_time_of_consistently_begins_with_the_first_state(clock):
    """A slow first list does not use up the time in which the object must stay the same."""
    async with ControlPlane() as plane, Client(plane.transport(), namespace="default") as client:
        await client.create(ConfigMap(metadata=ObjectMeta(name="x"), data={"a": "b"}))
        async with asyncio.TaskGroup() as tasks:
            change = MergePatch({"data": {"a": "c"}})
            slow = SlowFirstRead(
                plane.transport(), clock, lambda: tasks.create_task(client.patch(ConfigMap, "x", change))
            )
            with pytest.raises(AssertionError, match='expected "b", found "c"'):
                await consistently(
                    Client(slow, namespace="default"), ConfigMap, "x", has={"data": {"a": "b"}}, during=HOUR / 2
                )


async def test_the_time_of_a_condition_begins_with_its_first_result(clock):
    """A slow first call does not use up the time in which the condition must hold."""
    looks = []

    async def slow_at_first() -> bool:
        looks.append(1)
        if len(looks) == 1:
            await asyncio.sleep(0.05)
        return len(looks) == 1

    with pytest.raises(AssertionError, match="slow_at_first did not hold for 10 ms: after"):
        await consistently(slow_at_first, during=0.01)


async def test_consistently_ends_if_its_condition_hangs(clock):
    """The first call must return within 10 seconds; the end of the time cuts off a later one."""
    looks = []

    async def hangs() -> bool:
        looks.append(1)
        if len(looks) != 2:
            await asyncio.Event().wait()
        return True

    with pytest.raises(AssertionError, match="from the beginning, it did not return within 10 s"):
        await consistently(hangs, during=HOUR)
    await consistently(hangs, during=HOUR)
    assert len(looks) == 3


async def test_a_condition_may_last_for_days(clock):
    """A call for each 20 ms of a day would be more timers than a clock skips, and the rest would pass in real time."""
    looks = []

    def is_looked_at() -> bool:
        looks.append(clock.now())
        return True

    await consistently(is_looked_at, during=24 * HOUR)
    assert 900 < len(looks) < 1100
    assert looks[-1] - looks[0] > timedelta(hours=23)
    with pytest.raises(AssertionError, match="did not hold within 1 d: it returned None"):
        await eventually(looks.clear, within=24 * HOUR)


async def test_a_condition_that_waits_for_a_socket_is_explained(clock):
    """The time until its deadline passes at once, before the socket can answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:

        async def answers() -> bytes:
            reader, writer = await asyncio.open_connection(*silent.getsockname())
            try:
                return await reader.read(1)
            finally:
                writer.close()

        for wait in (eventually(answers, within=5), consistently(answers, during=5)):
            with pytest.raises(AssertionError, match=r"did not return.*; the clock of this test skips time"):
                await wait


async def test_timers_run_in_their_order_and_at_their_time(clock):
    began, ran = utc_now(), []

    async def at(seconds: float) -> None:
        await asyncio.sleep(seconds)
        ran.append((seconds, round((utc_now() - began).total_seconds())))

    async with asyncio.TaskGroup() as tasks:
        for seconds in (7200, 60, 3600, 86400):
            tasks.create_task(at(seconds))
        await clock.advance(4000)
        assert ran == [(60, 60), (3600, 3600)]
        await clock.advance(82_500)
    assert ran == [(60, 60), (3600, 3600), (7200, 7200), (86400, 86400)]
    assert clock.skipped == pytest.approx(86_500, abs=5)


async def test_what_a_timer_starts_has_ended_when_it_returns(clock):
    ended = []

    async def chain(steps: int) -> None:
        await asyncio.sleep(10)
        for _ in range(steps):
            await asyncio.sleep(0)
        ended.append(steps)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(chain(1000))
        await asyncio.sleep(0)
        await clock.advance(10)
        assert ended == [1000]


async def test_a_call_in_a_thread_is_not_overtaken(clock):
    """Else every deadline would end it at once, and the test would see a timeout that never happens."""
    begun, let_go = threading.Event(), threading.Event()

    def call() -> str:
        begun.set()
        let_go.wait(5)
        return "done"

    async def reconcile() -> str:
        async with asyncio.timeout(300):
            return await asyncio.to_thread(call)

    async with Supervisor() as tasks:
        calling = tasks.start(reconcile(), name="reconcile")
        await asyncio.sleep(0)
        begun.wait(5)
        asyncio.get_running_loop().call_later(0.2, let_go.set)
        await clock.advance(3600)
        assert calling.result() == "done"
    assert clock.skipped > 3000


async def test_a_thread_that_never_ends_does_not_stop_the_time(clock, monkeypatch):
    monkeypatch.setattr("steersman.testing.clock._THREAD_SECONDS", 0.1)
    let_go = threading.Event()
    async with Supervisor() as tasks:
        tasks.start(asyncio.to_thread(let_go.wait, 30), name="watcher")
        await asyncio.sleep(0)
        await clock.advance(3600)
        let_go.set()
    assert clock.skipped > 3000


async def test_time_passes_as_ever_in_between(clock):
    await clock.advance(5)
    loop = asyncio.get_running_loop()
    before = loop.time()
    await asyncio.sleep(0.02)
    assert 0.02 <= loop.time() - before < 60


async def test_a_task_that_sleeps_again_and_again_is_reported(clock, monkeypatch):
    monkeypatch.setattr("steersman.testing.clock._TIMERS_MAX", 1000)

    async def impatient() -> None:
        while True:  # noqa: ASYNC110 - that is the point
            await asyncio.sleep(0.001)

    task = asyncio.get_running_loop().create_task(impatient())
    with pytest.raises(RuntimeError, match=r"passed 1,000 timers with .* s left: some code keeps sleeping"):
        await clock.advance(3600)
    task.cancel()


async def machine_time() -> datetime:
    """What no loop has changed."""
    return await asyncio.to_thread(utc_now)


async def test_wall_time_is_the_machines_again_after_the_test():
    loop = asyncio.get_running_loop()
    with clock_in_use() as clock:
        await clock.advance(timedelta(days=400))
        assert utc_now() - await machine_time() > timedelta(days=399)
        before = loop.time()
    assert abs(utc_now() - await machine_time()) < timedelta(minutes=1)
    assert loop.time() >= before
    with clock_in_use() as clock:
        assert abs(clock.now() - await machine_time()) < timedelta(minutes=1)


async def test_time_does_not_go_back():
    with pytest.raises(ValueError, match="needs a non-negative number"):
        await Clock().advance(-1)
