"""Mappers and predicates that fail lose no event, delay no other object, and hold no more than they must."""

import asyncio
import logging
from contextlib import asynccontextmanager
from random import Random  # noqa: TID251 - seeded

from samples.controllers import changed, running, view
from samples.virtual_time import run_virtual
from steersman.aio import Supervisor
from steersman.controller import Done, KindSource, ObjectEvent, when
from steersman.controller.sources.mappers import SameObject, function_mapper
from steersman.controller.sources.mapping_retries import VANISHED_ATTEMPTS, VANISHED_LIMIT, MappingRetries, merge


class Synced:
    async def wait_synced(self):
        pass


class FakeKind:
    """A watched kind whose events a test tells."""

    def __init__(self):
        self.tell = None

    @asynccontextmanager
    async def listen(self, handler):
        self.tell = handler
        yield Synced()


def appeared(key, **options):
    initial = options.pop("initial", False)
    return ObjectEvent("appeared", new=view(key, **options), initial=initial)


def vanished(key, **options):
    return ObjectEvent("vanished", old=view(key, **options))


class Fickle:
    """Maps to the label ``owner``; fails on the given names."""

    def __init__(self, *failing):
        self.failing = set(failing)
        self.asked = []

    def __call__(self, seen):
        self.asked.append(seen.key.name)
        if seen.key.name in self.failing:
            raise LookupError(f"no idea about {seen.key}")
        return [f"default/{seen.labels.get('owner', seen.key.name)}"]


def scenario(mapper, story, *, predicate=None):
    """Run a controller with one source in virtual time; what was reconciled, and the source's statistics."""

    async def told():
        kind, reconciled = FakeKind(), []
        source = KindSource("Secret", kind, function_mapper(mapper, "test"), predicate=predicate)

        async def reconcile(ctx, request):
            reconciled.append((round(asyncio.get_running_loop().time(), 1), str(request), str(ctx.causes)))
            return Done()

        async with running(reconcile, sources=[source]):
            await story(kind.tell, source)
            return reconciled, source.statistics()

    return run_virtual(told())[0]


def test_an_event_whose_mapper_fails_is_delivered_when_it_answers_again(caplog):
    mapper = Fickle("a")

    async def story(tell, source):
        tell(appeared("default/a"))
        tell(appeared("default/b"))
        await asyncio.sleep(1.0)
        assert source.statistics().retrying == 1
        mapper.failing.clear()
        await asyncio.sleep(60.0)

    with caplog.at_level(logging.INFO):
        reconciled, statistics = scenario(mapper, story)
    assert [request for _, request, _ in reconciled] == ["default/b", "default/a"]
    assert reconciled[1][2] == "Site default/a appeared"
    assert (statistics.retrying, statistics.failures > 1, statistics.given_up) == (0, True, 0)
    assert "LookupError: no idea about default/a" in statistics.last_failure
    assert "retrying in 0.1 s" in caplog.text
    assert "the mapper succeeds again" in caplog.text


def test_a_mapper_that_always_fails_on_one_object_delays_no_other_and_slows_down():
    mapper = Fickle("bad")

    async def story(tell, source):
        tell(appeared("default/bad"))
        for number in range(100):
            await asyncio.sleep(36.0)
            tell(appeared(f"default/{number}"))

    reconciled, statistics = scenario(mapper, story)
    assert [request for _, request, _ in reconciled] == [f"default/{number}" for number in range(99)]
    assert statistics.retrying == 1
    # An hour: 12 attempts to reach 300 s, then one every five minutes or a little earlier.
    assert 12 <= mapper.asked.count("bad") <= 30


def test_the_latest_state_wins_and_those_who_were_let_go_of_hear_of_it():
    mapper = Fickle("a")

    async def story(tell, source):
        one = view("default/a", version="1", labels={"owner": "first"})
        two = view("default/a", version="2", labels={"owner": "second"})
        three = view("default/a", version="3", labels={"owner": "third"})
        tell(changed(one, two, unbroken=True))
        tell(changed(two, three, unbroken=True))
        assert source.statistics().retrying == 1
        mapper.failing.clear()
        await asyncio.sleep(10.0)

    reconciled, _ = scenario(mapper, story)
    assert [request for _, request, _ in reconciled] == ["default/first", "default/second", "default/third"]


def test_what_a_predicate_holds_back_still_is_the_latest_state():
    mapper = Fickle("a")
    spec_changed = when(lambda event: event.new is None or event.new.generation == 0)

    async def story(tell, source):
        tell(appeared("default/a", labels={"owner": "first"}))
        first = view("default/a", labels={"owner": "first"})
        tell(changed(first, view("default/a", generation=7, version="2", labels={"owner": "second"})))
        mapper.failing.clear()
        await asyncio.sleep(10.0)

    reconciled, statistics = scenario(mapper, story, predicate=spec_changed)
    assert [request for _, request, _ in reconciled] == ["default/first", "default/second"]
    assert statistics.filtered == 1


def test_an_object_that_is_gone_is_asked_about_for_a_while_and_given_up_aloud(caplog):
    mapper = Fickle("a")

    async def story(tell, source):
        tell(vanished("default/a"))
        await asyncio.sleep(3600.0)

    reconciled, statistics = scenario(mapper, story)
    assert reconciled == []
    assert (statistics.retrying, statistics.given_up) == (0, 1)
    assert mapper.asked == ["a"] * (VANISHED_ATTEMPTS + 1)
    assert "its event is dropped" in caplog.text


def test_a_mapper_that_fails_on_everything_fills_no_disk(caplog):
    mapper = Fickle(*(str(number) for number in range(1000)))

    async def story(tell, source):
        for number in range(1000):
            tell(appeared(f"default/{number}"))
        await asyncio.sleep(60.0)

    _, statistics = scenario(mapper, story)
    assert statistics.retrying == 1000
    assert statistics.failures > 8000
    assert len([line for line in caplog.records if line.levelno >= logging.WARNING]) <= 62
    assert "more failures since the last line" in caplog.text


def test_an_event_passes_when_its_predicate_fails(caplog):
    def broken(event):
        raise ZeroDivisionError("oh")

    async def story(tell, source):
        tell(appeared("default/a"))
        await asyncio.sleep(1.0)

    reconciled, statistics = scenario(Fickle(), story, predicate=when(broken))
    assert [request for _, request, _ in reconciled] == ["default/a"]
    assert (statistics.failures, statistics.filtered) == (1, 0)
    assert "predicate on <Site default/a appeared>: ZeroDivisionError: oh" in caplog.text


def test_an_object_that_cannot_be_read_costs_no_other_its_event(caplog):
    """What a source does beside mapping must not cost the event either."""

    async def told():
        kind, emitted = FakeKind(), []

        def broken(event):
            raise ValueError("unreadable")

        source = KindSource("ReplicaSet", kind, SameObject(), before=broken)
        async with Supervisor() as tasks:
            run = source.run(lambda request, cause, priority: emitted.append(request), lambda: None)
            tasks.start(run, name="source")
            await asyncio.sleep(0)
            kind.tell(appeared("default/a"))
            tasks.cancel()
        return emitted, source.statistics()

    emitted, statistics = run_virtual(told())[0]
    assert [str(request) for request in emitted] == ["default/a"]
    assert statistics.failures == 1


def test_events_of_one_object_merge_into_what_was_not_told():
    a, b, c = (view("x/y", version=version) for version in "123")
    first = ObjectEvent("appeared", new=a, initial=True)
    later = merge(first, changed(a, b, unbroken=True))
    assert (later.type, later.old, later.new, later.initial, later.unbroken) == ("appeared", None, b, False, False)
    assert later.states == (a, b)
    gone = merge(later, ObjectEvent("vanished", old=b))
    assert (gone.type, gone.old) == ("vanished", b)
    back = merge(merge(changed(a, b), ObjectEvent("vanished", old=b)), ObjectEvent("appeared", new=c))
    assert (back.type, back.old, back.new, back.states) == ("changed", a, c, (a, b, c))
    again = merge(first, ObjectEvent("changed", old=a, new=a, resync=True))
    assert (again.type, again.initial) == ("appeared", True)


def test_objects_that_are_gone_are_bounded_and_the_oldest_are_given_up():
    retries, rng = MappingRetries(), Random(1)
    shown = view("x/y")
    for number in range(VANISHED_LIMIT + 100):
        retries.failed(vanished(f"x/{number}"), now=0.0, rng=rng)
    assert (len(retries), retries.given_up) == (VANISHED_LIMIT, 100)
    assert view("x/0").key not in retries
    assert view("x/100").key in retries
    # One that came back is there, and is not given up.
    retries.update(ObjectEvent("appeared", new=view("x/100")))
    retries.failed(vanished("x/new"), now=0.0, rng=rng)
    assert view("x/100").key in retries
    assert retries.given_up == 100
    assert len(retries._timers) <= 2 * len(retries) + 64
    assert shown.key not in retries


def test_a_state_on_which_the_mapper_fails_keeps_no_other_from_being_told():
    """It cannot read the old state; the new one is mapped at once, the old one when it can."""

    class Picky(Fickle):
        def __call__(self, seen):
            owner = seen.labels["owner"]
            if owner in self.failing:
                raise LookupError(owner)
            return [f"default/{owner}"]

    mapper = Picky("first")

    async def story(tell, source):
        one, two, three = (
            view("default/a", version=str(number), labels={"owner": owner})
            for number, owner in enumerate(("first", "second", "third"))
        )
        tell(changed(one, two))
        tell(changed(two, three))
        await asyncio.sleep(1.0)
        assert source.statistics().retrying == 1
        mapper.failing = {"third"}
        tell(changed(three, view("default/a", version="9", labels={"owner": "second"})))
        await asyncio.sleep(1.0)
        mapper.failing.clear()
        await asyncio.sleep(3600.0)

    reconciled, statistics = scenario(mapper, story)
    assert [request for _, request, _ in reconciled] == [
        "default/second",
        "default/third",
        "default/first",
        "default/second",
        "default/third",
    ]
    assert (statistics.retrying, statistics.given_up) == (0, 0)
    assert {cause for _, _, causes in reconciled for cause in causes.split("; ")} == {"Site default/a changed"}
