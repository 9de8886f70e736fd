"""examples/schedule.py: what its users see as time goes by."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from samples.stage import gone, load, running, seen, until
from steersman import MergePatch, ObjectMeta
from steersman.cache import KindOptions
from steersman.errors import Invalid
from steersman.kinds.batch_v1 import Job
from steersman.objects import is_true
from steersman.testing import PodRunner, PodSucceeded

example = load("schedule")
Schedule = example.Schedule
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def only(namespace):
    here = KindOptions(namespaces=(namespace,))
    return {Schedule: here, Job: here}


def schedule(every="1s", **spec):
    wanted = example.ScheduleSpec(every=every, image="work:1", **spec)
    return Schedule(metadata=ObjectMeta(name="tidy"), spec=wanted)


async def jobs(client, namespace):
    found = await client.list(Job, namespace=namespace)
    return {job.key.name: job for job in found if not job.deleting}


@pytest.mark.parametrize(
    ("since", "until", "due", "missed", "following"),
    [
        (0, 10, None, 0, 30),
        (0, 30, 30, 0, 60),
        (29, 31, 30, 0, 60),
        (30, 59, None, 0, 60),
        (0, 100, 90, 2, 120),
        (60, 10, None, 0, 30),  # the clock was set back
    ],
)
def test_the_clock_alone_says_what_is_due(since, until, due, missed, following):
    def moment(seconds):
        return NOON + timedelta(seconds=seconds)

    ticks = example.ticks_between(moment(since), moment(until), timedelta(seconds=30))
    assert ticks == (None if due is None else moment(due), missed, moment(following))


async def test_jobs_are_made_complete_and_are_tidied_up(client, namespace, only):
    async with (
        PodRunner(client, outcome=lambda _: PodSucceeded(), namespaces=(namespace,)),
        running(client, example, only=only) as operator,
    ):
        await client.create(schedule(keep=2))
        every: dict[str, Job] = {}

        async def four_were_made() -> bool:
            every.update(await jobs(client, namespace))
            return len(every) >= 4

        await until(four_were_made)
        moments = sorted(int(name.removeprefix("tidy-")) for name in every)
        status = (await client.get(Schedule, "tidy")).status
        # one each second, or counted as missed on a machine that was too slow
        assert moments[-1] - moments[0] + 1 - len(moments) <= status.missed

        async def two_are_left() -> bool:
            return len(await jobs(client, namespace)) == 2

        await until(two_are_left)
        (oldest, *_) = sorted(await jobs(client, namespace))
        await seen(client, Job, oldest, lambda job: job.status is None or is_true(job.status.conditions, "Complete"))
        assert operator.results.get("requeue_after", 0) >= 4

        await client.delete(Schedule, "tidy")
        await gone(client, Schedule, "tidy")

        async def none_are_left() -> bool:
            return not await jobs(client, namespace)

        await until(none_are_left)
        await operator.assert_quiet()


async def test_missed_ticks_are_made_up_for_by_one(client, namespace, only):
    """Every tick since its creation has a Job or is counted as missed."""
    created = await client.create(schedule("1s", keep=50))
    await asyncio.sleep(3.1)  # no manager runs; the passing of time is what is tested
    async with running(client, example, only=only):
        await seen(client, Schedule, "tidy", lambda found: found.status and found.status.last_tick)
    status = (await client.get(Schedule, "tidy")).status
    ticks = (status.last_tick - created.metadata.creation_timestamp).total_seconds()
    assert status.missed >= 2
    assert len(await jobs(client, namespace)) == ticks - status.missed


async def test_between_two_ticks_nothing_happens_and_a_restart_writes_nothing(client, namespace, only):
    async with running(client, example, only=only) as operator:
        await client.create(schedule("1h"))
        await operator.assert_quiet()
        assert await jobs(client, namespace) == {}
    async with running(client, example, only=only) as operator:
        assert await operator.settled() == 1
        assert operator.writes == []
        # a shorter interval counts at once
        await client.patch(Schedule, "tidy", MergePatch({"spec": {"every": "1s"}}))
        await seen(client, Schedule, "tidy", lambda found: found.status.last_tick)


@pytest.mark.parametrize("every", ["0s", "now", "1.5s", "-1s"])
async def test_an_interval_that_is_none_is_refused(engine, namespace, every):
    async with engine.client(namespace=namespace, validate=False) as client:
        with pytest.raises(Invalid, match="every"):
            await client.create(schedule(every))
