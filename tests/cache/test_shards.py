"""A cache of one shard: whether the server selects it or not, nothing else is stored."""

import asyncio
import logging

import pytest

from samples.eventually import eventually
from steersman import Client, ObjectMeta
from steersman.apiserver import ApiServer
from steersman.cache import Cache, Informer
from steersman.errors import NotFound
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.objects import Key
from steersman.transport import InProcessTransport, ServerResponse
from steersman.wire import SHARD_PARAMETER, HashRange, ShardSelector, shard_hash

#: Half of all names are in one half of the hashes; these are on different sides.
OURS, THEIRS = "ours", "theirs"
BY_NAMESPACE = ShardSelector("namespace", (HashRange(shard_hash(OURS), shard_hash(OURS) + 1),))
UNSUPPORTED = (
    '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"invalid shard selector: odd","code":500}'
)


class Watched:
    """A server whose requests are remembered."""

    def __init__(self, handler):
        self.handler = handler
        self.reads = []
        #: Whether it streams lists, as servers since Kubernetes 1.32 do.
        self.streams = True

    async def __call__(self, request):
        if not self.streams and any(name == "sendInitialEvents" for name, _ in request.query):
            return ServerResponse(status=400, headers=(), body=b"")
        if request.method == "GET":
            self.reads.append((request.path, dict(request.query)))
        return await self.handler(request)

    def selected(self, path):
        """Which reads of a path had a selector."""
        return [SHARD_PARAMETER in query for seen, query in self.reads if seen == path]


@pytest.fixture(params=[True, False], ids=["gate on", "gate off"])
async def gate(request):
    return request.param


@pytest.fixture
async def server(gate):
    async with ApiServer(kinds=["v1", "coordination.k8s.io/v1"], feature_gates={"ShardedListAndWatch": gate}) as server:
        yield Watched(server.handler)


@pytest.fixture
async def client(server):
    async with Client(InProcessTransport(server)) as client:
        for name in (OURS, THEIRS):
            await client.create(Namespace(metadata=ObjectMeta(name=name)))
        yield client


async def create(client, name):
    """One ConfigMap in each namespace."""
    return [
        await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace)))
        for namespace in (THEIRS, OURS)
    ]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "paged"])
async def test_only_objects_of_the_shard_are_stored(client, server, gate, heard, stream):
    """An object of another shard belongs to another process: two would write for it."""
    await create(client, "a")
    server.streams = stream
    async with Informer(client, ConfigMap, shards=BY_NAMESPACE) as informer:
        informer.add_handler(heard)
        await informer.wait_synced()
        assert informer.store.keys() == [Key(OURS, "a")]
        _, last = await create(client, "b")
        await informer.wait_reached(last.metadata.resource_version)
        for namespace in (THEIRS, OURS):
            await client.delete(ConfigMap, Key(namespace, "a"))
        await informer.catch_up()
        assert informer.store.keys() == [Key(OURS, "b")]
        await informer.refresh()
        assert informer.store.keys() == [Key(OURS, "b")]
        await heard.until(lambda each: each.key == Key(OURS, "b"))
    assert {each.key.namespace for each in heard.notifications} == {OURS}
    sent = server.selected("/api/v1/configmaps")
    assert sent == [gate] * len(sent)
    assert len(sent) >= 3


async def test_a_shard_by_uid(client):
    """Cluster-scoped kinds have no namespace to divide them by."""
    await create(client, "a")
    every = (await client.list(Namespace)).items
    halves = [ShardSelector("uid", (HashRange(0, 2**63),)), ShardSelector("uid", (HashRange(2**63, 2**64),))]
    found = []
    for half in halves:
        async with Informer(client, Namespace, shards=half) as informer:
            await informer.wait_synced()
            found.append({stored.uid for stored in informer.store})
    assert found[0] | found[1] == {each.metadata.uid for each in every}
    assert not found[0] & found[1]


async def test_what_is_known_of_the_server_is_logged_once(client, gate, caplog):
    with caplog.at_level(logging.INFO, logger="steersman.client"):
        for kind in (ConfigMap, Namespace):
            async with Informer(client, kind, shards=BY_NAMESPACE) as informer:
                await informer.wait_synced()
    said = [record.getMessage() for record in caplog.records if "shards" in record.getMessage()]
    assert len(said) == 1
    assert ("does not select shards" in said[0]) != gate


class ShardedCache(Cache):
    """Caches one shard of every kind."""

    def _informer_shards(self, kind):
        return BY_NAMESPACE


async def test_own_writes_outside_the_shard_are_not_shown(client):
    """The cache would show them until the next bookmark, and then no more."""
    await create(client, "a")
    async with ShardedCache(client) as cache:
        reader = cache.reader()
        assert [each.metadata.namespace for each in (await reader.list(ConfigMap)).items] == [OURS]
        for written in await create(client, "b"):
            cache.record_write(written)
        shown = [(each.metadata.namespace, each.metadata.name) for each in (await reader.list(ConfigMap)).items]
        assert sorted(shown) == [(OURS, "a"), (OURS, "b")]
        with pytest.raises(NotFound):
            await reader.get(ConfigMap, Key(THEIRS, "b"))
        cache.record_unknown(ConfigMap, Key(THEIRS, "a"))
        with pytest.raises(NotFound):
            await reader.get(ConfigMap, Key(THEIRS, "a"))


async def test_a_server_that_reads_selectors_otherwise_gets_none():
    """The feature is alpha: a later server may refuse our text, or read it in another way."""
    async with ApiServer(kinds=["v1", "coordination.k8s.io/v1"]) as inner:

        async def strict(request):
            if any(name == SHARD_PARAMETER for name, _ in request.query):
                headers = (("Content-Type", "application/json"),)
                return ServerResponse(status=500, headers=headers, body=UNSUPPORTED.encode())
            return await inner.handler(request)

        async with Client(InProcessTransport(strict)) as client:
            for name in (OURS, THEIRS):
                await client.create(Namespace(metadata=ObjectMeta(name=name)))
            await create(client, "a")
            async with asyncio.timeout(30), Informer(client, ConfigMap, shards=BY_NAMESPACE) as informer:
                await informer.wait_synced()
                assert informer.store.keys() == [Key(OURS, "a")]


@pytest.mark.parametrize("code", [429, 503])
async def test_a_server_that_cannot_answer_now_is_asked_again(code, caplog):
    """One overloaded second must not make every watch receive everything until some request fails."""
    async with ApiServer(kinds=["v1", "coordination.k8s.io/v1"], feature_gates={"ShardedListAndWatch": True}) as inner:
        refused = []

        async def busy(request):
            if not refused:
                refused.append(request.path)
                return ServerResponse(status=code, headers=(), body=b"")
            return await inner.handler(request)

        server = Watched(busy)
        async with Client(InProcessTransport(server)) as client:
            with caplog.at_level(logging.INFO, logger="steersman.client"):
                async with Informer(client, ConfigMap, shards=BY_NAMESPACE) as informer:
                    await informer.wait_synced()
        assert refused == ["/apis/coordination.k8s.io/v1/namespaces/default/leases"]
        sent = server.selected("/api/v1/configmaps")
        assert sent == [True] * len(sent)
        assert not any("does not select" in each for each in caplog.messages)


async def test_after_a_failure_the_server_is_asked_again(caplog):
    """An upgrade of the API server turns the feature on: the next connection uses it."""
    async with (
        ApiServer(kinds=["v1", "coordination.k8s.io/v1"]) as old,
        ApiServer(
            kinds=["v1", "coordination.k8s.io/v1"], storage=old.storage, feature_gates={"ShardedListAndWatch": True}
        ) as new,
    ):
        server = Watched(old.handler)
        async with Client(InProcessTransport(server)) as client:
            with caplog.at_level(logging.INFO, logger="steersman.client"):
                async with Informer(client, ConfigMap, shards=BY_NAMESPACE) as informer:
                    await informer.wait_synced()

                async def failing(request):
                    server.handler = new.handler
                    return ServerResponse(status=503, headers=(), body=b"")

                server.handler = failing
                async with Informer(client, ConfigMap, shards=BY_NAMESPACE) as informer:
                    await informer.wait_synced()
                await eventually(lambda: sum("selects shards" in each for each in caplog.messages) == 1)
        assert server.selected("/api/v1/configmaps")[-1]
