"""Until nothing is left to do, or what keeps running and why."""

from __future__ import annotations

import re

import pytest

from samples.page_operator import Page, manager, page
from steersman import MergePatch, ObjectMeta
from steersman.kinds.core_v1 import ConfigMap
from steersman.testing.drain import NotDrained


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
