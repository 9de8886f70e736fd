"""What a list replaces is freed in portions: no turn of the event loop frees all of it."""

import asyncio
import gc
import sys

import pytest
from cache.test_bad_servers import bookmark, config_map, frame, run, saying

from steersman.aio import Supervisor
from steersman.cache import disposal
from steersman.cache.contents import SLICE
from steersman.cache.disposal import Disposal
from steersman.cache.store import NAMESPACES

TOTAL = 4_000
PORTION = 200
#: Blocks of memory that an object, its entry in an index and its entry in a list hold, and some more.
BLOCKS = 20


@pytest.fixture(autouse=True)
def small_portions(monkeypatch):
    """Small portions, so that few objects are many; no collections, which would free memory too."""
    monkeypatch.setattr(disposal, "PORTION", PORTION)
    gc.disable()
    yield
    gc.enable()


class World:
    """A server whose objects all change at once."""

    def __init__(self):
        self.version = 1
        self.present = True

    def __call__(self, query):
        objects = range(TOTAL if self.present else 0)
        pieces = [
            b"".join(frame("ADDED", config_map(f"n-{i + j}", self.version)) for j in range(100)) for i in objects[::100]
        ]
        return saying(*pieces, bookmark(self.version, end=True))


async def most_freed(work):
    """The most blocks of memory that a turn of the event loop frees until the work and all that follows it are done."""
    most, before, idle = 0, sys.getallocatedblocks(), 0
    async with Supervisor() as tasks:
        task = tasks.start(work, name="work")
        while not task.done() or idle < 20:
            await asyncio.sleep(0)
            now = sys.getallocatedblocks()
            most, before = max(most, before - now), now
            idle = idle + 1 if task.done() else 0
    return most


async def refreshed(informer, registrations):
    await informer.refresh()
    while any(each.pending for each in registrations) or len(informer.replica.disposal):  # noqa: ASYNC110 - turns are counted
        await asyncio.sleep(0)


async def interrupted(informer, registrations):
    (following,) = informer._scopes.values()
    async with Supervisor() as tasks:
        first = tasks.start(informer.refresh(), name="refresh")
        while not following.commits:  # noqa: ASYNC110 - turns are counted
            await asyncio.sleep(0)
        for _ in range(TOTAL * 3 // 2 // SLICE):
            await asyncio.sleep(0)
        first.cancel()
    await refreshed(informer, registrations)


async def removed(informer, registrations):
    await informer.refresh()
    for each in registrations:
        each.remove()
    await refreshed(informer, [])


def test_no_turn_frees_what_a_list_replaced():
    """Freeing objects takes as long as making them: a large list that is replaced at once stops the whole program."""
    world, freed = World(), {}

    async def scenario(informer):
        informer.add_index("name", lambda obj: [obj.metadata.name])
        registrations = [informer.add_handler(lambda _: None) for _ in range(2)]
        await informer.wait_synced()
        await refreshed(informer, registrations)
        await informer.prepare(NAMESPACES)
        freed["unchanged"] = await most_freed(refreshed(informer, registrations))
        world.version = 2
        freed["changed"] = await most_freed(refreshed(informer, registrations))
        world.version = 3
        freed["interrupted"] = await most_freed(interrupted(informer, registrations))
        world.version = 4
        freed["removed"] = await most_freed(removed(informer, registrations))
        world.present = False
        freed["gone"] = await most_freed(refreshed(informer, []))
        return len(informer.store)

    _, left = run(world, scenario)
    assert left == 0
    assert {case for case, blocks in freed.items() if blocks > PORTION * BLOCKS} == set()


def test_small_containers_cost_no_turn():
    async def scenario():
        trash = Disposal()
        trash.add({1: 2}, entries=PORTION)
        assert len(trash) == 0

    asyncio.run(scenario())


def test_without_a_loop_everything_is_freed_at_once():
    trash = Disposal()
    trash.add({1: 2}, entries=PORTION + 1)
    assert len(trash) == 0
