"""Deletions that do not end: the metric shows those of the objects that the program manages, and work for them is warned of."""

import asyncio
from contextlib import asynccontextmanager

from samples.eventually import eventually
from samples.site import Site, site
from steersman import Done, Manager, MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.cache import StoredObject, oldest_deletion
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import Key, parse_time
from steersman.telemetry import expose
from steersman.testing import eventually as appears

HELD = "test.steersman.dev/held"
SITES, CONFIG_MAPS = str(Site.gvk()), str(ConfigMap.gvk())


@asynccontextmanager
async def running(client, namespace):
    """A manager of Sites with a ConfigMap each; yields a function for the value of the metric."""

    async def reconcile(ctx, request):
        found = await ctx.client.find(Site, request.key)
        if found is not None and not found.deleting:
            name = ObjectMeta(name=found.key.name, namespace=namespace, finalizers=[HELD])
            await ctx.client.apply(ConfigMap(metadata=name), owner=found)
        return Done()

    manager = Manager(client, name="sites", namespaces=(namespace,))
    manager.controller(Site).owns(ConfigMap).run_with(reconcile)

    def oldest(kind):
        lines = expose(manager.registry)[1].decode().splitlines()
        series = f'steersman_oldest_deletion_seconds{{kind="{kind}"}} '
        return next((float(line.removeprefix(series)) for line in lines if line.startswith(series)), None)

    async with asyncio.timeout(60), Supervisor() as tasks:
        tasks.start(manager.run(signals=False), name="manager")
        yield oldest
        manager.stop()


async def released(client, kind, name):
    await client.patch(kind, name, MergePatch({"metadata": {"finalizers": None}}))


async def test_a_deletion_that_does_not_end_has_a_growing_age(api_server, sites, namespace):
    async with (
        api_server.client(field_manager="sites", namespace=namespace) as client,
        running(client, namespace) as oldest,
    ):
        held = site("home", namespace)
        held.metadata.finalizers = [HELD]
        await client.create(held)
        await appears(client, ConfigMap, "home")
        await eventually(lambda: (oldest(SITES), oldest(CONFIG_MAPS)) == (0, 0))
        await client.delete(Site, "home")
        await eventually(lambda: oldest(SITES) > 0)
        before = oldest(SITES)
        await eventually(lambda: oldest(SITES) > before)
        assert oldest(CONFIG_MAPS) == 0
        await client.delete(ConfigMap, "home")
        await eventually(lambda: oldest(CONFIG_MAPS) > 0)
        await released(client, Site, "home")
        await eventually(lambda: oldest(SITES) == 0)
        await released(client, ConfigMap, "home")
        await eventually(lambda: oldest(CONFIG_MAPS) == 0)


async def test_objects_of_other_programs_do_not_count(api_server, sites, namespace):
    """A program that watches all ConfigMaps of a cluster is not to blame for those that others delete."""
    async with (
        api_server.client(field_manager="others", namespace=namespace) as others,
        api_server.client(field_manager="sites", namespace=namespace) as client,
        running(client, namespace) as oldest,
    ):
        await others.create(ConfigMap(metadata=ObjectMeta(name="theirs", namespace=namespace, finalizers=[HELD])))
        await others.delete(ConfigMap, "theirs")
        await client.create(site("home", namespace))
        await appears(client, ConfigMap, "home")
        await client.delete(ConfigMap, "home")
        # then the cache has also seen the earlier deletion
        await eventually(lambda: oldest(CONFIG_MAPS))
        await released(client, ConfigMap, "home")
        await eventually(lambda: oldest(CONFIG_MAPS) == 0)
        await released(others, ConfigMap, "theirs")


def test_the_oldest_one_counts_and_a_strange_one_hides_no_other():
    def stored(metadata):
        return StoredObject(Key("", "x"), "1", b'{"metadata":%b}' % metadata, deleting=True)

    times = [b'{"deletionTimestamp":"2030-01-01T00:00:%02dZ"}' % second for second in (5, 3, 4)]
    found = oldest_deletion(stored(each) for each in (b"{}", b'{"deletionTimestamp":7}', *times))
    assert found == parse_time("2030-01-01T00:00:03Z")
    assert oldest_deletion([]) is None
    assert oldest_deletion([stored(b'{"deletionTimestamp":"soon"}')]) is None


async def test_work_for_an_owner_that_ends_is_warned_of(api_server, sites, namespace):
    """On the bare runtime, a reconcile may forget to look at ``.deleting``: it would work for the garbage collector."""
    warned, worked = [], asyncio.Event()

    async def reconcile(ctx, request):
        owner = await ctx.client.find(Site, request.key)
        if owner is not None:
            child = ConfigMap(
                metadata=ObjectMeta(name="child", namespace=namespace), data={"late": str(owner.deleting)}
            )
            await ctx.client.apply(child, owner=owner)
            if owner.deleting:
                child.data = {"later": "True"}
                await ctx.client.apply(child, owner=owner)
                worked.set()
            else:
                assert warned == []
        return Done()

    async with api_server.client(field_manager="sites", namespace=namespace, on_warning=warned.append) as client:
        manager = Manager(client, name="sites", namespaces=(namespace,))
        manager.controller(Site).run_with(reconcile)
        async with asyncio.timeout(60), Supervisor() as tasks:
            tasks.start(manager.run(signals=False), name="manager")
            held = site("home", namespace)
            held.metadata.finalizers = [HELD]
            await client.create(held)
            await appears(client, ConfigMap, "child")
            await client.delete(Site, "home")
            await worked.wait()
            manager.stop()
        await released(client, Site, "home")
    (warning,) = map(str, warned)
    assert warning.startswith(
        f"apply ConfigMap {namespace}/child: Site {namespace}/home is being deleted, and the garbage"
    )
