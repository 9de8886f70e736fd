"""An index over objects that are there already is built while the program goes on, and so is a list that is interrupted."""

import asyncio
from collections import Counter

from cache.test_bad_servers import bookmark, config_map, frame, run, saying
from cache.test_replacement_model import NAMES, World, changes, listed
from hypothesis import given, settings, strategies as st

from steersman.aio import Supervisor
from steersman.cache import contents
from steersman.cache.contents import IndexName
from steersman.cache.store import NAMESPACES, OWNERS
from steersman.objects import Key

TOTAL = 10_000
INDEXES = (
    NAMESPACES,
    OWNERS,
    IndexName("label", "app"),
    IndexName("label in a namespace", "app"),
    IndexName("condition", "Ready"),
    IndexName("function", "value"),
)


def switch(world, building, replacement, complete):
    """Have a list take the place of the namespace x."""
    for _ in building:
        pass
    world.store.switch(replacement)
    world.model = {key: each for key, each in world.model.items() if key.namespace != "x"} | complete


@settings(max_examples=300, deadline=None, derandomize=True)
@given(listed, listed, listed, changes, st.sampled_from(INDEXES), st.integers(0, 14), st.booleans())
def test_an_index_that_is_built_in_slices_is_exact(here, there, new, meanwhile, name, switches_at, looks):
    slice_, contents.SLICE = contents.SLICE, 1
    try:
        world = World(indexed=False)
        for namespace, objects in (("x", here), ("y", there)):
            for each, state in objects.items():
                world.change(Key(namespace, each), state)
        world.declare()
        complete = {Key("x", each): world.made(Key("x", each), state) for each, state in new.items()}
        replacement = world.store.replacement("x", complete, same=lambda old, stored: old is stored)
        building = world.store.building(replacement)
        for step, _ in enumerate(world.store.indexing(name)):
            for at, each, state in meanwhile:
                if at == step:
                    world.change(Key("y", each), state)
            if step < switches_at:
                next(building, None)
            elif step == switches_at:
                switch(world, building, replacement, complete)
                if looks:
                    world.check()  # a reader that cannot wait has all indexes built
        assert world.store.has_index(name)
        world.check()
        for each in NAMES:
            world.change(Key("y", each), ("u2", "2"))
        world.check()
    finally:
        contents.SLICE = slice_


def every(query):
    pieces = [
        b"".join(frame("ADDED", config_map(f"n-{i + j}", i + j + 1)) for j in range(100)) for i in range(0, TOTAL, 100)
    ]
    return saying(*pieces, bookmark(TOTAL, end=True))


async def most_in_a_turn(work, done):
    most = before = 0
    while not done():
        await asyncio.sleep(0)
        most, before = max(most, work["indexed"] - before), work["indexed"]
    return most


def test_an_index_that_is_added_later_holds_up_no_turn():
    work, turns = Counter(), []

    async def scenario(informer):
        def index(obj):
            work["indexed"] += 1
            return [obj.metadata.name]

        await informer.wait_synced()
        informer.add_index("late", index)
        late = IndexName("function", "late")
        assert not informer.store.has_index(late)
        async with Supervisor() as tasks:
            readers = [tasks.start(informer.prepare(late), name="reader") for _ in range(20)]
            readers[0].cancel()
            turns.append(await most_in_a_turn(work, lambda: all(each.done() for each in readers)))
        assert [each.key.name for each in informer.store.by_index("late", "n-77")] == ["n-77"]
        # one that is cancelled has another reader begin again, and no value is ever missing
        for name in (NAMESPACES, OWNERS, IndexName("label", "app")):
            count = 0
            for _ in informer.store.indexing(name):
                count += 1
            assert count == TOTAL // contents.SLICE

    run(every, scenario)
    assert work["indexed"] == TOTAL
    assert turns[0] <= contents.SLICE


def test_a_list_that_is_interrupted_while_it_is_taken_over_is_taken_over_again():
    """Readers see all of it or nothing, and a handler hears of each object once."""
    told, seen = Counter(), set()

    async def scenario(informer):
        informer.add_handler(lambda event: told.update([(event.type, event.key.name)]))
        (following,) = informer._scopes.values()
        interrupted = 0
        while not informer.synced:
            await asyncio.sleep(0)
            seen.add(len(informer.store))
            if following.commits and interrupted < 3:
                for _ in range(5):
                    await asyncio.sleep(0)
                interrupted += 1
                async with Supervisor() as tasks:
                    tasks.start(informer.refresh(), name="refresh")
        assert interrupted
        while informer.statistics().pending != (0,):
            await asyncio.sleep(0)
            seen.add(len(informer.store))
        return interrupted

    run(every, scenario)
    assert seen <= {0, TOTAL}
    assert told == Counter({("appeared", f"n-{i}"): 1 for i in range(TOTAL)})
