"""An external in a controller of its own, without a state machine: causes, adoption after a restart, what is forgotten."""

from __future__ import annotations

import asyncio

import pytest

from samples.site import Site, site
from steersman import Done, Manager, MergePatch
from steersman.patterns import Absent, Broken, External, Present, Working
from steersman.patterns.machine.finalizers import add_finalizer, has_finalizer, remove_finalizer
from steersman.testing import eventually

FINALIZER = "example.com/bucket"


class Buckets:
    """An outside with ids of its own."""

    def __init__(self):
        self.buckets = {}
        self.made = 0
        self.looks = 0

    async def find(self, key, obj):
        self.looks += 1
        return self.buckets.get(key.uid)

    async def create(self, key, _):
        self.made += 1
        self.buckets[key.uid] = f"bucket-{self.made}"
        return self.buckets[key.uid]

    async def delete(self, key, obj, _):
        del self.buckets[key.uid]


def operator(buckets, *, on=True):
    """A manager whose reconciles keep the bucket's answer."""
    external = External(buckets, name="bucket", repeatable_create=True, late=0.0)
    answers = []

    async def reconcile(ctx, request):
        found = await ctx.client.find(Site, request.key)
        if found is None:
            external.forget(request.key)
            return Done()
        if found.deleting:
            if has_finalizer(found, FINALIZER) and external.remove(found) == Absent():
                await remove_finalizer(ctx.client, found, FINALIZER)
            return Done()
        found = await add_finalizer(ctx.client, found, FINALIZER)
        answers.append(external.ensure(found))
        return Done()

    manager = Manager(name="bucket-operator")
    builder = manager.controller(Site)
    (builder.on(external) if on else builder).run_with(reconcile)
    return manager, answers


async def test_results_are_causes_and_what_is_there_is_adopted(control_plane):
    client, buckets = control_plane.client, Buckets()
    manager, answers = operator(buckets)
    async with control_plane.running(manager) as running:
        made = await client.create(site("home", control_plane.namespace))
        await eventually(lambda: answers[-1:] == [Present("bucket-1")])
        await running.drained()
        causes = [str(cause) for _, record in running.runs for cause in record.causes]
        assert "external: bucket created" in causes
    assert isinstance(answers[0], Working)
    assert buckets.buckets == {made.uid: "bucket-1"}

    manager, answers = operator(buckets)
    async with control_plane.running(manager):
        await eventually(lambda: answers[-1:] == [Present("bucket-1")])
        assert buckets.made == 1
        await client.delete(Site, "home")
        await eventually(client, Site, "home", gone=True)
    assert buckets.buckets == {}


async def test_an_object_that_vanishes_without_a_finalizer_makes_no_more_effects(control_plane):
    client, buckets = control_plane.client, Buckets()
    manager, answers = operator(buckets)
    (external,) = manager.blueprints[0].sources

    async def refuse(key, obj):
        raise OSError("no route")

    buckets.create = refuse
    async with control_plane.running(manager) as running:
        await client.create(site("home", control_plane.namespace))
        await eventually(lambda: answers[-1:] == [Broken("creating bucket failed: OSError: no route")])
        await client.patch(Site, "home", MergePatch({"metadata": {"finalizers": None}}))
        await client.delete(Site, "home")
        await eventually(client, Site, "home", gone=True)
        await running.drained()
        await eventually(lambda: external.progress() == [])


async def test_a_controller_that_was_not_told_of_it_says_so(control_plane):
    manager, _ = operator(Buckets(), on=False)
    async with control_plane.running(manager, crashes=True) as running:
        await control_plane.client.create(site("home", control_plane.namespace))
        await eventually(lambda: any("write .on(bucket)" in record.last_error for _, record in running.runs))


class Odd(Exception):
    """A failure."""


class Panic(BaseException):
    """What extensions written in Rust raise."""


async def test_a_panic_fails_one_object_and_is_retried(control_plane):
    """It would end the calls of all objects, and no reconcile would wait for new ones."""
    client, buckets = control_plane.client, Buckets()
    manager, answers = operator(buckets)
    panics, find, create, both = [Panic("out of memory")], buckets.find, buckets.create, asyncio.Event()

    async def odd(key, obj):
        if key.key.name == "odd" and panics:
            await both.wait()
            raise panics.pop()
        return await find(key, obj)

    async def slow(key, obj):
        both.set()
        await eventually(lambda: not panics)
        return await create(key, obj)

    buckets.find, buckets.create = odd, slow
    async with control_plane.running(manager):
        for name in ("odd", "home"):
            await client.create(site(name, control_plane.namespace))
        await eventually(lambda: {Present("bucket-1"), Present("bucket-2")} <= set(answers))
        assert Broken("looking for bucket failed: Panic: out of memory") in answers


@pytest.mark.parametrize("fault", ["raises", "hangs"])
async def test_the_controller_outlives_its_outside(control_plane, fault):
    """Whatever an api does, other objects are reconciled, and the manager goes on."""
    client, buckets = control_plane.client, Buckets()
    manager, answers = operator(buckets)
    find = buckets.find

    async def odd(key, obj):
        if key.key.name == "odd":
            if fault == "raises":
                raise Odd
            await eventually(lambda: False, within=1000)
        return await find(key, obj)

    buckets.find = odd
    async with control_plane.running(manager):
        await client.create(site("odd", control_plane.namespace))
        await client.create(site("home", control_plane.namespace))
        await eventually(lambda: Present("bucket-1") in answers)
        assert len(buckets.buckets) == 1


@pytest.mark.asyncio(loop_scope="function")
async def test_a_clock_that_starts_after_the_external_skips_its_time_too(control_plane, clock):
    """The first `advance` comes when the external runs already: it must not compare two clocks."""
    buckets = Buckets()
    external = External(buckets, name="bucket", repeatable_create=True, late=0.0, look_again=60.0)

    async def reconcile(ctx, request):
        if (found := await ctx.client.find(Site, request.key)) is not None:
            external.ensure(found)
        return Done()

    manager = Manager(name="bucket-operator")
    manager.controller(Site).on(external).run_with(reconcile)
    async with control_plane.running(manager) as operator:
        await control_plane.client.create(site("home", control_plane.namespace))
        await operator.drained()
        assert buckets.made == 1
        buckets.buckets.clear()
        before = buckets.looks
        await clock.advance(61)
        assert buckets.made == 2
        assert buckets.looks - before <= 5, "it looks once a minute, not again and again"
