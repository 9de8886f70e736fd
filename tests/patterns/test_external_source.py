"""The source that works: calls that hang, raise and never end; workers that are bounded; controllers that stop."""

import asyncio
import logging
import re
from types import SimpleNamespace

import pytest

from samples.site import Site, SiteSpec
from samples.virtual_time import run_virtual
from steersman import Key, ObjectMeta
from steersman.aio import Supervisor
from steersman.controller import Cause, Causes, Context, Request
from steersman.controller.context import reconcile_in
from steersman.patterns.external import Absent, Broken, External, Present, ServiceRefused, Working


def site(name="home", generation=1, *, image="nginx", deleting=False):
    meta = ObjectMeta(name=name, namespace="web", uid=f"uid-{name}", generation=generation, resource_version="1")
    if deleting:
        from datetime import UTC, datetime

        meta.deletion_timestamp = datetime(2030, 1, 1, tzinfo=UTC)
    return Site(metadata=meta, spec=SiteSpec(image=image))


class Buckets:
    """An outside that finds by uid, slowly."""

    def __init__(self, takes=0.0):
        self.takes = takes
        self.buckets = {}
        self.calls = []
        self.busy = self.most = 0
        #: What happens instead of an answer, by the name of the call.
        self.instead = {}

    async def _answer(self, call, key):
        self.calls.append(f"{call} {key.key.name}")
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            await asyncio.sleep(self.takes)
            if (instead := self.instead.get(call)) is not None:
                await instead()
        finally:
            self.busy -= 1

    async def find(self, key, obj):
        await self._answer("find", key)
        return self.buckets.get(key.uid)

    async def create(self, key, obj):
        await self._answer("create", key)
        assert key.uid not in self.buckets
        self.buckets[key.uid] = obj.spec.image
        return obj.spec.image

    async def delete(self, key, obj, found):
        await self._answer("delete", key)
        del self.buckets[key.uid]


class Updatable(Buckets):
    def up_to_date(self, obj, found):
        return obj.spec.image == found

    async def update(self, key, obj, found):
        await self._answer("update", key)
        self.buckets[key.uid] = obj.spec.image
        return obj.spec.image


class Stage:
    """A source that runs, and a reconciler that asks again whenever there is news."""

    def __init__(self, api=None, **options):
        self.api = api or Buckets()
        self.external = External(self.api, name="bucket", **options)
        self.notes = []
        self.wishes = {}

    def emit(self, request, cause, priority):
        assert (cause.what, priority) == ("external", 0)
        self.notes.append(f"{request.key.name}: {cause.note}")
        if request.key in self.wishes:
            self.ask(request.key)

    def ask(self, key):
        method, obj = self.wishes[key]
        return getattr(self.external, method)(obj)

    def ensure(self, obj):
        self.wishes[obj.key] = ("ensure", obj)
        return self.ask(obj.key)

    def remove(self, obj):
        self.wishes[obj.key] = ("remove", obj)
        return self.ask(obj.key)

    def play(self, scene):
        """Run the source in virtual time for as long as the scene lasts."""

        async def main():
            async with Supervisor() as tasks:
                started = asyncio.Event()
                tasks.start(self.external.run(self.emit, started.set), name="source")
                await started.wait()
                await scene()
                tasks.cancel()

        return run_virtual(asked_by_a_reconcile(main))[1]


class Scene:
    """A scene as one long reconcile of objects that were created during the run."""

    def __init__(self, scene):
        self._scene = scene

    async def reconcile(self, ctx, request):
        await self._scene()


def asked_by_a_reconcile(scene, causes=None):
    names = ("home", "other", "third", "fourth", *(f"s{number}" for number in range(9)))
    new = Causes(tuple(Cause(what="object", created=f"uid-{name}") for name in names))
    ctx = Context(
        SimpleNamespace(pipeline=SimpleNamespace(epoch=0)),
        Request(Key("web", "home")),
        new if causes is None else causes,
        None,
        "scene",
    )
    return reconcile_in(ctx, Scene(scene))


def raising(error):
    async def instead():
        raise error

    return instead


async def for_ever():
    await asyncio.sleep(1e6)


def test_what_is_ensured_is_made_and_the_object_reconciled():
    stage = Stage(Buckets(takes=2.0))

    async def scene():
        assert stage.ensure(site()) == Working("bucket is being looked for")
        await asyncio.sleep(3)
        assert stage.external.ensure(site()) == Working("bucket is being created")
        await asyncio.sleep(2)
        assert stage.notes == ["home: bucket created"]
        assert stage.external.ensure(site()) == Present("nginx")
        assert stage.external.statistics().emitted == 1
        assert [(str(key), step) for key, step, _ in stage.external.progress()] == [("uid-home.1", "present")]
        stage.remove(site(generation=2, deleting=True))
        await asyncio.sleep(10)
        assert stage.external.remove(site(generation=2, deleting=True)) == Absent()

    stage.play(scene)
    assert stage.api.calls == ["find home", "create home", "find home", "delete home", "find home"]
    assert stage.notes == ["home: bucket created", "home: bucket deleted"]


def test_a_change_is_updated():
    stage = Stage(Updatable())

    async def scene():
        stage.ensure(site())
        await asyncio.sleep(1)
        stage.ensure(site(generation=2, image="caddy"))
        await asyncio.sleep(1)
        assert stage.external.ensure(site(generation=2, image="caddy")) == Present("caddy")

    stage.play(scene)
    assert stage.notes[-1] == "home: bucket updated"


def test_workers_are_bounded_and_one_object_has_one_call():
    stage = Stage(Buckets(takes=1.0), workers=3)

    async def scene():
        for number in range(9):
            stage.ensure(site(f"s{number}"))
        await asyncio.sleep(6.5)
        for number in range(9):
            assert stage.external.ensure(site(f"s{number}")) == Present("nginx")

    stage.play(scene)
    assert stage.api.most == 3


def test_an_answer_that_does_not_come_is_looked_for_before_anything_is_made_again():
    stage = Stage(timeout=5.0)

    async def made_but_silent():
        stage.api.buckets["uid-home"] = "nginx"
        await for_ever()

    async def scene():
        stage.api.instead["create"] = made_but_silent
        stage.ensure(site())
        await asyncio.sleep(5.1)
        assert stage.notes == ["home: creating bucket failed: TimeoutError: no answer within 5 s"]
        await asyncio.sleep(1)
        assert stage.external.ensure(site()) == Present("nginx")

    stage.play(scene)
    assert stage.api.calls == ["find home", "create home", "find home"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ServiceRefused("quota of 5 buckets reached"), "quota of 5 buckets reached"),
        (ConnectionResetError("peer"), "ConnectionResetError: peer"),
        (KeyError("size"), "KeyError: 'size'"),
        (ValueError(), "ValueError"),
        (asyncio.CancelledError(), "RuntimeError: create cancelled itself"),
        (TimeoutError("theirs"), "TimeoutError: theirs"),
        (ExceptionGroup("several", [ValueError("a")]), "ExceptionGroup: several (1 sub-exception)"),
    ],
)
def test_whatever_is_raised_is_reported_and_tried_again(error, words):
    stage = Stage(late=0.0)

    async def scene():
        stage.api.instead["create"] = raising(error)
        stage.ensure(site())
        stage.ensure(site("other"))
        await asyncio.sleep(0.1)
        assert stage.external.ensure(site()) == Broken(f"creating bucket failed: {words}")
        assert words in stage.external.statistics().last_failure
        stage.api.instead.clear()
        await asyncio.sleep(5)
        assert stage.external.ensure(site()) == stage.external.ensure(site("other")) == Present("nginx")

    stage.play(scene)


def test_an_error_whose_text_raises_is_an_error():
    class OddError(Exception):
        def __str__(self):
            raise ValueError

    stage = Stage()

    async def scene():
        stage.api.instead["find"] = raising(OddError())
        stage.ensure(site())
        await asyncio.sleep(0.1)
        assert stage.external.ensure(site()) == Broken("looking for bucket failed: OddError: (its text cannot be read)")

    # the log cannot print it either, and says so on its own
    logging.disable(logging.CRITICAL)
    try:
        stage.play(scene)
    finally:
        logging.disable(logging.NOTSET)


def test_create_must_give_back_what_it_made():
    class Silent(Buckets):
        async def create(self, key, obj):
            await super().create(key, obj)

    stage = Stage(Silent())

    async def scene():
        stage.ensure(site())
        await asyncio.sleep(0.1)
        words = "creating bucket failed: TypeError: Silent.create returned None; return what find would return"
        assert stage.external.ensure(site()) == Broken(words)
        await asyncio.sleep(1)
        assert stage.external.ensure(site()) == Present("nginx")  # it is there, nevertheless

    stage.play(scene)


def test_a_comparison_that_raises_is_reported():
    class Odd(Buckets):
        def up_to_date(self, obj, found):
            return found["size"] == 1

    stage = Stage(Odd())

    async def scene():
        stage.ensure(site())
        await asyncio.sleep(0.1)
        answer = stage.external.ensure(site())
        assert isinstance(answer, Broken)
        assert answer.message.startswith("comparing bucket with the object failed: TypeError: ")

    stage.play(scene)


def test_a_call_that_cannot_be_cancelled_holds_up_its_own_object_alone(caplog):
    stage = Stage(workers=1, timeout=5.0)
    release = None

    async def stubborn():
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async def scene():
        nonlocal release
        release = asyncio.Event()
        stage.api.instead["find"] = stubborn
        stage.ensure(site())
        await asyncio.sleep(1)
        stage.api.instead.clear()
        stage.ensure(site("other"))
        await asyncio.sleep(20)
        assert stage.external.ensure(site("other")) == Present("nginx")
        assert stage.external.ensure(site()) == Working("bucket is being looked for")
        assert stage.api.calls.count("find home") == 1
        release.set()
        await asyncio.sleep(20)
        assert stage.external.ensure(site()) == Present("nginx")

    stage.play(scene)
    assert "has not ended after its cancellation" in caplog.text


def test_when_the_controller_stops_calls_are_cancelled_and_a_second_run_looks_first():
    stage = Stage(Buckets(takes=10.0), timeout=60.0)

    async def first():
        stage.ensure(site())
        await asyncio.sleep(15)  # in the middle of the creation

    stage.play(first)
    assert stage.api.calls == ["find home", "create home"]
    assert stage.api.busy == 0
    assert stage.api.buckets == {}
    assert not stage.external.statistics().started

    async def second():
        assert stage.external.progress() == []
        assert stage.ensure(site()) == Working("bucket is being looked for")
        await asyncio.sleep(25)
        assert stage.external.ensure(site()) == Present("nginx")

    stage.play(second)
    assert stage.api.calls[2:] == ["find home", "create home"]


def test_a_deleted_bucket_is_made_again():
    stage = Stage(look_again=60.0)

    async def scene():
        stage.ensure(site())
        await asyncio.sleep(70)
        stage.api.buckets.clear()
        await asyncio.sleep(60)
        assert stage.notes == ["home: bucket created", "home: bucket is gone", "home: bucket created"]
        assert stage.api.buckets

    stage.play(scene)


def test_what_was_made_is_there_until_a_list_cannot_lag_any_more():
    stage = Stage(late=30.0)

    async def scene():
        stage.ensure(site())
        await asyncio.sleep(5)
        stage.api.buckets.clear()  # or a list that does not show it yet: both look the same
        stage.ensure(site(generation=2))
        await asyncio.sleep(5)
        assert stage.external.ensure(site(generation=2)) == Present("nginx")
        assert stage.api.calls == ["find home", "create home", "find home"]
        await asyncio.sleep(25)
        assert stage.api.calls[3:] == ["find home", "create home"]

    stage.play(scene)


def test_what_was_made_and_never_found_is_not_gone_before_it_was_tried_to_delete_it():
    stage = Stage(late=30.0)

    async def scene():
        stage.ensure(site())
        await asyncio.sleep(5)
        stage.api.buckets.clear()
        stage.api.instead["delete"] = raising(OSError("no such bucket"))
        stage.remove(site())
        await asyncio.sleep(5)
        assert stage.ask(site().key) == Broken("deleting bucket failed: OSError: no such bucket")
        await asyncio.sleep(60)
        assert stage.ask(site().key) == Absent()

    stage.play(scene)


def test_a_look_waits_until_it_is_known_what_is_there():
    stage = Stage(Buckets(takes=1.0))

    async def scene():
        stage.api.buckets["uid-home"] = "nginx"
        await stage.external.look(site())
        assert stage.external.ensure(site()) == Present("nginx")
        await stage.external.look(site("other"))
        assert stage.external.ensure(site("other")) == Working("bucket is being created")

    stage.play(scene)
    assert stage.notes == []


def test_a_look_does_not_wait_for_ever_nor_for_what_fails():
    stage = Stage(timeout=200.0)
    loop = {}

    async def scene():
        loop["time"] = asyncio.get_running_loop().time
        stage.api.instead["find"] = raising(OSError("down"))
        await stage.external.look(site("other"))
        assert loop["time"]() == 0.0
        assert stage.external.ensure(site("other")) == Broken("looking for bucket failed: OSError: down")
        stage.api.takes, stage.api.instead = 100.0, {}
        await stage.external.look(site(), within=3.0)
        assert loop["time"]() == 3.0
        # no call waits again as long as nothing is answered, also not for others
        await stage.external.look(site(), within=3.0)
        await stage.external.look(site("third"), within=3.0)
        assert loop["time"]() == 3.0
        await asyncio.sleep(100)
        stage.api.takes = 1.0
        await stage.external.look(site("fourth"), within=3.0)
        assert loop["time"]() == 104.0

    stage.play(scene)


def test_an_object_that_is_gone_is_forgotten():
    stage = Stage(Buckets(takes=1.0))

    async def scene():
        stage.external.ensure(site())
        await asyncio.sleep(0.5)
        stage.external.forget(Key("web", "home"))
        await asyncio.sleep(10)

    stage.play(scene)
    assert stage.api.calls == ["find home"]
    stage.external.forget(Key("web", "home"))  # nothing runs: nothing to forget


def test_the_end_of_the_source_ends_a_look():
    stage = Stage(Buckets(takes=100.0), timeout=200.0)

    async def main():
        async with Supervisor() as tasks:
            async with Supervisor() as source:
                source.start(stage.external.run(stage.emit, lambda: None), name="source")
                await asyncio.sleep(0)
                look = tasks.start(stage.external.look(site(), within=1000.0), name="look")
                await asyncio.sleep(1)
                source.cancel()
            await look

    assert run_virtual(asked_by_a_reconcile(main))[1] == 1.0


# what is written wrongly


def test_asking_without_a_controller_says_what_to_write():
    with pytest.raises(RuntimeError) as raised:
        Stage().external.ensure(site())
    assert str(raised.value) == (
        "bucket.ensure(): no controller runs this external, so nothing would happen; write"
        " .on(bucket), as in manager.controller(Kind).on(bucket).run_with(reconcile), or make it an"
        " attribute of the StateMachine that uses it"
    )


def test_ensuring_for_an_object_that_goes_is_refused():
    stage = Stage()

    async def scene():
        with pytest.raises(ValueError, match=r"bucket.ensure\(Site web/home\): the object is being deleted, so a new"):
            stage.external.ensure(site(deleting=True))
        unread = site()
        unread.metadata.uid = None
        with pytest.raises(ValueError, match="the object has no UID, so it was not read from a server"):
            stage.external.ensure(unread)

    stage.play(scene)


def test_an_external_runs_for_one_controller():
    stage = Stage()

    async def scene():
        with pytest.raises(
            RuntimeError,
            match=r"external bucket already runs in another controller.*whose __init__ creates its own External",
        ):
            await stage.external.run(stage.emit, lambda: None)

    stage.play(scene)


def test_an_api_is_checked_when_it_is_given():
    class Nothing: ...

    class Blocking(Buckets):
        def find(self, key): ...

    class Halved(Buckets):
        async def update(self, key, obj, found): ...

    class Asking(Buckets):
        async def up_to_date(self, obj, found): ...

    expected = {
        Nothing(): "External(name='b'): Nothing has no method find; write async def find(self, key, obj)",
        Buckets: "External(name='b'): Buckets is a class; pass an instance: External(Buckets(), ...)",
        Blocking(): "External(name='b'): Blocking.find is not async; write async def find(self, key, obj), and call blocking "
        "code with await asyncio.to_thread(...)",
        Halved(): (
            "External(name='b'): Halved has update but no up_to_date, which decides when to call it;"
            " write def up_to_date(self, obj, found) -> bool"
        ),
        Asking(): (
            "External(name='b'): Asking.up_to_date is async, but it must compare without IO; write def"
            " up_to_date(self, obj, found), and let find return what it needs"
        ),
    }
    for api, words in expected.items():
        with pytest.raises(TypeError) as raised:
            External(api, name="b")
        assert str(raised.value) == words


def test_options_are_checked():
    for options, words in (
        ({"name": ""}, "needs a name"),
        ({"workers": 0}, "workers must be at least 1 (got 0)"),
        ({"timeout": 0}, "timeout must be a number of seconds above 0 (got 0)"),
        ({"debounce": -1}, "debounce must be a number of seconds, 0 or more (got -1)"),
        ({"look_again": float("inf")}, "look_again must be a number of seconds above 0 (got inf)"),
    ):
        with pytest.raises(ValueError, match=re.escape(words)):
            External(Buckets(), **({"name": "b"} | options))


@pytest.mark.parametrize("running", ["create", "find"])
def test_a_call_in_progress_ends_before_the_controller_does(running):
    """A creation that is cut off is unknown: the next process has to wait before it trusts that nothing was made."""
    stage = Stage(Buckets(takes=2.0))

    async def main():
        async with Supervisor() as source:
            source.start(stage.external.run(stage.emit, lambda: None), name="source")
            await asyncio.sleep(0)
            stage.ensure(site())
            await asyncio.sleep(3.0 if running == "create" else 1.0)
            await stage.external.finish()
            source.cancel()

    run_virtual(asked_by_a_reconcile(main))
    # no other call follows, not even the creation after the lookup
    assert stage.api.calls == (["find home", "create home"] if running == "create" else ["find home"])
    assert stage.api.busy == 0
    assert bool(stage.api.buckets) is (running == "create")
