"""A list takes the place of what was there in one step, in slices, while readers read and watches go on."""

import asyncio
from collections import Counter

from cache.test_bad_servers import bookmark, config_map, frame, run, saying
from hypothesis import given, settings, strategies as st

from steersman.cache import Store, StoredObject, contents
from steersman.objects import Key, Selector

counted = Counter()
NAMES = "abcdef"
#: (namespace, name) of each object, with its owner and the value of its label and of the declared index.
states = st.tuples(st.sampled_from(["u1", "u2"]), st.sampled_from(["1", "2"]))
listed = st.dictionaries(st.sampled_from(NAMES), states)
changes = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(NAMES), st.none() | states), max_size=8)


class World:
    """A store, and what it should hold."""

    def __init__(self, *, indexed):
        self.store = Store()
        self.model = {}
        self.version = 0
        self.values = {}
        self.indexed = False
        if indexed:
            self.declare()

    def declare(self):
        if not self.indexed:
            self.store.add_index("value", lambda stored: [self.values[stored.resource_version]])
            self.indexed = True

    def made(self, key, state):
        owner, value = state
        self.version += 1
        self.values[str(self.version)] = value
        raw = b'{"status":{"conditions":[{"type":"Ready","status":"%s","reason":"%s"}]}}' % (
            b"True" if value == "1" else b"False",
            owner.encode(),
        )
        version, uid, ending = str(self.version), f"uid-{self.version}", owner == "u2"
        return StoredObject(key, version, raw, uid, own_labels={"app": value}, owners=(owner,), deleting=ending)

    def change(self, key, state):
        if state is None:
            assert self.store.remove(key) is self.model.pop(key, None)
        else:
            stored = self.made(key, state)
            assert self.store.put(stored) is self.model.get(key)
            self.model[key] = stored

    def check(self):
        """Every way to read shows exactly the model."""
        expected = self.model
        assert {each.key: each for each in self.store} == expected
        for namespace in ("x", "y"):
            found = {each.key for each in self.store.list(namespace=namespace)}
            assert found == {key for key in expected if key.namespace == namespace}
        for value in ("1", "2"):
            same = {key for key, each in expected.items() if each.own_labels["app"] == value}
            assert {each.key for each in self.store.list(labels=Selector.parse(f"app={value}"))} == same
            if self.indexed:
                assert {each.key for each in self.store.by_index("value", value)} == same
        assert {each.key for each in self.store.deleting()} == {key for key in expected if expected[key].deleting}
        for owner in ("u1", "u2"):
            same = {key for key, each in expected.items() if owner in each.owners}
            assert {each.key for each in self.store.by_owner(owner)} == same
            waiting = {key for key in same if expected[key].own_labels["app"] != "1"}
            assert {*self.store.by_unmet_condition("Ready").get(("False", owner), ())} == waiting


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.sampled_from(["", "x"]), listed, listed, listed, changes, st.booleans(), st.integers(0, 12))
def test_readers_see_all_of_a_list_or_nothing(scope, here, there, new, meanwhile, indexed, looks_at):
    slice_, contents.SLICE = contents.SLICE, 1
    try:
        world = World(indexed=indexed)
        for name, state in here.items():
            world.change(Key("x", name), state)
        for name, state in there.items():
            world.change(Key("y", name), state)
        kept = [key for key in world.model if key.namespace == "x" and key.name in "abc" and key.name in new]
        complete = {Key("x", name): world.made(Key("x", name), state) for name, state in new.items()}
        # some objects come again in the state that they were in
        complete |= {key: world.model[key] for key in kept}
        replacement = world.store.replacement(scope, complete, same=lambda old, stored: old is stored)
        for step, _ in enumerate(world.store.building(replacement)):
            for at, name, state in meanwhile:
                if scope and at == step:
                    world.change(Key("y", name), state)
                    counted["followed"] += 1
            if step == looks_at:
                world.declare()
            if step % 3 == looks_at % 3:
                world.check()
        before = dict(world.model)
        world.store.switch(replacement)
        gone = [key for key in world.model if (not scope or key.namespace == scope) and key not in complete]
        for key in gone:
            del world.model[key]
        world.model |= complete
        world.check()
        expected = {key: before.get(key) for key in (*gone, *complete) if before.get(key) is not complete.get(key)}
        assert replacement.differences == expected
        assert [*replacement.differences][: len(gone)] == gone
        assert [each.key for each in replacement.removed] == gone
        counted["lists"] += 1
    finally:
        contents.SLICE = slice_
    # what is built no longer follows anything
    world.change(Key("y", "late"), ("u1", "1"))
    world.check()


def test_enough_was_tried():
    assert counted["lists"] >= 300
    assert counted["followed"] >= 100


def test_no_turn_of_the_event_loop_grows_with_the_list():
    """Ten thousand objects with an index: a turn computes a few hundred values, and never half of them is seen."""
    total = 10_000
    pieces = [
        b"".join(frame("ADDED", config_map(f"n-{i + j}", i + j + 1)) for j in range(100)) for i in range(0, total, 100)
    ]
    work = Counter()
    seen = set()

    def answer(query):
        return saying(*pieces, bookmark(total, end=True))

    async def turns(informer):
        most = before = 0
        while not informer.synced or work["handled"] < total:
            await asyncio.sleep(0)
            now = work["indexed"] + work["handled"]
            most, before = max(most, now - before), now
            seen.add(len(informer.store))
        return most

    async def scenario(informer):
        def index(obj):
            work["indexed"] += 1
            return [obj.metadata.name]

        informer.add_index("name", index)
        informer.add_handler(lambda _: work.update(["handled"]))
        return await turns(informer)

    _, most = run(answer, scenario)
    assert work["indexed"] == total
    assert most <= 2 * contents.SLICE
    assert seen == {0, total}
