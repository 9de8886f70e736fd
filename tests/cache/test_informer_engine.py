"""Informers on an API server: sync, changes, selections, kinds that come and go."""

import asyncio

import pytest

from samples.site import Site, site
from steersman import Kind, MergePatch, ObjectMeta, Resource, Spec
from steersman.cache import Cache, Informer, KindOptions
from steersman.errors import DecodeError
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import FieldSelector, Key, PartialObjectMetadata, Selector, is_partial


def config(name, namespace, value="1", **labels):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels or None), data={"a": value})


def only(namespace, **options):
    return KindOptions(namespaces=(namespace,), **options)


async def test_present_objects_come_first_and_changes_follow(client, namespace, heard):
    await client.create(config("there", namespace))
    async with Informer(client, ConfigMap, options=only(namespace)) as informer:
        registration = informer.add_handler(heard)
        await asyncio.wait_for(registration.wait_synced(), 30)
        assert [(each.type, each.key.name, each.initial) for each in heard.notifications] == [
            ("appeared", "there", True)
        ]
        made = await client.create(config("new", namespace))
        await client.patch(ConfigMap, made.key, MergePatch({"data": {"a": "2"}}))
        await client.delete(made)
        await heard.until(lambda each: each.type == "vanished")
        new = heard.of("new")
    assert new[-1].old.object.data == {"a": "2"}
    assert new[-1].certain
    assert all(each.kind == ConfigMap.gvk() for each in new)


async def test_a_single_change_is_its_own_frame(client, namespace, heard):
    made = await client.create(config("one", namespace))
    async with Informer(client, ConfigMap, options=only(namespace)) as informer:
        await informer.add_handler(heard).wait_synced()
        patched = await client.patch(ConfigMap, made.key, MergePatch({"data": {"a": "2"}}))
        change = (await heard.until(lambda each: each.type == "changed"))[-1]
    assert change.unbroken
    assert (change.old.resource_version, change.new.resource_version) == (
        made.metadata.resource_version,
        patched.metadata.resource_version,
    )


async def test_a_handler_that_comes_later_gets_everything(client, namespace, heard):
    for name in ("a", "b"):
        await client.create(config(name, namespace))
    async with Informer(client, ConfigMap, options=only(namespace)) as informer:
        await informer.wait_synced()
        registration = informer.add_handler(heard)
        assert not registration.synced
        await registration.wait_synced()
        assert [each.key.name for each in heard.notifications] == ["a", "b"]
        registration.remove()
        await client.create(config("c", namespace))
        await informer.wait_reached((await client.get(ConfigMap, f"{namespace}/c")).metadata.resource_version)
    assert heard.of("c") == []


async def test_a_handler_that_fails_is_called_for_the_next_key(client, namespace, heard, caplog):
    def failing(notification):
        heard(notification)
        raise RuntimeError("no such luck")

    for name in ("a", "b"):
        await client.create(config(name, namespace))
    async with Informer(client, ConfigMap, options=only(namespace)) as informer:
        registration = informer.add_handler(failing)
        await registration.wait_synced()
    assert [each.key.name for each in heard.notifications] == ["a", "b"]
    assert registration.failures == 2
    assert "no such luck" in caplog.text


async def test_a_deleted_object_differs_from_its_successor(client, namespace, heard):
    first = await client.create(config("phoenix", namespace))
    async with Informer(client, ConfigMap, options=only(namespace)) as informer:
        await informer.add_handler(heard).wait_synced()
        await client.delete(first)
        second = await client.create(config("phoenix", namespace, "2"))
        await heard.until(lambda each: each.type == "appeared" and each.new.uid == second.metadata.uid)
        events = [each.type for each in heard.of("phoenix")]
    assert events == ["appeared", "vanished", "appeared"]
    assert heard.of("phoenix")[1].old.uid == first.metadata.uid


async def test_leaving_the_selection_is_vanishing(client, namespace, heard):
    await client.create(config("in", namespace, app="web"))
    await client.create(config("out", namespace, app="db"))
    options = only(namespace, labels=Selector.parse("app=web"))
    async with Informer(client, ConfigMap, options=options) as informer:
        await informer.add_handler(heard).wait_synced()
        assert [stored.key.name for stored in informer.store] == ["in"]
        await client.patch(ConfigMap, f"{namespace}/in", MergePatch({"metadata": {"labels": {"app": "db"}}}))
        await heard.until(lambda each: each.type == "vanished")
        assert informer.store.keys() == []


async def test_a_field_selector_and_several_namespaces(client, namespace, api_server, heard):
    other = f"other-{namespace[-50:].lstrip('-')}"
    await api_server.create_namespace(other)
    for place in (namespace, other):
        for name in ("a", "b"):
            await client.create(config(name, place))
    options = KindOptions(namespaces=(namespace, other), fields=FieldSelector.parse("metadata.name=b"))
    async with Informer(client, ConfigMap, options=options) as informer:
        await informer.add_handler(heard).wait_synced()
        assert sorted(informer.store.keys()) == sorted([(namespace, "b"), (other, "b")])
        assert len(informer.statistics().scopes) == 2
    await api_server.delete_namespace(other)


async def test_metadata_alone_is_kept(client, namespace):
    await client.create(config("meta", namespace, "secret", app="web"))
    async with Informer(client, ConfigMap, options=only(namespace, metadata_only=True)) as informer:
        await informer.wait_synced()
        (stored,) = informer.store.list()
        view = informer.view(stored)
    assert b"secret" not in stored.raw
    assert isinstance(view.object, PartialObjectMetadata)
    assert view.labels == {"app": "web"}


async def test_managed_fields_are_kept_beside_the_object_and_only_ours(client, namespace, api_server):
    await client.create(config("managed", namespace))
    await api_server.kubectl("annotate", "configmap", "managed", "-n", namespace, "a=b")
    async with Informer(client, ConfigMap, options=only(namespace)) as informer:
        await informer.wait_synced()
        (stored,) = informer.store.list()
        cached = informer.decode(stored)
    assert b"managedFields" not in stored.raw
    assert b'"tests"' in stored.managed_fields
    assert b"kubectl" not in stored.managed_fields
    assert not is_partial(cached)
    cached.data = {"a": "updated"}
    updated = await client.update(cached)
    assert {entry.manager for entry in updated.metadata.managed_fields} > {"tests"}


async def test_a_transform_makes_objects_smaller_and_partial(client, namespace):
    def without_data(tree):
        tree.pop("data", None)
        return tree

    await client.create(config("thin", namespace, "bulky"))
    async with Informer(client, ConfigMap, options=only(namespace, transform=without_data)) as informer:
        await informer.wait_synced()
        (stored,) = informer.store.list()
        assert b"bulky" not in stored.raw
        assert is_partial(informer.decode(stored))


async def test_objects_are_found_by_index_label_and_owner(client, namespace):
    owner = await client.create(config("owner", namespace))
    for number in range(6):
        each = config(f"c-{number}", namespace, str(number % 3), app=f"app-{number % 2}")
        await client.apply(each, owner=owner if number < 2 else None)
    async with Informer(client, ConfigMap, options=only(namespace)) as informer:
        informer.add_index("value", lambda each: [each.data["a"]])
        await informer.wait_synced()
        store = informer.store
        assert sorted(each.key.name for each in store.by_index("value", "2")) == ["c-2", "c-5"]
        assert sorted(each.key.name for each in store.by_owner(owner.metadata.uid)) == ["c-0", "c-1"]
        assert sorted(each.key.name for each in store.list(labels=Selector.parse("app=app-1"))) == ["c-1", "c-3", "c-5"]


async def test_an_untyped_kind(client, namespace, sites, heard):
    await client.create(site("untyped", namespace))
    async with Informer(client, Kind("web.test.steersman.dev/v1", "Site"), options=only(namespace)) as informer:
        await informer.add_handler(heard).wait_synced()
    assert heard.notifications[0].new.object.get("spec", "image") == "nginx:1.27"


async def test_an_object_that_cannot_be_decoded_spoils_nothing_else(client, namespace, sites, heard):
    class WrongSpec(Spec):
        image: int

    class Wrong(Resource[WrongSpec, None], group=Site.gvk().group, version="v1", kind="Site", plural="sites"):
        """A Site as a program knows it that is wrong about it."""

    await client.create(site("strange", namespace))
    async with Informer(client, Wrong, options=only(namespace)) as informer:
        informer.add_index("image", lambda each: [each.spec.image])
        await informer.add_handler(heard).wait_synced()
        with pytest.raises(DecodeError, match="strange"):
            _ = heard.notifications[0].new.object
        assert heard.notifications[0].new.metadata.name == "strange"
        assert informer.statistics().index_failures == 1


async def test_a_missing_kind_is_waited_for_and_its_removal_survived(client, crd_group, namespace, heard):
    class RockSpec(Spec):
        size: int = 1

    class Rock(Resource[RockSpec, None], group=crd_group, version="v1"):
        """A rock."""

    async with Informer(client, Rock) as informer:
        registration = informer.add_handler(heard)
        assert not await asyncio.wait_for(informer.wait_settled(), 30)
        assert not informer.served
        await client.install(Rock)
        await client.create(Rock(metadata=ObjectMeta(name="first", namespace=namespace), spec=RockSpec()))
        await asyncio.wait_for(registration.wait_synced(), 30)
        await heard.until(lambda each: each.type == "appeared" and each.key.name == "first")
        definition = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        await client.delete(definition, f"rocks.{crd_group}")
        await heard.until(lambda each: each.type == "vanished" and each.key.name == "first")
        async with asyncio.timeout(30):
            while informer.synced:
                await informer.replica.wait_progress()
        await client.install(Rock)
        await client.create(Rock(metadata=ObjectMeta(name="second", namespace=namespace), spec=RockSpec()))
        await heard.until(lambda each: each.type == "appeared" and each.key.name == "second")
        assert informer.served


async def test_two_thousand_objects_in_pages_or_on_a_stream(client, namespace):
    async def make(numbers):
        for number in numbers:
            await client.create(config(f"c-{number}", namespace, str(number)))

    numbers = iter(range(2000))
    async with asyncio.TaskGroup() as group:
        for _ in range(16):
            group.create_task(make(numbers))
    async with Cache(client, kinds={ConfigMap: only(namespace)}) as cache, cache.use(ConfigMap) as informer:
        await asyncio.wait_for(informer.wait_synced(), 60)
        assert len(informer.store) == 2000
        assert informer.statistics().scopes[0].requests == 1
        await asyncio.wait_for(informer.refresh(), 60)
        assert len(informer.store) == 2000


async def test_a_shared_informer_starts_on_demand_and_stops_with_the_last_use(client, namespace):
    async with Cache(client, kinds={ConfigMap: only(namespace)}) as cache:
        assert cache.statistics() == ()
        async with cache.use(ConfigMap) as one:
            await one.wait_synced()
            async with cache.use(ConfigMap) as other:
                assert other is one
            assert len(cache.statistics()) == 1
        assert cache.statistics() == ()
        async with cache.use(ConfigMap) as another:
            assert another is not one
            await another.wait_synced()


async def test_a_cache_that_has_ended_answers_no_read(client, namespace):
    """Nothing follows the server any more, so what a read found would be older with every minute."""
    await client.create(config("old", namespace, app="web"))
    cache = Cache(client, kinds={ConfigMap: only(namespace)})
    cache.add_index(ConfigMap, "value", lambda each: [each.data["a"]])
    reader, key = cache.reader(), f"{namespace}/old"
    reads = (
        lambda: reader.get(ConfigMap, key),
        lambda: reader.find(ConfigMap, key),
        lambda: reader.list(ConfigMap, labels="app=web"),
        lambda: reader.head(ConfigMap),
        lambda: reader.by_index(ConfigMap, "value", "1"),
        lambda: reader.owned_by(ConfigMap, "uid"),
        lambda: reader.view(ConfigMap, Key(namespace, "old")),
        cache.use(ConfigMap).__aenter__,
    )

    async def refuses():
        for read in reads:
            with pytest.raises(
                RuntimeError, match=r"^ConfigMap: the cache is not running.* read from the server with the"
            ):
                await read()

    await refuses()
    async with cache:
        assert (await reader.get(ConfigMap, key)).data == {"a": "1"}
        assert len(await reader.by_index(ConfigMap, "value", "1")) == 1
        async with cache.use(ConfigMap) as informer:
            await informer.wait_synced()
    await refuses()
    assert cache.statistics() == ()
