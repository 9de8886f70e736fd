"""A kind of which only objects are cached to which others refer."""

import asyncio
import shutil
from contextlib import AsyncExitStack

import pytest

from samples.eventually import eventually
from steersman import Client, MergePatch, ObjectMeta
from steersman.apiserver import ApiServer
from steersman.cache import Cache, KindOptions
from steersman.cache.references.placement import places
from steersman.errors import NotCached
from steersman.kinds.core_v1 import Namespace, Secret
from steersman.objects import Key
from steersman.transport import InProcessTransport


@pytest.fixture
async def server():
    async with ApiServer(kinds=["v1"], history=10_000) as server:
        yield server


@pytest.fixture
async def client(server):
    async with Client(InProcessTransport(server.handler)) as client:
        for name in ("blue", "red"):
            await client.create(Namespace(metadata=ObjectMeta(name=name)))
            for number in range(4):
                await client.create(secret(Key(name, f"s{number}")))
        yield client


def secret(key, **data):
    return Secret(metadata=ObjectMeta(name=key.name, namespace=key.namespace), string_data=data)


def keys(*names):
    return [Key.parse(name) for name in names]


def caching(client, **options):
    return Cache(client, kinds={Secret: KindOptions(referenced=True, **options)})


async def referred(informer, *names):
    informer.names.references.begin(keys(*names))
    await eventually(lambda: all(informer.has(key) for key in keys(*names)))


def stored(informer):
    return {str(each.key) for each in informer.store}


async def test_only_what_is_referred_to_is_cached(client, heard):
    async with caching(client) as cache:
        informer = cache.informer(Secret)
        informer.add_handler(heard)
        await referred(informer, "blue/s0", "red/s1", "red/none")
        assert stored(informer) == {"blue/s0", "red/s1"}
        await client.create(secret(Key("red", "none")))
        await heard.until(lambda each: each.key == Key("red", "none") and each.type == "appeared")
        await client.delete(Secret, "blue/s0")
        await client.delete(Secret, "blue/s1")
        await heard.until(lambda each: each.key == Key("blue", "s0") and each.type == "vanished")
        assert heard.of("s1")[0].key == Key("red", "s1")
        assert len(heard.of("s1")) == 1


async def test_a_read_of_anything_else_is_a_request_and_no_none(client, caplog):
    async with caching(client) as cache:
        informer, reader = cache.informer(Secret), cache.reader()
        await referred(informer, "blue/s0")
        assert (await reader.get(Secret, "blue/s0")).metadata.name == "s0"
        assert informer.outside_reads == 0
        assert (await reader.get(Secret, "blue/s1")).metadata.name == "s1"
        view = await reader.view(Secret, Key("blue", "s2"))
        assert view is not None
        assert len((await reader.list(Secret, namespace="blue")).items) == 4
        assert informer.outside_reads == 3
        assert caplog.text.count("is not referred to, so each read of it is a request") == 1
        with pytest.raises(NotCached, match="only objects that others refer to are cached"):
            await reader.owned_by(Secret, "a-uid")
        cache.add_index(Secret, "type", lambda each: [each.type])
        with pytest.raises(NotCached, match="index 'type'"):
            await reader.by_index(Secret, "type", "Opaque")


@pytest.mark.parametrize("watches", [1, 8])
async def test_own_writes_are_read_back_from_the_cache(client, watches):
    async with caching(client, watches_by_name=watches) as cache:
        informer, reader = cache.informer(Secret), cache.reader()
        await referred(informer, "blue/s0", "blue/s1")
        for value in ("1", "2"):
            cache.record_write(await client.patch(Secret, "blue/s0", MergePatch({"stringData": {"value": value}})))
            assert (await reader.get(Secret, "blue/s0")).data == {"value": value.encode()}
        uid = (await reader.get(Secret, "blue/s1")).uid
        await client.delete(Secret, "blue/s1")
        cache.record_delete(Secret, Key("blue", "s1"), uid)
        assert await reader.find(Secret, "blue/s1") is None
        assert informer.outside_reads == 0


async def test_the_last_reference_leaves_the_object_for_a_while(client, heard):
    async with caching(client) as cache:
        informer = cache.informer(Secret)
        references = informer.names.references
        informer.add_handler(heard)
        await referred(informer, "blue/s0", "blue/s1")
        references.end(keys("blue/s0"))
        await asyncio.sleep(0)
        assert informer.has(Key("blue", "s0"))
        assert references.linger == 60
        references.begin(keys("blue/s0"))
        references.linger = 0.0
        references.end(keys("blue/s0", "blue/s1"))
        await eventually(lambda: not informer.scopes.placed())
        assert (stored(informer), [*informer.scopes]) == (set(), [])
        assert [each.type for each in heard.notifications] == ["appeared", "appeared"]
        await referred(informer, "blue/s0")
        await heard.until(lambda _: len(heard.of("s0")) == 2)


@pytest.mark.parametrize("watches", [1, 8])
async def test_a_deleted_and_recreated_object_is_another(client, heard, watches):
    async with caching(client, watches_by_name=watches) as cache:
        informer = cache.informer(Secret)
        informer.add_handler(heard)
        await referred(informer, "blue/s0", "blue/s1")
        await client.delete(Secret, "blue/s0")
        await client.create(secret(Key("blue", "s0"), new="yes"))
        await heard.until(lambda each: each.type == "appeared" and each.new.object.data == {"new": b"yes"})
        assert [each.type for each in heard.of("s0")] == ["appeared", "vanished", "appeared"]


@pytest.mark.parametrize("watches", [1, 8])
async def test_changes_are_found_after_the_history_has_expired(server, client, heard, watches):
    async with caching(client, watches_by_name=watches) as cache:
        informer = cache.informer(Secret)
        informer.add_handler(heard)
        await referred(informer, "blue/s0", "blue/s1", "red/s0", "red/s1")
        await server.forget()
        await client.patch(Secret, "blue/s0", MergePatch({"stringData": {"late": "yes"}}))
        await client.delete(Secret, "red/s0")
        await heard.until(lambda each: each.key == Key("blue", "s0") and each.type == "changed")
        await heard.until(lambda each: each.key == Key("red", "s0") and each.type == "vanished")


async def test_a_scope_that_is_full_becomes_one_watch(client):
    """600 names when the bound is 500."""
    for number in range(4, 600):
        await client.create(secret(Key("blue", f"s{number}")))
    names = [f"blue/s{number}" for number in range(600)]
    async with caching(client, watches_by_name=500) as cache:
        informer = cache.informer(Secret)
        await referred(informer, *names[:500])
        assert len([*informer.scopes]) == 500
        await referred(informer, *names[500:], "red/s0")
        assert sorted(informer.scopes) == ["blue", "red/s0"]
        assert len(informer.store) == 601
        await client.delete(Secret, "blue/s599")
        await eventually(lambda: len(informer.store) == 600)


async def test_namespaces_limit_what_is_followed(client):
    async with caching(client, namespaces=("blue",), watches_by_name=1) as cache:
        informer, reader = cache.informer(Secret), cache.reader()
        informer.names.references.begin(keys("red/s0"))
        await referred(informer, "blue/s0", "blue/s1")
        assert [*informer.scopes] == ["blue"]
        with pytest.raises(NotCached):
            await reader.get(Secret, "red/s0")


async def test_a_restored_server_is_noticed(tmp_path, heard, caplog):
    """Every name joins again, whether it has a watch of its own or not."""
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(ApiServer(kinds=["v1"], storage=tmp_path / "data"))
        current = running

        async def handle(request):
            return await current.handler(request)

        client = await stack.enter_async_context(Client(InProcessTransport(handle)))
        await client.create(Namespace(metadata=ObjectMeta(name="blue")))
        for number in range(3):
            await client.create(secret(Key("blue", f"s{number}"), value="before"))
    shutil.copytree(tmp_path / "data", tmp_path / "backup")
    async with AsyncExitStack() as stack:
        first = AsyncExitStack()
        current = await first.enter_async_context(ApiServer(kinds=["v1"], storage=tmp_path / "data"))
        client = await stack.enter_async_context(Client(InProcessTransport(handle)))
        alone = await stack.enter_async_context(caching(client, watches_by_name=8))
        wide = await stack.enter_async_context(caching(client, watches_by_name=1))
        informers = [alone.informer(Secret), wide.informer(Secret)]
        for informer in informers:
            informer.add_handler(heard)
            await referred(informer, "blue/s0", "blue/s1", "blue/lost")
        for name in ("s0", "s1"):
            await client.patch(Secret, f"blue/{name}", MergePatch({"stringData": {"value": "after"}}))
        await client.create(secret(Key("blue", "lost"), value="after"))
        await eventually(lambda: all(len(informer.store) == 3 for informer in informers))
        restored = await stack.enter_async_context(ApiServer(kinds=["v1"], storage=tmp_path / "backup"))
        current = restored
        await first.aclose()
        await eventually(lambda: all(stored(informer) == {"blue/s0", "blue/s1"} for informer in informers), within=60)
        for cache in (alone, wide):
            assert (await cache.reader().get(Secret, "blue/s0")).data == {"value": b"before"}
            assert cache.epoch == 1
        await eventually(lambda: [each.type for each in heard.of("lost")].count("vanished") == 2)
        assert "restored from a backup" in caplog.text


@pytest.mark.parametrize("watches", [1, 8])
async def test_a_term_reads_a_name_anew_that_is_being_read_when_it_begins(server, client, watches):
    """The answer on its way may be older than the last writes of the leader before."""
    asked, answered, arriving = [], asyncio.Event(), asyncio.Event()

    async def handle(request):
        response = await server.handler(request)
        if dict(request.query).get("fieldSelector") == "metadata.name=s0":
            asked.append(request.path)
            answered.set()
            await arriving.wait()
        return response

    async with Client(InProcessTransport(handle)) as slow, caching(slow, watches_by_name=watches) as cache:
        informer = cache.informer(Secret)
        informer.names.references.begin(keys("blue/s0", "blue/s1"))
        await answered.wait()
        await informer.catch_up()
        arriving.set()
        await eventually(lambda: informer.has(Key("blue", "s0")))
        before = len(asked)
        for _ in range(2):
            assert (await cache.reader().get(Secret, "blue/s0")).metadata.name == "s0"
        assert len(asked) == before + 1


def test_names_are_grouped_only_beyond_the_limit():
    few = {key: f"{key.namespace}/{key.name}" for key in keys("a/1", "a/2", "b/1")}
    assert places({}, few, limit=3) == few
    more = places(few, keys("b/2"), limit=3)
    assert more == dict.fromkeys(keys("a/1", "a/2"), "a") | {Key("b", "2"): "b/2"}
    placed = few | more
    assert places(placed, keys("a/3"), limit=3) == {Key("a", "3"): "a"}
    assert places(placed, keys("c/1"), limit=3) == {
        **dict.fromkeys(keys("b/1", "b/2"), "b"),
        Key("c", "1"): "c/1",
    }
    everywhere = places({}, keys("a/1", "b/1", "c/1"), limit=2)
    assert everywhere == dict.fromkeys(keys("a/1", "b/1", "c/1"), "")
    assert places({}, keys("a/1", "a/2"), limit=1, denied={"a", ""}) == {
        key: f"a/{key.name}" for key in keys("a/1", "a/2")
    }
