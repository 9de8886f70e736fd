"""Actors on a simulated loop: what belongs to each, and what a dead one never does."""

import asyncio
import gc
import platform
from datetime import timedelta

import pytest

from steersman import aio
from steersman.aio import Actor, current_actor, host_name, utc_now
from steersman.simulation.runs.loop import Hung, SimulatedLoop


@pytest.fixture
def loop():
    loop = SimulatedLoop()
    yield loop
    loop.close()


def act(loop, actor, work):
    """Start work as an actor."""
    return loop.create_task(work, context=actor.context.copy())


# actors


def test_a_task_and_all_it_starts_belong_to_its_actor(loop):
    actor = Actor("one", seed=1)
    names = []

    async def inner():
        names.append(current_actor())
        await asyncio.sleep(1)
        names.append(current_actor())
        loop.call_soon(lambda: names.append(current_actor()))
        loop.call_later(1, lambda: names.append(current_actor()))
        await asyncio.to_thread(lambda: names.append(current_actor()))
        await asyncio.sleep(2)

    async def outer():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(inner())

    loop.run_until_complete(act(loop, actor, outer()))
    assert names == [actor] * 5
    assert current_actor() is None


def test_each_actor_has_its_own_name_clock_and_randomness(loop):
    one, two = Actor("one", seed=7), Actor("two", seed=8, skew=120.0)

    async def look():
        await asyncio.sleep(1)
        return host_name(), utc_now(), aio.randomness().random()

    async def look_at_all():
        return await asyncio.gather(act(loop, one, look()), act(loop, two, look()), look())

    (name, here, chance), (other, ahead, _), (machine, outside, outer) = loop.run_until_complete(look_at_all())
    assert (name, other, machine) == ("one", "two", platform.node())
    assert ahead - here == timedelta(seconds=120)
    assert outside == here
    assert chance == Actor("again", seed=7).generator.random()
    assert outer not in {chance, Actor("again", seed=8).generator.random()}


def test_randomness_of_one_actor_does_not_change_that_of_another(loop):
    """A fault that makes one process retry must not choose other names for the rest of the world."""
    one, two = Actor("one", seed=1), Actor("two", seed=2)

    async def draw(count):
        return [aio.name_suffix() for _ in range(count)]

    act(loop, one, draw(50))
    assert loop.run_until_complete(act(loop, two, draw(1))) == loop.run_until_complete(
        act(loop, Actor("again", seed=2), draw(1))
    )


# crashes


def test_a_dead_actor_never_acts_again(loop):
    actor = Actor("one", seed=1)
    heard = []

    async def work():
        try:
            loop.call_soon(heard.append, "callback")
            loop.call_later(1, heard.append, "timer")
            while True:
                await asyncio.sleep(1)
                heard.append("turn")
        finally:
            heard.append("finally")

    async def world():
        task = act(loop, actor, work())
        await asyncio.sleep(2.5)
        before = list(heard)
        actor.alive = False
        await asyncio.sleep(10)
        return before, task.done()

    before, done = loop.run_until_complete(world())
    assert before == ["callback", "timer", "turn", "turn"]
    assert heard == before
    assert not done


def test_what_a_dead_actor_had_scheduled_is_dropped(loop):
    """It dies in the middle of a turn: what is ready then does not run either."""
    actor = Actor("one", seed=1)
    heard = []

    async def work():
        loop.call_soon(heard.append, "ready")
        loop.call_later(0, heard.append, "due")
        actor.alive = False
        heard.append("rest of the turn")
        await asyncio.sleep(0)
        heard.append("next turn")

    async def world():
        act(loop, actor, work())
        await asyncio.sleep(5)

    loop.run_until_complete(world())
    assert heard == ["rest of the turn"]


def test_cancelling_a_task_of_a_dead_actor_runs_nothing(loop):
    actor = Actor("one", seed=1)
    heard = []

    async def work():
        try:
            await asyncio.sleep(100)
        finally:
            heard.append("finally")

    async def world():
        task = act(loop, actor, work())
        await asyncio.sleep(1)
        actor.alive = False
        task.cancel()
        await asyncio.sleep(1)

    loop.run_until_complete(world())
    assert heard == []


def test_timers_of_a_dead_actor_move_no_time(loop):
    actor = Actor("one", seed=1)

    async def work():
        await asyncio.sleep(1000)

    async def world():
        act(loop, actor, work())
        await asyncio.sleep(1)
        actor.alive = False
        await loop.create_future()

    with pytest.raises(Hung):
        loop.run_until_complete(world())
    assert loop.time() == 1


def test_a_message_to_others_outlives_its_sender(loop):
    """What an actor has handed over is no longer its own."""
    one, two = Actor("one", seed=1), Actor("two", seed=2)
    heard = []

    async def send():
        loop.call_later(1, heard.append, "arrived", context=two.context.copy())
        await asyncio.sleep(100)

    async def world():
        act(loop, one, send())
        await asyncio.sleep(0.5)
        one.alive = False
        await asyncio.sleep(1)

    loop.run_until_complete(world())
    assert heard == ["arrived"]


def test_a_generator_of_a_dead_actor_is_not_finalized(loop):
    actor = Actor("one", seed=1)
    heard = []

    async def numbers():
        try:
            for number in range(10):
                yield number
                await asyncio.sleep(1)
        finally:
            heard.append("finally")

    async def work():
        async for _ in numbers():
            if not actor.alive:
                return

    async def world():
        task = act(loop, actor, work())
        await asyncio.sleep(2.5)
        actor.alive = False
        del task
        gc.collect()
        await asyncio.sleep(10)

    loop.run_until_complete(world())
    assert heard == []


def test_an_abandoned_generator_is_finalized_by_its_actor(loop):
    actor = Actor("one", seed=1)
    heard = []

    async def numbers():
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            heard.append(current_actor())

    async def work():
        async for _ in numbers():
            break
        gc.collect()
        await asyncio.sleep(1)

    loop.run_until_complete(act(loop, actor, work()))
    assert heard == [actor]
