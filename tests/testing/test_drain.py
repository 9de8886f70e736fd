"""Until nothing is left to do, or what keeps running and why."""

from __future__ import annotations

import asyncio
import re

import pytest

from samples.page_operator import Page, manager, page
from steersman import Done, Key, Manager, MergePatch, ObjectMeta, RequeueAfter
from steersman.controller import ChannelSource
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import External, Present
from steersman.testing.drain import NotDrained, drained


async def report(control_plane, operator, *, within: float) -> list[str]:
    with pytest.raises(NotDrained) as failed:
        await operator.drained(within=within)
    return str(failed.value).replace(control_plane.namespace, "NS").splitlines()


async def test_plain_asserts_are_enough_afterwards(control_plane):
    client = control_plane.client
    async with control_plane.running(manager) as operator:
        for number in range(20):
            await client.create(page(f"page-{number}"))
        await operator.drained()
        assert len(await client.list(ConfigMap, namespace=control_plane.namespace)) == 20
        assert all(each.status.ready for each in await client.list(Page, namespace=control_plane.namespace))
        runs = len(operator.runs)
        await operator.drained()
        assert len(operator.runs) == runs
        # damage is noticed and mended before it returns, also what the garbage collector follows up with
        await client.delete(ConfigMap, "page-3")
        await client.patch(ConfigMap, "page-4", MergePatch({"data": {"title": "vandalism"}}))
        await client.delete(Page, "page-5")
        await operator.drained()
        assert (await client.get(ConfigMap, "page-3")).data == {"title": "hello"}
        assert (await client.get(ConfigMap, "page-4")).data == {"title": "hello"}
        assert await client.find(ConfigMap, "page-5") is None


async def test_without_an_operator_it_waits_for_the_control_plane(control_plane):
    client = control_plane.client
    owner = await client.create(ConfigMap(metadata=ObjectMeta(name="owner")))
    for number in range(10):
        await client.apply(ConfigMap(metadata=ObjectMeta(name=f"child-{number}")), owner=owner)
    await client.delete(owner)
    await control_plane.drained()
    assert len(await client.list(ConfigMap, namespace=control_plane.namespace)) == 0


async def test_a_later_look_is_not_waited_for(control_plane):
    """What asks to run in an hour has nothing to do now."""
    async with control_plane.running(manager) as operator:
        await control_plane.client.create(page(behavior="hourly"))
        await operator.drained()
        assert operator.runs_of("home")[-1][1].result == "requeue_after"


class SlowCloud:
    """Takes half a second for a call."""

    def __init__(self):
        self.things = {}

    async def find(self, key, obj):
        return self.things.get(key.uid)

    async def create(self, key, obj):
        await asyncio.sleep(0.5)
        self.things[key.uid] = "thing"
        return "thing"

    async def delete(self, key, obj, found):
        await asyncio.sleep(0.5)
        del self.things[key.uid]


async def test_a_call_of_an_external_is_waited_for(control_plane):
    """Else a test would assert that nothing was written, half a second before it is."""
    cloud, answers = SlowCloud(), []
    things = External(cloud, name="thing")

    async def reconcile(ctx, request):
        found = await ctx.client.find(ConfigMap, request.key)
        if found is not None:
            answers.append(things.ensure(found))
        return Done()

    operator = Manager(name="things")
    operator.controller(ConfigMap).on(things).run_with(reconcile)
    async with control_plane.running(operator) as running:
        await control_plane.client.create(ConfigMap(metadata=ObjectMeta(name="home")))
        await running.drained()
        assert answers[-1] == Present("thing")


@pytest.mark.parametrize("options", [{"debounce": 0.4}, {"debounce": 0.2, "max_delay": 0.4}])
async def test_an_event_that_is_held_back_is_waited_for(control_plane, options):
    source, runs = ChannelSource("bell", **options), []

    async def reconcile(ctx, request):
        runs.append(str(ctx.causes))
        return Done()

    operator = Manager(name="bells")
    operator.controller(ConfigMap).on(source).run_with(reconcile)
    async with control_plane.running(operator) as running:
        await running.drained()
        source.send(Key(control_plane.namespace, "home"), "first")
        source.send(Key(control_plane.namespace, "home"), "second")
        await asyncio.sleep(0.05)
        source.send(Key(control_plane.namespace, "home"), "third")
        await running.drained()
        assert "third" in runs[-1]


async def test_a_key_that_polls_and_finds_nothing_to_do_is_no_work(control_plane):
    polls = []

    async def reconcile(ctx, request):
        polls.append(request)
        return RequeueAfter(0.5)

    operator = Manager(name="pollers")
    operator.controller(ConfigMap).run_with(reconcile)
    async with control_plane.running(operator) as running:
        await control_plane.client.create(ConfigMap(metadata=ObjectMeta(name="home")))
        await running.drained(within=8)
        assert len(polls) >= 2  # it was given the chance to do something


async def test_polls_between_two_looks_are_no_work(control_plane):
    """On kube-apiserver, a look takes as long as the pause between the polls of several keys."""
    polled = asyncio.Event()

    async def reconcile(ctx, request):
        polled.set()
        return RequeueAfter(0.1)

    async def settled():
        polled.clear()
        await polled.wait()

    operator = Manager(name="pollers")
    operator.controller(ConfigMap).run_with(reconcile)
    async with control_plane.running(operator):
        await control_plane.client.create(ConfigMap(metadata=ObjectMeta(name="home")))
        await drained(control_plane.client, settled, within=8)


async def test_a_reconcile_that_fails_is_named_with_its_error(control_plane, clock):
    async with control_plane.running(manager) as operator:
        await control_plane.client.create(page(behavior="fail"))
        lines = await report(control_plane, operator, within=10)
    assert lines[0] == "after 10 s there is still work to do:"
    assert "    controller page: 1 key to be retried" in lines
    assert re.fullmatch(
        r"controller page reconciled NS/home \d+ times meanwhile, the last time because Page NS/home appeared "
        r"\(generation 1\); retry: ConnectionError: the printer is on fire; it failed: ConnectionError: the printer is on "
        r"fire",
        lines[-1],
    )


async def test_a_reconcile_that_always_asks_again_is_named(control_plane, clock):
    async with control_plane.running(manager) as operator:
        await control_plane.client.create(page(behavior="requeue"))
        lines = await report(control_plane, operator, within=30)
    assert re.fullmatch(
        r"controller page reconciled NS/home \d+ times meanwhile, the last time because Page NS/home appeared "
        r"\(generation 1\); requeue; it returned Requeue\(\)",
        lines[-1],
    )
