"""Changes that come faster than their delivery: every owner that could have seen a state between is queued."""

import asyncio

import pytest

from samples.virtual_time import run_virtual
from steersman.aio import Supervisor
from steersman.cache import Store, StoredObject, StoredView
from steersman.cache.delivery import PASSED_LIMIT, HandlerRegistration
from steersman.cache.disposal import Disposal, Noted
from steersman.controller import Cause, KindSource, Request, labels_changed
from steersman.controller.sources.mappers import function_mapper
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import Key

KEY = Key("default", "child")


class World:
    """A store and one source that listens to it; the label ``owner`` says which owner is queued."""

    def __init__(self, **options):
        self.store = Store()
        self.versions = 0
        self.told = []
        mapper = function_mapper(lambda view: [f"default/{view.labels['owner']}"], "watches")
        self.source = KindSource("ConfigMap", self, mapper, **options)

    def listen(self, handler):
        self.registration = HandlerRegistration(
            handler,
            current=self.store.get,
            view=lambda stored: StoredView(stored, ConfigMap.gvk(), lambda each: each),
            remove=lambda registration: None,
            resync=None,
        )
        self.registration.start(Noted({}, Disposal()))
        return self

    async def __aenter__(self):
        return self.registration

    async def __aexit__(self, *failure):
        pass

    def own(self, owner, uid="u1"):
        self.versions += 1
        stored = StoredObject(
            KEY, str(self.versions), str(self.versions).encode(), uid=uid, own_labels={"owner": owner}
        )
        self.registration.note(KEY, self.store.put(stored), framed=True)

    def vanish(self):
        self.versions += 1
        old = self.store.remove(KEY)
        last = StoredObject(KEY, str(self.versions), old.raw, uid=old.uid, own_labels=old.own_labels)
        self.registration.note(KEY, old, framed=True, last=last)

    def emit(self, request: Request, cause: Cause, priority: int):
        self.told.append(request.key.name)

    async def play(self, *moments):
        """Let things happen; what happens in one moment is delivered together."""
        heard = []
        async with Supervisor() as tasks:
            tasks.start(self.source.run(self.emit, lambda: None), name="source")
            await asyncio.sleep(0)
            tasks.start(self.registration.deliver(), name="handler")
            await asyncio.sleep(1)
            for moment in moments:
                for step in moment:
                    self.vanish() if step is None else self.own(*step.split())
                await asyncio.sleep(1)
                heard.append(set(self.told))
                self.told.clear()
            tasks.cancel()
        return heard


@pytest.mark.parametrize(
    ("moments", "heard"),
    [
        ([["x"], ["y", "z"]], [{"x"}, {"x", "y", "z"}]),
        ([["x"], ["y", "x"]], [{"x"}, {"x", "y"}]),
        ([["x", "y", "z"]], [{"x", "y", "z"}]),
        ([["x"], ["y", None]], [{"x"}, {"x", "y"}]),
        ([["x", None]], [{"x"}]),
        ([["x", "y", None]], [{"x", "y"}]),
        ([["x"], [None, "y u2", None]], [{"x"}, {"x", "y"}]),
        ([["x"], ["y", None, "z u2"]], [{"x"}, {"x", "y", "z"}]),
        ([["x"], [None, "y u2", None, "z u3"]], [{"x"}, {"x", "y", "z"}]),
        ([["x"], [None]], [{"x"}, {"x"}]),
    ],
    ids=lambda value: None,
)
@pytest.mark.parametrize("options", [{}, {"predicate": labels_changed()}], ids=["all", "labels_changed"])
def test_every_owner_is_queued(moments, heard, options):
    """Also one that had the child only between: it may have read it then, for a reason of its own."""
    assert run_virtual(World(**options).play(*moments))[0] == heard


def test_a_state_that_comes_back_queues_the_owner_that_saw_the_other():
    """A server that was restored from a backup shows the very state again that was delivered last."""

    async def scenario():
        world = World()
        told = world.play(["x"], ["y", "back"])
        own = world.own

        def back(*what):
            if what != ("back",):
                own(*what)
                world.first = getattr(world, "first", world.store.get(KEY))
            else:
                world.registration.note(KEY, world.store.put(world.first), framed=False)

        world.own = back
        return await told

    assert run_virtual(scenario())[0] == [{"x"}, {"x", "y"}]


def test_a_single_change_asks_the_mapper_about_two_states_and_a_deletion_about_one():
    """What is not merged costs nothing more."""
    asked = []

    async def scenario():
        world = World()
        requests = world.source._mapper.requests
        world.source._mapper.requests = lambda event, stores: asked.append(len(event.states)) or requests(event, stores)
        await world.play(["x"], ["y"], [None])

    run_virtual(scenario())
    assert asked == [1, 2, 1]


def test_of_very_many_states_the_last_are_delivered():
    names = [f"n{number}" for number in range(100)]
    (_, heard), _ = run_virtual(World().play(["x"], names))
    assert heard == {"x", *names[-PASSED_LIMIT - 1 :]}
