"""A kind of which only metadata is cached: `ctx.client.metadata` reads the cache, and a typed read is refused."""

import asyncio

import pytest

from steersman import Done, Kind, Manager, ObjectMeta
from steersman.aio import Supervisor
from steersman.cache import Cache, KindOptions
from steersman.errors import NotCached, NotFound
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.objects import PartialObjectMetadata, tree_of

LABELS = {"kept": "yes"}


async def played(manager, scenario):
    """Run a scenario in the first reconcile of a ConfigMap."""
    results = []

    async def reconcile(ctx, request):
        if not results:
            try:
                results.append(await scenario(ctx))
            except Exception as error:  # noqa: BLE001 - raised below
                results.append(error)
            manager.stop()
        return Done()

    manager.controller(ConfigMap).watches(Secret, map=lambda secret: [], metadata_only=True).run_with(reconcile)
    async with asyncio.timeout(60), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
    if isinstance(results[0], Exception):
        raise results[0]


@pytest.fixture
async def secret(client, namespace):
    await client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace=namespace)))
    metadata = ObjectMeta(name="s", namespace=namespace, labels=LABELS)
    return await client.create(Secret(metadata=metadata, string_data={"password": "hush"}))


@pytest.mark.parametrize("given", [False, True], ids=["by the controller", "by the manager"])
@pytest.mark.parametrize("kind", [Secret, Kind("v1", "Secret")], ids=["class", "kind"])
async def test_metadata_comes_from_the_cache(client, namespace, secret, kind, given):
    """No request for what the manager holds already, whichever name of the kind a reconcile uses."""
    kinds = {Secret: KindOptions(metadata_only=True, namespaces=(namespace,))} if given else None
    asked = []

    class Watching:
        def __init__(self, inner):
            self._inner = inner

        async def send(self, request, **options):
            asked.append(request.target)
            return await self._inner.send(request, **options)

        async def close(self):
            pass

    manager = Manager(client.with_transport(Watching), name="meta", namespaces=(namespace,), kinds=kinds)
    manager.index(Secret, "kept", lambda obj: [(obj.metadata.labels or {}).get("kept", "")])

    async def scenario(ctx):
        reads = ctx.client.metadata
        await reads.get(kind, secret.key)  # the first read may wait for the list
        asked.clear()
        found = [
            await reads.get(kind, secret.key),
            await reads.first(kind, labels=LABELS),
            *await reads.list(kind, namespace=namespace),
            *await reads.by_index(kind, "kept", "yes"),
        ]
        assert [type(each) for each in found] == [PartialObjectMetadata] * 4
        assert {each.uid for each in found} == {secret.uid}
        assert await reads.exists(kind)
        assert await reads.find(kind, (namespace, "none")) is None
        assert len(await reads.owned_by(kind, "no-such-uid")) == 0
        assert asked == []
        assert (await ctx.client.live.metadata.get(kind, secret.key)).uid == secret.uid
        assert len(asked) == 1

    await played(manager, scenario)


@pytest.mark.parametrize("given", [Secret, Kind("v1", "Secret")], ids=["options of the class", "options of the kind"])
@pytest.mark.parametrize("kind", [Secret, Kind("v1", "Secret")], ids=["class", "kind"])
async def test_a_cache_has_one_informer_for_both_names(client, namespace, secret, kind, given):
    """The options and the indexes of one name hold for the other, whichever is read first."""
    options = KindOptions(metadata_only=True, namespaces=(namespace,))
    async with Cache(client, kinds={given: options}) as cache:
        cache.add_index(Secret, "kept", lambda obj: [(obj.metadata.labels or {}).get("kept", "")])
        reads = cache.reader().metadata
        (found,) = await reads.by_index(kind, "kept", "yes")
        assert found.uid == secret.uid
        cache.add_index(Secret, "name", lambda obj: [obj.key.name])
        (found,) = await reads.by_index(Kind("v1", "Secret"), "name", "s")
        assert found.uid == (await reads.get(Secret, secret.key)).uid
        assert len(cache.statistics()) == 1


@pytest.mark.parametrize("kind", [Secret, Kind("v1", "Secret")], ids=["class", "kind"])
async def test_a_typed_read_is_refused_in_words(client, namespace, secret, kind):
    """An object typed as a Secret without its data would be believed."""
    options = KindOptions(metadata_only=True, namespaces=(namespace,))
    manager = Manager(client, name="meta", namespaces=(namespace,), kinds={Secret: options})
    manager.index(Secret, "kept", lambda obj: [])

    async def scenario(ctx):
        words = r"Secret is cached as metadata alone.*client\.metadata.*client\.live.*kinds=\{Secret: KindOptions\(\)\}"
        for read in (
            ctx.client.get(kind, secret.key),
            ctx.client.find(kind, secret.key),
            ctx.client.list(kind),
            ctx.client.first(kind),
            ctx.client.exists(kind),
            ctx.client.owned_by(kind, "uid"),
            ctx.client.by_index(kind, "kept", "yes"),
        ):
            with pytest.raises(NotCached, match=words):
                await read
        assert (await ctx.client.live.get(Secret, secret.key)).data is not None
        with pytest.raises(NotCached, match="ConfigMap is not cached as metadata"):
            await ctx.client.metadata.owned_by(ConfigMap, "uid")
        with pytest.raises(NotFound):
            await ctx.client.metadata.get(kind, (namespace, "none"))

    await played(manager, scenario)


@pytest.mark.parametrize("kind", [Secret, Kind("v1", "Secret")], ids=["class", "kind"])
async def test_a_read_that_no_cache_answers_returns_whole_objects(client, namespace, secret, kind):
    """Reads by fields, in a certain version and in pages go to the server, whatever the cache has of the kind."""
    options = KindOptions(metadata_only=True, namespaces=(namespace,))
    manager = Manager(client, name="meta", namespaces=(namespace,), kinds={Secret: options})

    async def scenario(ctx):
        opaque = {"namespace": namespace, "fields": {"type": "Opaque"}}
        found = [
            await ctx.client.get(kind, secret.key, resource_version="0"),
            *await ctx.client.list(kind, **opaque),
            await ctx.client.first(kind, **opaque),
            *[each async for each in ctx.client.iterate(kind, namespace=namespace)],
        ]
        assert [tree_of(each).get("data") for each in found] == [tree_of(secret)["data"]] * 4
        assert await ctx.client.exists(kind, **opaque)

    await played(manager, scenario)
