"""A service that allows so many calls a second, one that asks to wait, and what makes a retry come sooner."""

import asyncio
import itertools

import pytest
from patterns.test_external_source import Buckets, Stage, asked_by_a_reconcile, site

from samples.externals import settled
from samples.postgres import Postgres, managed, postgres
from samples.virtual_time import run_virtual
from steersman import Done, MergePatch, ObjectMeta
from steersman.kinds.core_v1 import Secret
from steersman.patterns import (
    Absent,
    CallLimit,
    External,
    Outputs,
    Present,
    ServiceBusy,
    StateMachine,
    Wait,
    finalizer,
    state,
)
from steersman.patterns.external import ServiceRefused
from steersman.testing import eventually

READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


class Account(Buckets):
    """Allows five calls in any second, and answers the others with 429."""

    def __init__(self, *, retry_after=1.0):
        super().__init__(takes=0.05)
        self.times, self.refused, self.retry_after = [], 0, retry_after

    async def _answer(self, call, key):
        now = asyncio.get_running_loop().time()
        if sum(now - each < 1.0 for each in self.times) >= 5:
            self.refused += 1
            raise ServiceBusy("429 Too Many Requests", retry_after=self.retry_after)
        self.times.append(now)
        await super()._answer(call, key)


def all_present(stage, names):
    return all(stage.external.ensure(site(name)) == Present("nginx") for name in names)


async def until(condition):
    async with asyncio.timeout(600):
        while not condition():  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("count", [15, 60])
def test_a_limit_is_kept_and_used(count):
    """15 accounts at 5 requests a second: no 429, and hardly longer than the calls need."""
    names = [f"s{number}" for number in range(count)]
    stage = Stage(Account(), limit=CallLimit(5), repeatable_create=True)

    async def scene():
        for name in names:
            stage.ensure(site(name))
        await until(lambda: all_present(stage, names))

    seconds = stage.play(scene)
    calls = len(stage.api.calls)
    assert (stage.api.refused, calls) == (0, 2 * count)
    assert seconds <= 1.2 * calls / 5


def test_a_limit_of_few_calls_still_makes_progress():
    """A lookup counts until the next call has its turn, however long that takes."""
    names = ["a", "b"]
    stage = Stage(Account(), limit=CallLimit(0.1), repeatable_create=True)

    async def scene():
        for name in names:
            stage.ensure(site(name))
        await until(lambda: all_present(stage, names))

    stage.play(scene)
    assert len(stage.api.calls) == 4


def test_externals_of_one_system_share_its_limit():
    account, limit = Account(), CallLimit(5)
    stages = [Stage(account, limit=limit, repeatable_create=True) for _ in range(3)]
    each_has = [[f"s{3 * number + position}" for number in range(3)] for position in range(3)]

    async def nested(rest):
        if rest:
            async with asyncio.TaskGroup() as tasks:
                started = asyncio.Event()
                source = tasks.create_task(rest[0].external.run(rest[0].emit, started.set))
                await started.wait()
                await nested(rest[1:])
                source.cancel()
            return
        for stage, names in zip(stages, each_has, strict=True):
            for name in names:
                stage.ensure(site(name))
        await until(lambda: all(all_present(stage, names) for stage, names in zip(stages, each_has, strict=True)))

    seconds = run_virtual(asked_by_a_reconcile(lambda: nested(stages)))[1]
    assert account.refused == 0
    assert seconds <= 1.2 * len(account.calls) / 5


def test_a_service_that_asks_to_wait_is_left_alone_by_all_objects():
    """Without a limit, too; and no condition becomes an error meanwhile."""
    stage = Stage(Account(retry_after=30.0), repeatable_create=True)
    names = [f"s{number}" for number in range(9)]
    seen = set()

    async def scene():
        for name in names:
            stage.ensure(site(name))
        for _ in range(200):
            await asyncio.sleep(1.0)
            seen.update(stage.external.ensure(site(name)).__class__.__name__ for name in names)
            if all_present(stage, names):
                return

    stage.play(scene)
    times = stage.api.times
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert max(gaps) >= 29.9
    assert seen == {"Working", "Present"}
    assert stage.api.refused <= 4 * 4  # at most what was in progress, in each round
    assert any("waits, because the service is busy: 429 Too Many Requests" in note for note in stage.notes)


def test_after_a_pause_calls_keep_their_distance():
    async def scene():
        limit, starts = CallLimit(10), []

        async def call():
            await limit.slot()
            starts.append(asyncio.get_running_loop().time())

        async with asyncio.TaskGroup() as tasks:
            for _ in range(10):
                tasks.create_task(call())
            await asyncio.sleep(0.25)
            limit.pause(5.0)
        return starts

    starts = run_virtual(scene())[0]
    assert len(starts) == 10
    assert starts[2] < 0.25
    assert starts[3] >= 5.25
    assert all(later - earlier > 0.099 for earlier, later in itertools.pairwise(starts))


def test_a_limit_needs_a_rate():
    with pytest.raises(ValueError, match="calls per second above 0, such as 5 \\(got 0\\)"):
        CallLimit(0)
    with pytest.raises(ValueError, match="retry_after must be a number of seconds"):
        ServiceBusy("no", retry_after=-1)


def test_the_object_says_where_to_look():
    where = []

    class Regional(Buckets):
        async def find(self, key, obj):
            where.append(("find", obj.spec.image))
            return await super().find(key, obj)

        async def delete(self, key, obj, found):
            where.append(("delete", obj.spec.image))
            await super().delete(key, obj, found)

    stage = Stage(Regional())

    async def scene():
        stage.ensure(site(image="north"))
        await asyncio.sleep(1)
        stage.remove(site(generation=2, image="north", deleting=True))
        await asyncio.sleep(1)

    stage.play(scene)
    assert where == [("find", "north"), ("find", "north"), ("delete", "north"), ("find", "north")]


def test_methods_without_the_object_still_work():
    """As before it was passed."""

    class Earlier:
        def __init__(self):
            self.buckets = {}

        async def find(self, key):
            return self.buckets.get(key.uid)

        async def create(self, key, obj):
            self.buckets[key.uid] = "made"
            return "made"

        async def delete(self, key, found):
            del self.buckets[key.uid]

    stage = Stage(Earlier())

    async def scene():
        stage.ensure(site())
        await asyncio.sleep(1)
        assert stage.external.ensure(site()) == Present("made")
        stage.remove(site(generation=2, deleting=True))
        await asyncio.sleep(1)
        assert stage.external.remove(site(generation=2, deleting=True)) == Absent()

    stage.play(scene)


class Locked:
    """Creates nothing before its credentials are right."""

    def __init__(self):
        self.made, self.tries = {}, 0
        self.unlocked = lambda obj: False

    async def find(self, key, obj):
        return self.made.get(key.uid)

    async def create(self, key, obj):
        self.tries += 1
        if not self.unlocked(obj):
            raise ServiceRefused("no credentials")
        self.made[key.uid] = "made"
        return "made"

    async def delete(self, key, obj, found):
        del self.made[key.uid]


class Things(StateMachine[Postgres]):
    def __init__(self, api):
        self.things = External(api, name="thing", late=0.1)

    def declare(self, controller):
        controller.watches(Secret, map=lambda secret: [secret.key] if secret.key.name == "pg" else [])

    @state(condition="ThingReady")
    async def thing(self, pg: Postgres, out: Outputs) -> Done | Wait:
        return settled(self.things.ensure(pg))

    @finalizer
    async def clean_up(self, pg: Postgres, out: Outputs) -> Done | Wait:
        return settled(self.things.remove(pg))


@pytest.mark.parametrize("what", ["annotation", "label", "spec", "Secret"])
async def test_a_change_of_what_the_reconcile_reads_is_tried_at_once(control_plane, clock, what):
    """The delay between retries has grown to minutes; the change may be what was missing."""
    api, client = Locked(), control_plane.client
    async with control_plane.running(managed(Things(api))):
        await client.create(postgres())
        await clock.advance(1200)
        tries = api.tries
        assert 5 < tries < 30
        api.unlocked = lambda obj: True
        match what:
            case "annotation":
                await client.patch(Postgres, "pg", MergePatch({"metadata": {"annotations": {"poke": "1"}}}))
            case "label":
                await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"poke": "1"}}}))
            case "spec":
                await client.patch(Postgres, "pg", MergePatch({"spec": {"version": "18"}}))
            case "Secret":
                await client.create(Secret(metadata=ObjectMeta(name="pg"), data={"token": b"right"}))
        await clock.advance(2)
        await eventually(client, Postgres, "pg", has=READY, within=1)
        assert api.tries == tries + 1


async def test_a_report_about_the_failure_is_no_change(control_plane, clock):
    """Else each failure, whose message differs, would be reported and retried at once, for ever."""
    api, client = Locked(), control_plane.client

    def refused(obj):
        raise RuntimeError(f"request {api.tries} failed")

    api.unlocked = refused
    async with control_plane.running(managed(Things(api))):
        await client.create(postgres())
        await clock.advance(600)
        assert api.tries < 25


def test_no_call_starts_once_the_controller_stops():
    """Its reconciles may take minutes to end; the calls that they ask for belong to the next process."""
    stage = Stage(Buckets(takes=1.0), look_again=5.0)

    async def scene():
        stage.api.buckets |= {"uid-home": "nginx", "uid-second": "nginx"}
        await stage.external.look(site())
        assert stage.ensure(site()) == Present("nginx")
        assert stage.external.looking(site("second"))
        await asyncio.sleep(0.5)
        stage.external.stop()
        began = asyncio.get_running_loop().time()
        stage.ensure(site("third"))
        await stage.external.look(site("third"))
        assert asyncio.get_running_loop().time() == began  # a reconcile does not wait for what never starts
        await stage.external.look(site("second"))  # this one runs, and ends
        assert stage.external.ensure(site("second")) == Present("nginx")
        await asyncio.sleep(60)

    stage.play(scene)
    assert stage.api.calls == ["find home", "find second"]


def test_a_lookup_whose_turn_comes_late_holds_up_no_reconcile():
    """At two calls a second, a hundred reconciles would otherwise wait for two seconds each."""
    stage, names = Stage(Account(), limit=CallLimit(2), repeatable_create=True), [f"s{n}" for n in range(100)]
    waits = []

    async def look(name):
        began = asyncio.get_running_loop().time()
        await stage.external.look(site(name))
        waits.append(asyncio.get_running_loop().time() - began)

    async def scene():
        await asyncio.gather(*map(look, names))
        assert sum(wait > 0 for wait in waits) <= 5
        # it does not count as a service that hangs: as soon as there is a turn, a reconcile waits for its lookup again
        await until(lambda: len(stage.api.calls) == len(names))
        stage.api.buckets["uid-last"] = "nginx"
        await stage.external.look(site("last"))
        assert stage.external.ensure(site("last")) == Present("nginx")

    stage.play(scene)
