"""Never older than yourself, with the watch held back."""

import asyncio

import pytest

from steersman import MergePatch, ObjectMeta
from steersman.cache import Cache, KindOptions, UnknownIndex
from steersman.errors import KindNotServed, NotCached, NotFound
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.objects import Kind, Selector


def config(name, namespace, value="1", **labels):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels or None), data={"a": value})


class Held:
    """A cache of one namespace whose watch has stopped: it shows what it knew, and nothing newer."""

    def __init__(self, cache):
        self.cache = cache
        self.reader = cache.reader()

    async def hold(self):
        informer = self.cache.informer(ConfigMap)
        await informer.wait_synced()
        for task in informer._running.values():
            task.cancel()
            await asyncio.wait((task,))

    async def go_on(self):
        await self.cache.informer(ConfigMap).refresh()


@pytest.fixture
async def held(client, namespace):
    async with Cache(client, kinds={ConfigMap: KindOptions(namespaces=(namespace,))}) as cache:
        cache.add_index(ConfigMap, "value", lambda each: [each.data["a"]])
        yield Held(cache)


async def test_a_created_object_is_there_at_once_in_get_list_and_index(held, client, namespace):
    owner = await client.create(config("owner", namespace))
    await held.hold()
    made = await client.apply(config("made", namespace, "7", app="web"), owner=owner)
    reader = held.reader
    with pytest.raises(NotFound):
        await reader.get(ConfigMap, made.key)
    held.cache.record_write(made)
    assert (await reader.get(ConfigMap, made.key)).data == {"a": "7"}
    assert [each.key for each in await reader.list(ConfigMap, namespace=namespace, labels="app=web")] == [made.key]
    assert [each.key for each in await reader.by_index(ConfigMap, "value", "7")] == [made.key]
    assert [each.key for each in await reader.owned_by(ConfigMap, owner)] == [made.key]
    await held.go_on()
    assert len(held.cache.informer(ConfigMap).overlay) == 0
    assert [each.key for each in await reader.by_index(ConfigMap, "value", "7")] == [made.key]


async def test_a_changed_object_moves_in_the_indexes_at_once(held, client, namespace):
    made = await client.create(config("moving", namespace, "1", app="a"))
    await held.hold()
    held.cache.record_write(
        await client.patch(ConfigMap, made.key, MergePatch({"data": {"a": "2"}, "metadata": {"labels": {"app": "b"}}}))
    )
    reader = held.reader
    assert len(await reader.by_index(ConfigMap, "value", "1")) == 0
    assert len(await reader.by_index(ConfigMap, "value", "2")) == 1
    assert len(await reader.list(ConfigMap, labels={"app": "a"})) == 0
    assert len(await reader.list(ConfigMap, labels=Selector.parse("app=b"))) == 1


async def test_a_newer_state_of_another_writer_wins(held, client, namespace):
    made = await client.create(config("contested", namespace))
    await held.hold()
    held.cache.record_write(await client.patch(ConfigMap, made.key, MergePatch({"data": {"a": "ours"}})))
    await client.patch(ConfigMap, made.key, MergePatch({"data": {"a": "theirs"}}))
    assert (await held.reader.get(ConfigMap, made.key)).data == {"a": "ours"}
    await held.go_on()
    assert (await held.reader.get(ConfigMap, made.key)).data == {"a": "theirs"}


async def test_a_deleted_object_is_gone_at_once_and_its_successor_is_seen(held, client, namespace):
    first = await client.create(config("phoenix", namespace))
    await held.hold()
    await client.delete(first)
    held.cache.record_delete(ConfigMap, first.key, first.metadata.uid)
    reader = held.reader
    with pytest.raises(NotFound):
        await reader.get(ConfigMap, first.key)
    assert len(await reader.list(ConfigMap)) == len(await reader.by_index(ConfigMap, "value", "1")) == 0
    second = await client.create(config("phoenix", namespace, "2"))
    held.cache.record_write(second)
    assert (await reader.get(ConfigMap, second.key)).metadata.uid == second.metadata.uid
    await client.delete(second)
    held.cache.record_delete(ConfigMap, second.key, second.metadata.uid)
    with pytest.raises(NotFound):
        await reader.get(ConfigMap, second.key)
    third = await client.create(config("phoenix", namespace, "3"))
    await held.go_on()
    assert (await reader.get(ConfigMap, third.key)).metadata.uid == third.metadata.uid


async def test_a_lost_reply_makes_the_next_read_live(held, client, namespace):
    """The write happened, the answer did not arrive."""
    made = await client.create(config("doubtful", namespace))
    await held.hold()
    await client.patch(ConfigMap, made.key, MergePatch({"data": {"a": "2"}}))
    assert (await held.reader.get(ConfigMap, made.key)).data == {"a": "1"}
    held.cache.record_unknown(ConfigMap, made.key)
    assert (await held.reader.get(ConfigMap, made.key)).data == {"a": "2"}
    assert held.cache.informer(ConfigMap).overlay.live_keys() == []
    assert (await held.reader.get(ConfigMap, made.key)).data == {"a": "2"}


async def test_a_lost_reply_to_a_delete_or_create_is_settled_by_a_list_too(held, client, namespace):
    gone = await client.create(config("gone", namespace))
    await held.hold()
    await client.delete(gone)
    born = await client.create(config("born", namespace))
    held.cache.record_unknown(ConfigMap, gone.key)
    held.cache.record_unknown(ConfigMap, born.key)
    assert [each.key.name for each in await held.reader.list(ConfigMap, namespace=namespace)] == ["born"]
    assert [each.key.name for each in await held.reader.by_index(ConfigMap, "value", "1")] == ["born"]


async def test_a_deletion_of_many_that_failed_halfway_is_settled_for_all(held, client, namespace):
    """The answer does not say which were deleted: the cache reads one by itself, and many together."""
    for number in range(40):
        await client.create(config(f"each-{number}", namespace))
    await held.hold()
    await client.delete_collection(ConfigMap, namespace=namespace, fields={"metadata.name": "each-7"})
    await client.patch(ConfigMap, f"{namespace}/each-8", MergePatch({"data": {"a": "2"}}))
    assert len(await held.reader.by_index(ConfigMap, "value", "1")) == 40
    held.cache.record_unknown(ConfigMap, None)
    with pytest.raises(NotFound):
        await held.reader.get(ConfigMap, f"{namespace}/each-7")
    requests = _requests(held)
    assert len(await held.reader.by_index(ConfigMap, "value", "1")) == 38
    assert (await held.reader.get(ConfigMap, f"{namespace}/each-8")).data == {"a": "2"}
    assert _requests(held) - requests < 5
    assert held.cache.informer(ConfigMap).overlay.live_keys() == []


async def test_a_doubt_about_one_namespace_costs_the_others_nothing(held, client, namespace):
    made = await client.create(config("unharmed", namespace))
    await held.hold()
    held.cache.record_unknown(ConfigMap, None, namespace=f"not-{namespace}")
    assert held.cache.informer(ConfigMap).overlay.live_keys() == []
    held.cache.record_unknown(ConfigMap, None, namespace=namespace)
    assert made.key in held.cache.informer(ConfigMap).overlay.live_keys()


def _requests(held):
    return sum(scope.requests for each in held.cache.statistics() for scope in each.scopes)


async def test_a_write_that_did_not_happen_leaves_no_trace(held, client, namespace):
    made = await client.create(config("unharmed", namespace))
    await held.hold()
    held.cache.record_unknown(ConfigMap, made.key)
    held.cache.record_unknown(ConfigMap, made.key)
    assert (await held.reader.get(ConfigMap, made.key)).data == {"a": "1"}
    assert held.cache.informer(ConfigMap).overlay.live_keys() == []


async def test_our_write_may_take_an_object_out_of_the_selection(client, namespace):
    made = await client.create(config("leaving", namespace, app="web"))
    options = KindOptions(namespaces=(namespace,), labels=Selector.parse("app=web"))
    async with Cache(client, kinds={ConfigMap: options}) as cache:
        held = Held(cache)
        await held.hold()
        assert len(await held.reader.list(ConfigMap)) == 1
        cache.record_write(await client.patch(ConfigMap, made.key, MergePatch({"metadata": {"labels": {"app": "db"}}})))
        assert len(await held.reader.list(ConfigMap)) == 0
        with pytest.raises(NotFound):
            await held.reader.get(ConfigMap, made.key)


async def test_changes_of_one_reader_are_invisible_to_others(held, client, namespace):
    made = await client.create(config("isolated", namespace))
    await held.hold()
    (await held.reader.get(ConfigMap, made.key)).data["a"] = "scribbled"
    assert (await held.reader.get(ConfigMap, made.key)).data == {"a": "1"}


async def test_a_partial_answer_never_enters(held, client, namespace):
    made = await client.create(config("partial", namespace))
    await held.hold()
    await client.patch(ConfigMap, made.key, MergePatch({"data": {"a": "2"}}))
    held.cache.record_write(await client.metadata.get(ConfigMap, made.key), kind=ConfigMap)
    assert (await held.reader.get(ConfigMap, made.key)).data == {"a": "1"}


async def test_an_uncached_kind_is_read_from_the_server(client, namespace):
    async with Cache(client, uncached=[Secret]) as cache:
        made = await client.create(Secret(metadata=ObjectMeta(name="s", namespace=namespace)))
        assert (await cache.reader().get(Secret, made.key)).metadata.uid == made.metadata.uid
        assert len(await cache.reader().list(Secret, namespace=namespace)) == 1
        assert cache.statistics() == ()
        with pytest.raises(ValueError, match="excluded"):
            cache.informer(Secret)
        with pytest.raises(NotCached, match="excluded"):
            await cache.reader().by_index(Secret, "x", "y")


async def test_what_lies_outside_of_the_cache_says_so(held, namespace):
    await held.hold()
    with pytest.raises(NotCached, match="elsewhere is out of scope: this client reads"):
        await held.reader.get(ConfigMap, "elsewhere/x")
    with pytest.raises(UnknownIndex, match=r"no index 'color'.*Declared: value"):
        await held.reader.by_index(ConfigMap, "color", "red")


async def test_a_kind_that_is_not_served_is_an_error_to_a_reader(client):
    async with Cache(client) as cache:
        with pytest.raises(KindNotServed, match="is not served"):
            await asyncio.wait_for(cache.reader().get(Kind("no.such.group/v1", "Thing"), "a/b"), 30)
