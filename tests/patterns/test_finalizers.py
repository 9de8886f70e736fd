"""Finalizers come and go one by one, also beside other writers: on both servers."""

import asyncio
from datetime import UTC, datetime

import pytest
from patterns.declaring import own

from samples.site import Site
from steersman import Done, Manager, MergePatch
from steersman.aio import Supervisor
from steersman.errors import Conflict
from steersman.patterns.machine.finalizers import add_finalizer, has_finalizer, remove_finalizer

OURS, THEIRS = "ours.test.dev/clean-up", "theirs.test.dev/clean-up"


@pytest.fixture
async def home(client, sites, namespace):
    return await own(client, "home", namespace)


async def finalizers(client, obj):
    return (await client.get(Site, obj.key)).metadata.finalizers or []


async def test_one_is_added_and_removed_beside_others(client, home):
    ours = await add_finalizer(client, home, OURS)
    assert has_finalizer(ours, OURS)
    both = await add_finalizer(client, ours, THEIRS)
    assert both.metadata.finalizers == [OURS, THEIRS]
    assert await add_finalizer(client, both, OURS) is both  # nothing is sent
    await remove_finalizer(client, both, OURS)
    assert await finalizers(client, home) == [THEIRS]
    last = await client.get(Site, home.key)
    await remove_finalizer(client, last, OURS)
    await remove_finalizer(client, last, THEIRS)
    assert await finalizers(client, home) == []


async def test_an_overtaken_writer_changes_nothing(client, home):
    stale = home
    await add_finalizer(client, home, THEIRS)
    with pytest.raises(
        Conflict, match=f"add finalizer {OURS} to Site .*/home: its finalizers have changed since it was read"
    ):
        await add_finalizer(client, stale, OURS)
    both = await add_finalizer(client, await client.get(Site, home.key), OURS)
    await remove_finalizer(client, both, THEIRS)
    with pytest.raises(Conflict):
        await remove_finalizer(client, both, OURS)  # at another place now
    assert await finalizers(client, home) == [OURS]
    # what does not concern finalizers is no conflict
    ours = await client.get(Site, home.key)
    await client.patch(Site, home.key, MergePatch({"spec": {"replicas": 3}}))
    await remove_finalizer(client, ours, OURS)
    assert await finalizers(client, home) == []


async def test_a_namesake_that_came_after_is_not_touched(client, home, namespace):
    held = await add_finalizer(client, home, OURS)
    await client.delete(home)
    await remove_finalizer(client, held, OURS)
    await remove_finalizer(client, held, OURS)  # it is gone: nothing to remove
    successor = await add_finalizer(client, await own(client, "home", namespace), OURS)
    for late in (add_finalizer(client, home, THEIRS), remove_finalizer(client, held, OURS)):
        with pytest.raises(Conflict):
            await late
    assert await finalizers(client, successor) == [OURS]


async def test_an_object_that_is_being_deleted_takes_none(client, home):
    before = await add_finalizer(client, home, THEIRS)
    await client.delete(home)
    with pytest.raises(Conflict, match="it is being deleted"):
        await add_finalizer(client, before, OURS)
    with pytest.raises(
        ValueError, match=f"is being deleted, so finalizer {OURS} cannot be added; there is nothing to clean up"
    ):
        await add_finalizer(client, await client.get(Site, home.key), OURS)
    await remove_finalizer(client, before, THEIRS)
    with pytest.raises(Conflict, match="it is gone"):
        await add_finalizer(client, home, OURS)


async def test_a_deletion_that_was_taken_back_keeps_its_guard(client, home):
    """As on a server restored from a backup of before the deletion: the object there has the same uid and finalizer."""
    held = await add_finalizer(client, home, OURS)
    held.metadata.deletion_timestamp = datetime(2026, 1, 2, tzinfo=UTC)
    with pytest.raises(Conflict, match="a restored server does not know of its deletion"):
        await remove_finalizer(client, held, OURS)
    assert await finalizers(client, home) == [OURS]
    await client.delete(home)
    assert await remove_finalizer(client, await client.get(Site, home.key), OURS) is not None
    assert await client.find(Site, home.key) is None


class Fighter:
    """A controller that adds its finalizer to every Site, and removes it when the Site goes."""

    def __init__(self, client, namespace, finalizer, worked):
        self._namespace, self._finalizer, self._worked = namespace, finalizer, worked
        self.cleaned = set()
        self.manager = Manager(client.with_transport(lambda inner: inner, field_manager=finalizer))
        self.manager.controller(Site, name=finalizer.partition(".")[0]).run_with(self)

    async def reconcile(self, ctx, request):
        found = await ctx.client.find(Site, request.key)
        if found is None or request.key.namespace != self._namespace:
            pass
        elif not found.deleting:
            await add_finalizer(ctx.client, found, self._finalizer)
        elif has_finalizer(found, self._finalizer):
            self.cleaned.add(found.metadata.uid)
            await remove_finalizer(ctx.client, found, self._finalizer)
        self._worked.set()
        return Done()


async def test_two_controllers_that_fight_lose_nothing(client, sites, namespace):
    """Both add and remove their own, at the same time, on the same objects: none is lost, and all objects go."""
    worked = asyncio.Event()
    fighters = [Fighter(client, namespace, name, worked) for name in (OURS, THEIRS)]

    async def until(question):
        while True:
            worked.clear()
            if question(await listed(client, namespace)):
                return
            await worked.wait()

    async with Supervisor() as tasks, asyncio.timeout(30):
        for fighter in fighters:
            tasks.start(fighter.manager.run(), name="manager")
        made = [await own(client, f"s{number}", namespace) for number in range(12)]
        await until(lambda found: all(len(each.metadata.finalizers or ()) == 2 for each in found))
        for each in made:
            await client.delete(each)
        await until(lambda found: not found)
        for fighter in fighters:
            fighter.manager.stop()
    assert fighters[0].cleaned == fighters[1].cleaned == {each.metadata.uid for each in made}


async def listed(client, namespace):
    return await client.list(Site, namespace=namespace)


async def test_an_object_that_was_deleted_before_the_first_reconcile(client, home):
    """Nothing was done for it, so nothing of ours is on it, and another's finalizer stays."""
    await add_finalizer(client, home, THEIRS)
    await client.delete(home)
    seen = asyncio.get_running_loop().create_future()

    async def reconcile(ctx, request):
        if request.key == home.key and not seen.done():
            found = await ctx.client.get(Site, request.key)
            await remove_finalizer(ctx.client, found, OURS)
            seen.set_result((found.deleting, found.metadata.finalizers))
        return Done()

    manager = Manager(client)
    manager.controller(Site).run_with(reconcile)
    async with Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        async with asyncio.timeout(60):
            assert await seen == (True, [THEIRS])
        manager.stop()
    assert await finalizers(client, home) == [THEIRS]
    await remove_finalizer(client, await client.get(Site, home.key), THEIRS)
