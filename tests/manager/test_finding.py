"""Finding objects: by indexes that a manager declares, by owner, and in the namespaces that it is for."""

import asyncio

import pytest

from samples.site import GROUP, Site, site
from steersman import Kind, MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.cache import KindOptions, UnknownIndex, contents
from steersman.client import RateLimit
from steersman.controller import Done, cached_kinds
from steersman.errors import NotCached
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret
from steersman.manager import Manager
from steersman.telemetry import expose


@pytest.fixture
async def client(api_server, namespace, sites):
    limit = RateLimit(per_second=10_000, burst=10_000)
    async with api_server.client(field_manager="finding", namespace=namespace, rate_limit=limit) as client:
        yield client


@pytest.fixture
async def elsewhere(client):
    """A namespace that the manager is not for."""
    made = await client.create(Namespace(metadata=ObjectMeta(generate_name="elsewhere-")))
    yield made.key.name
    await client.delete(made)


def images(found):
    return [found.spec.image]


def reconciler_for(manager, scenario, *, until=1):
    """A reconcile that plays a scenario and stops the manager after so many; what it was called for, or failed with."""
    seen = []

    async def reconcile(ctx, request):
        try:
            await scenario(ctx, request)
            seen.append(request.key)
        except Exception as error:  # noqa: BLE001 - the test raises it
            seen.append(error)
        if len(seen) >= until:
            manager.stop()
        return Done()

    return seen, reconcile


async def run(manager):
    async with asyncio.timeout(60), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")


async def test_a_reconcile_finds_by_index_and_by_owner_what_it_just_wrote(client, namespace):
    manager = Manager(client, namespaces=[namespace])
    manager.index(Site, "image", images)
    manager.index(ConfigMap, "value", lambda config: (config.data or {}).values())
    own = await client.create(site("own", namespace, image="nginx"))

    async def scenario(ctx, request):
        assert [each.key for each in await ctx.client.by_index(Site, "image", "nginx")] == [own.key]
        assert len(await ctx.client.by_index(Site, "image", "nginx", namespace=namespace)) == 1
        assert len(await ctx.client.by_index(Site, "image", "other")) == 0
        for value in range(20):
            child = ConfigMap(metadata=ObjectMeta(name="child", namespace=namespace), data={"value": str(value)})
            await ctx.client.apply(child, owner=own)
            (found,) = await ctx.client.by_index(ConfigMap, "value", str(value))
            assert (found.data, found.key.name) == ({"value": str(value)}, "child")
            assert len(await ctx.client.by_index(ConfigMap, "value", str(value - 1))) == 0
            (owned,) = await ctx.client.owned_by(ConfigMap, own)
            assert owned.data == found.data
        await ctx.client.delete(ConfigMap, f"{namespace}/child")
        assert len(await ctx.client.owned_by(ConfigMap, own.uid)) == 0
        with pytest.raises(UnknownIndex, match=r"Site has no index 'color'; .*manager.index\(Site, .*Declared: image"):
            await ctx.client.by_index(Site, "color", "red")
        with pytest.raises(NotCached, match=r"Site: index 'image' exists only in the cache.*without \.live"):
            await ctx.client.live.by_index(Site, "image", "nginx")
        with pytest.raises(ValueError, match="ConfigMap: the owner has no uid; create it before you read what it owns"):
            await ctx.client.owned_by(ConfigMap, site("new", namespace))

    seen, reconcile = reconciler_for(manager, scenario)
    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    await run(manager)
    assert seen == [own.key]
    assert 'rest_client_rate_limiter_duration_seconds_count{verb="PATCH"' in expose(manager.registry)[1].decode()


async def test_a_mapper_finds_by_index_and_by_owner(client, namespace):
    manager = Manager(client, namespaces=[namespace])
    manager.index(Site, "image", images)
    own = await client.create(site("own", namespace, image="from-secret"))
    child = ConfigMap(metadata=ObjectMeta(name="child", namespace=namespace))
    await client.create(child, owner=own)
    told = []

    def users(secret, stores):
        found = [each.key for each in stores.by_index(Site, "image", secret.key.name)]
        told.append([each.key.name for key in found for each in stores.owned_by(ConfigMap, stores.get(Site, key))])
        return found

    async def scenario(ctx, request):
        if not told:
            await client.create(Secret(metadata=ObjectMeta(name="from-secret", namespace=namespace)))

    seen, reconcile = reconciler_for(manager, scenario, until=2)
    manager.controller(Site).owns(ConfigMap).watches(Secret, map=users).run_with(reconcile)
    await run(manager)
    assert seen == [own.key, own.key]
    assert told == [["child"]]


def test_an_index_that_cannot_be_is_refused_at_once():
    manager = Manager(uncached=[Secret])
    manager.index(Site, "image", images)
    with pytest.raises(ValueError, match='Site already has an index "image"'):
        manager.index(Site, "image", images)
    with pytest.raises(ValueError, match=r"Secret is excluded from the cache \(uncached=...\)"):
        manager.index(Secret, "type", lambda secret: [secret.type])
    with pytest.raises(TypeError, match=r"write namespaces=\('default',\)"):
        Manager(namespaces="default")
    with pytest.raises(ValueError, match="distinct"):
        Manager(namespaces=["a", "a"])


async def test_a_manager_is_for_its_namespaces(client, namespace, elsewhere):
    """Of namespaced kinds nothing else is cached, watched or found; what is said for a kind goes before."""
    manager = Manager(client, namespaces=[namespace], kinds={ConfigMap: KindOptions(namespaces=(elsewhere,))})
    manager.index(Site, "image", images)
    await client.create(site("there", elsewhere, image="nginx"))
    here = await client.create(site("here", namespace, image="nginx"))
    await client.create(Secret(metadata=ObjectMeta(name="there", namespace=elsewhere)))
    await client.create(ConfigMap(metadata=ObjectMeta(name="there", namespace=elsewhere)))

    async def scenario(ctx, request):
        assert [each.key for each in await ctx.client.list(Site)] == [here.key]
        assert [each.key for each in await ctx.client.by_index(Site, "image", "nginx")] == [here.key]
        assert len(await ctx.client.list(Secret)) == 0  # read on demand, no controller watches it
        assert elsewhere in [each.key.name for each in await ctx.client.metadata.list(Namespace)]
        assert {each.key.namespace for each in await ctx.client.list(ConfigMap)} == {elsewhere}
        with pytest.raises(NotCached, match=r"Site in namespace .* add the namespace to Manager\(namespaces=...\)"):
            await ctx.client.find(Site, (elsewhere, "there"))
        assert (await ctx.client.live.get(Site, (elsewhere, "there"))).spec.image == "nginx"
        # what is written elsewhere does not come in by the back door
        await ctx.client.patch(Site, (elsewhere, "there"), MergePatch({"spec": {"replicas": 2}}))
        assert [each.key for each in await ctx.client.list(Site)] == [here.key]

    seen, reconcile = reconciler_for(manager, scenario)
    manager.controller(Site).watches(Namespace, map=lambda seen: [], metadata_only=True).run_with(reconcile)
    await run(manager)
    assert seen == [here.key]


async def test_the_first_object_does_not_depend_on_the_order_of_the_namespaces(client, namespace, elsewhere):
    """It is the first by namespace and name, from the cache and from the server."""
    first, last = sorted((namespace, elsewhere))
    labels = {"first": namespace}
    for kind in (ConfigMap, Secret):
        for place in (last, first):
            await client.create(kind(metadata=ObjectMeta(name="same", namespace=place, labels=labels)))
    await client.create(site("own", namespace))

    async def scenario(ctx, request):
        for kind in (ConfigMap, Secret):
            assert (await ctx.client.first(kind, labels=labels)).key.namespace == first
        assert [each.key.namespace for each in await ctx.client.list(Secret, labels=labels)] == [first, last]

    manager = Manager(client, namespaces=[last, first], uncached=[Secret])
    seen, reconcile = reconciler_for(manager, scenario)
    manager.controller(Site).run_with(reconcile)
    await run(manager)
    assert seen == [(namespace, "own")]


async def test_a_kind_without_a_type_must_say_whether_it_is_namespaced(client, namespace):
    kind = Kind(f"{GROUP}/v1", "Site")
    await client.create(site("here", namespace))

    async def scenario(ctx, request):
        assert len(await ctx.client.list(kind)) == 1

    manager = Manager(client, namespaces=[namespace])
    _, reconcile = reconciler_for(manager, scenario)
    manager.controller(kind, namespaced=True).run_with(reconcile)
    with pytest.raises(ValueError, match=r"Site has no Python type here.*pass Manager\(kinds="):
        await manager.run()

    manager = Manager(client, namespaces=[namespace], kinds={kind: KindOptions(namespaces=(namespace,))})
    seen, reconcile = reconciler_for(manager, scenario)
    manager.controller(kind, namespaced=True).run_with(reconcile)
    await run(manager)
    assert [key.name for key in seen] == ["here"]


async def test_a_mappers_first_lookups_are_built_in_steps_and_the_mapper_is_called_again(
    client, namespace, monkeypatch
):
    """With hundreds of thousands of objects, building an index in one go would keep all else waiting."""
    monkeypatch.setattr(cached_kinds, "_SMALL", 5)
    monkeypatch.setattr(contents, "SLICE", 2)
    monkeypatch.setattr(contents.Contents, "complete", lambda self, name: pytest.fail(f"{name} was built in one go"))
    manager = Manager(client, namespaces=[namespace])
    for number in range(12):
        labels = {"app": "web" if number % 2 else "shop"}
        metadata = ObjectMeta(name=f"config-{number}", namespace=namespace, labels=labels)
        await client.create(ConfigMap(metadata=metadata))
    await client.create(site("own", namespace, image="nginx"))
    calls = []

    def mapped(view, stores):
        calls.append(view.key.name)
        sizes = [
            len(stores.list(ConfigMap, namespace=namespace)),
            len(stores.list(ConfigMap, labels={"app": "web"})),
            len(stores.owned_by(ConfigMap, "nothing")),
        ]
        assert sizes == [12, 6, 0]
        return [f"{namespace}/mapped-{view.key.name}"]

    async def scenario(ctx, request):
        pass

    seen, reconcile = reconciler_for(manager, scenario, until=13)
    manager.controller(Site).watches(ConfigMap, map=mapped).run_with(reconcile)
    await run(manager)
    assert {each.name for each in seen} == {"own", *(f"mapped-config-{number}" for number in range(12))}
    # The first call was repeated for each of its three lookups, the others were not.
    assert len(calls) == 15
