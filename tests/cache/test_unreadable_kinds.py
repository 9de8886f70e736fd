"""Reading a kind that may not be listed, or that the server serves no more."""

import asyncio
import logging

import pytest

from samples.eventually import eventually
from samples.limited import limited, rule
from steersman import Kind, ObjectMeta, Resource, Spec
from steersman.cache import Cache, KindOptions
from steersman.errors import Forbidden, KindNotServed, NotFound
from steersman.kinds.core_v1 import Secret
from steersman.objects import Selector

DEFINITION = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def secret(name, namespace):
    return Secret(metadata=ObjectMeta(name=name, namespace=namespace))


async def test_a_kind_that_may_not_be_listed_is_read_live_and_named_once(api_server, client, namespace, caplog):
    """A role with get alone is least privilege, and enough for get."""
    caplog.set_level(logging.WARNING, "steersman.cache")
    await client.create(secret("password", namespace))
    async with limited(api_server, client, namespace, rule("secrets", "get")) as operator:
        here = {Secret: KindOptions(namespaces=(namespace,))}
        async with asyncio.timeout(60), Cache(operator.client, kinds=here) as cache:
            reader = cache.reader()
            assert (await reader.get(Secret, (namespace, "password"))).key.name == "password"
            assert await reader.find(Secret, (namespace, "absent")) is None
            warnings = [each for each in caplog.messages if "cannot be cached" in each]
            assert len(warnings) == 1
            assert "uncached=[Secret]" in warnings[0]
            with pytest.raises(Forbidden, match="cannot list resource"):
                await reader.list(Secret, namespace=namespace)
            with pytest.raises(Forbidden, match=r"cannot (list|watch) resource"):
                await reader.owned_by(Secret, "some-uid")
            # the role is bound later: the cache goes on by itself
            await operator.allow(rule("secrets"))
            await eventually(lambda: cache.informer(Secret).synced, within=60)
            assert [each.key.name for each in await reader.list(Secret, namespace=namespace)] == ["password"]


async def test_live_reads_show_only_what_the_cache_would_hold(api_server, client, namespace):
    """A role of one namespace allows no list of all, and a selector holds whether or not the kind can be watched."""
    for name, labels in (("mine", {"app": "mine"}), ("other", {"app": "other"})):
        await client.create(Secret(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels)))
    async with limited(api_server, client, namespace, rule("secrets", "get", "list")) as operator:
        here = {Secret: KindOptions(namespaces=(namespace,), labels=Selector.of({"app": "mine"}))}
        async with asyncio.timeout(60), Cache(operator.client, kinds=here) as cache:
            reader = cache.reader()
            assert [each.key.name for each in await reader.list(Secret)] == ["mine"]
            assert not await reader.list(Secret, labels={"app": "other"})
            assert await reader.find(Secret, (namespace, "other")) is None
            assert (await reader.get(Secret, (namespace, "mine"))).key.name == "mine"


async def test_writes_to_a_kind_that_may_not_be_listed_do_not_pile_up(api_server, client, namespace):
    rules = rule("secrets", "get", "create")
    async with limited(api_server, client, namespace, rules) as operator:
        here = {Secret: KindOptions(namespaces=(namespace,))}
        async with asyncio.timeout(30), Cache(operator.client, kinds=here) as cache:
            reader = cache.reader()
            assert await reader.find(Secret, (namespace, "first")) is None
            cache.record_write(await operator.client.create(secret("first", namespace)))
            assert (await reader.get(Secret, (namespace, "first"))).key.name == "first"
            await eventually(lambda: len(cache.informer(Secret).overlay) == 0)


@pytest.mark.parametrize("typed", [True, False], ids=["class", "kind"])
async def test_nothing_is_found_of_a_kind_that_was_withdrawn(client, crd_group, namespace, typed):
    """Its objects are gone: a reconcile that asks for one must not fail for ever."""

    class PebbleSpec(Spec):
        size: int = 1

    class Pebble(Resource[PebbleSpec, None], group=crd_group, version="v1"):
        """A pebble."""

    kind = Pebble if typed else Kind(f"{crd_group}/v1", "Pebble")
    async with asyncio.timeout(60), Cache(client) as cache:
        reading = client.observed((), cache=cache.reader())
        with pytest.raises(KindNotServed):
            await reading.find(kind, (namespace, "one"))
        await client.install(Pebble)
        await client.create(Pebble(metadata=ObjectMeta(name="one", namespace=namespace), spec=PebbleSpec()))
        await eventually(lambda: len(cache.informer(kind).store) == 1)
        assert (await reading.get(kind, (namespace, "one"))).key.name == "one"
        await client.delete(DEFINITION, f"pebbles.{crd_group}")
        await eventually(lambda: not cache.informer(kind).synced)
        assert await reading.find(kind, (namespace, "one")) is None
        assert len(await reading.list(kind)) == 0
        with pytest.raises(NotFound, match="Pebble"):
            await reading.get(kind, "one")
        assert len(await cache.reader().owned_by(kind, "some-uid")) == 0


@pytest.mark.parametrize("typed", [True, False], ids=["class", "kind"])
async def test_a_version_that_is_no_longer_served_hides_no_objects(client, crd_group, namespace, typed):
    """They exist in another version: an operator that lists them would delete what it made for each."""
    pebble, old_pebble = two_versions(crd_group)
    kind = old_pebble if typed else Kind(f"{crd_group}/v1beta1", "Pebble")

    async def serve(*versions: str) -> None:
        live = await client.get(DEFINITION, f"pebbles.{crd_group}")
        for each in live["spec"]["versions"]:
            each["served"] = each["name"] in versions
        await client.update(live)

    await client.install(pebble, old_pebble)
    async with asyncio.timeout(120), Cache(client) as cache:
        reader, scope = cache.reader(), lambda: cache.informer(kind).statistics().scopes[0]
        for each in ("one", "two"):
            await client.create(pebble(metadata=ObjectMeta(name=each, namespace=namespace), spec={}))
        await eventually(lambda: len(cache.informer(kind).store) == 2)
        await serve("v1")
        await eventually(lambda: scope().failures > 3, within=60)
        assert "it serves Pebble as" in scope().last_error
        assert sorted(each.key.name for each in await reader.list(kind)) == ["one", "two"]
        await client.delete(pebble, (namespace, "one"))
        await serve("v1", "v1beta1")
        await eventually(lambda: len(cache.informer(kind).store) == 1, within=60)


async def test_nothing_is_found_of_several_versions_that_were_withdrawn(client, crd_group, namespace):
    pebble, old_pebble = two_versions(crd_group)
    await client.install(pebble, old_pebble)
    async with asyncio.timeout(120), Cache(client) as cache:
        await client.create(pebble(metadata=ObjectMeta(name="one", namespace=namespace), spec={}))
        await eventually(lambda: len(cache.informer(old_pebble).store) == 1)
        await client.delete(DEFINITION, f"pebbles.{crd_group}")
        await eventually(lambda: not cache.informer(old_pebble).synced, within=60)
        assert await cache.reader().find(old_pebble, (namespace, "one")) is None


def two_versions(group):
    """Two versions of a kind."""

    class PebbleSpec(Spec):
        size: int = 1

    class Pebble(Resource[PebbleSpec, None], group=group, version="v1"):
        """A pebble."""

    class OldPebble(Resource[PebbleSpec, None], group=group, version="v1beta1", kind="Pebble", storage=False):
        """A pebble, as it was."""

    return Pebble, OldPebble
