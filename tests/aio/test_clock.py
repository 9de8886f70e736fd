# ruff: noqa: TID251 - what this room answers is compared with what the machine says
from __future__ import annotations

import asyncio
import gc
import re
import time
import uuid
import weakref
from datetime import UTC, datetime, timedelta, timezone

from steersman import aio

MOMENT = datetime(2030, 6, 1, 12, 0, tzinfo=UTC)


class FixedClock:
    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment


async def _draw() -> list[object]:
    return [aio.new_uid(), aio.name_suffix(), aio.randomness().random(), aio.new_uid()]


def test_a_bound_loop_repeats_by_seed(run_virtual) -> None:
    """The same seed gives the same uids, suffixes and numbers; another seed gives others."""
    assert run_virtual(_draw(), seed=7) == run_virtual(_draw(), seed=7)
    assert run_virtual(_draw(), seed=7) != run_virtual(_draw(), seed=8)


def test_wall_time_follows_a_virtual_loop(run_virtual) -> None:
    """Sleeping an hour on a virtual loop moves the wall clock by an hour."""

    async def sleep() -> timedelta:
        before = aio.utc_now()
        await asyncio.sleep(3600)
        return aio.utc_now() - before

    assert run_virtual(sleep()) == timedelta(hours=1)


def test_two_loops_do_not_disturb_each_other(virtual_loop) -> None:
    """Draws on one loop leave the sequence of another as it is."""
    first, second = virtual_loop(3), virtual_loop(3)
    drawn = first.run_until_complete(_draw())
    assert first.run_until_complete(_draw()) != drawn
    assert second.run_until_complete(_draw()) == drawn


def test_binding_again_starts_afresh(virtual_loop) -> None:
    """A loop bound a second time has the new clock and begins its sequence again."""
    loop = virtual_loop(3)
    drawn = loop.run_until_complete(_draw())
    aio.bind(loop, clock=FixedClock(MOMENT), seed=3)
    assert loop.run_until_complete(_draw()) == drawn

    async def read() -> datetime:
        return aio.utc_now()

    assert loop.run_until_complete(read()) == MOMENT


def test_a_loop_can_have_the_machines_time_again() -> None:
    loop = asyncio.new_event_loop()
    aio.bind(loop, clock=FixedClock(MOMENT), seed=3)
    aio.unbind(loop)
    aio.unbind(loop)

    async def read() -> datetime:
        return aio.utc_now()

    assert abs(loop.run_until_complete(read()) - datetime.now(UTC)) < timedelta(minutes=1)
    loop.close()


def test_a_binding_goes_with_its_loop() -> None:
    """Binding a loop does not keep it alive."""
    loop = asyncio.new_event_loop()
    aio.bind(loop, clock=FixedClock(MOMENT), seed=1)
    loop.close()
    trace = weakref.ref(loop)
    del loop
    gc.collect()
    assert trace() is None


def test_now_is_always_utc(virtual_loop) -> None:
    """A clock in another time zone tells the same moment, in UTC."""
    loop = virtual_loop(1)
    aio.bind(loop, clock=FixedClock(MOMENT.astimezone(timezone(timedelta(hours=2)))), seed=1)

    async def read() -> datetime:
        return aio.utc_now()

    moment = loop.run_until_complete(read())
    assert moment.utcoffset() == timedelta(0)
    assert moment == MOMENT


def test_outside_a_loop_the_machine_answers() -> None:
    """Without a loop the time is the machine's and no two uids are equal."""
    before = datetime.now(UTC)
    assert before <= aio.utc_now() <= datetime.now(UTC)
    assert aio.new_uid() != aio.new_uid()


async def test_an_unbound_loop_has_the_machine_s_time_and_chance(virtual_loop) -> None:
    """An unbound loop still works, also while another one is bound."""
    other = virtual_loop(1)
    assert not other.is_running()
    before = datetime.now(UTC)
    assert before <= aio.utc_now() <= datetime.now(UTC)
    assert aio.new_uid() != aio.new_uid()


def test_uids_and_suffixes_have_kubernetes_shape() -> None:
    """A uid is a version 4 UUID in lower case; a suffix has only the letters Kubernetes uses."""
    uid = aio.new_uid()
    assert str(uuid.UUID(uid)) == uid
    assert uuid.UUID(uid).version == 4
    assert re.fullmatch(r"[bcdfghjklmnpqrstvwxz2456789]{5}", aio.name_suffix())
    assert len(aio.name_suffix(12)) == 12


def test_boottime_follows_a_virtual_loop(run_virtual) -> None:
    """Sleeping an hour on a virtual loop moves it by an hour."""

    async def sleep() -> float:
        before = aio.boottime()
        await asyncio.sleep(3600)
        return aio.boottime() - before

    assert run_virtual(sleep()) == 3600


def test_boottime_of_a_clock_that_has_one(virtual_loop) -> None:
    """A machine that slept is simulated by a clock whose boot time is ahead of the loop's."""

    class Slept(FixedClock):
        def boottime(self) -> float:
            return 5000.0

    loop = virtual_loop(1)
    aio.bind(loop, clock=Slept(MOMENT), seed=1)

    async def read() -> float:
        return aio.boottime()

    assert loop.run_until_complete(read()) == 5000.0


async def test_boottime_is_the_machine_s_otherwise() -> None:
    """It counts from the boot of the machine in every loop."""
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= aio.boottime() <= time.clock_gettime(time.CLOCK_BOOTTIME)
    inside = await asyncio.to_thread(aio.boottime)
    assert before <= inside <= time.clock_gettime(time.CLOCK_BOOTTIME)
