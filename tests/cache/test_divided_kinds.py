"""A kind whose informer gains and loses ranges of namespaces while it runs."""

import asyncio
from typing import Unpack

import pytest

from steersman import Client, ObjectMeta
from steersman.aio import Supervisor
from steersman.apiserver import ApiServer
from steersman.cache import Cache
from steersman.errors import NotFound
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.objects import Key, OwnerReference, Selector
from steersman.transport import InProcessTransport, Response, SendOptions, TransportWrapper
from steersman.wire import HashRange, HttpRequest, ShardSelector, shard_hash

#: In the order of their hashes.
LOW, MIDDLE, HIGH = sorted(("red", "green", "blue"), key=shard_hash)
LAST = HashRange().end
#: A range with one of the namespaces each.
RANGE = {
    LOW: HashRange(0, shard_hash(MIDDLE)),
    MIDDLE: HashRange(shard_hash(MIDDLE), shard_hash(HIGH)),
    HIGH: HashRange(shard_hash(HIGH), LAST),
}


class DividedCache(Cache):
    """Every kind follows only the ranges that it gains."""

    def _is_divided(self, kind):
        return True


class Recording(TransportWrapper):
    """Records the queries of watches and lists of ConfigMaps, and holds live reads of one key while `open` is not set."""

    def __init__(self, inner):
        super().__init__(inner)
        self.queries = []
        self.open, self.held = asyncio.Event(), asyncio.Event()
        self.open.set()

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        if request.method == "GET" and request.path.endswith("/configmaps"):
            query = dict(request.query)
            self.queries.append(query)
            if not self.open.is_set() and query.get("fieldSelector", "").startswith("metadata.name"):
                self.held.set()
                await self.open.wait()
        return await self._inner.send(request, **options)


@pytest.fixture(params=[True, False], ids=["gate on", "gate off"])
def gate(request):
    return request.param


@pytest.fixture
async def server(gate):
    async with ApiServer(kinds=["v1", "coordination.k8s.io/v1"], feature_gates={"ShardedListAndWatch": gate}) as server:
        yield server


@pytest.fixture
def line(server):
    return Recording(InProcessTransport(server.handler))


@pytest.fixture
async def client(line):
    async with Client(line) as client:
        for name in (LOW, MIDDLE, HIGH):
            await client.create(Namespace(metadata=ObjectMeta(name=name)))
            await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace=name, labels={"in": name})))
        yield client


@pytest.fixture
async def cache(client):
    async with asyncio.timeout(120), DividedCache(client) as cache:
        yield cache


async def gained(informer, name, *namespaces):
    informer.gain(name, [RANGE[each] for each in namespaces])
    await informer.wait_gained(name)
    informer.show(name)


def stored(informer):
    return {each.key.namespace for each in informer.store}


def shown(heard):
    return {(each.key.namespace, each.type) for each in heard.notifications}


async def test_a_kind_without_ranges_is_complete_and_empty(cache, client):
    informer = cache.informer(ConfigMap)
    await informer.wait_synced()
    assert stored(informer) == set()
    reader = cache.reader()
    assert (await reader.get(ConfigMap, f"{LOW}/a")).metadata.name == "a"
    assert informer.outside_reads == 1


async def test_a_gained_range_is_listed_and_shown(cache, heard):
    informer = cache.informer(ConfigMap)
    informer.add_handler(heard)
    informer.gain("shard 1", [RANGE[LOW]])
    assert not informer.covers(LOW)
    await informer.wait_gained("shard 1")
    assert (informer.covers(LOW), informer.covers(MIDDLE), informer.covers(None)) == (True, False, False)
    assert heard.notifications == []
    informer.show("shard 1")
    await heard.until(lambda each: each.key == Key(LOW, "a") and each.initial)
    await gained(informer, "shard 2", MIDDLE, HIGH)
    await heard.until(lambda each: each.key == Key(HIGH, "a"))
    assert stored(informer) == {LOW, MIDDLE, HIGH}
    assert informer.covers(None)
    assert {scope.namespace for scope in informer.statistics().scopes} == {"shard 1", "shard 2"}


async def test_changes_of_a_gained_range_arrive(cache, client, heard):
    informer = cache.informer(ConfigMap)
    informer.add_handler(heard)
    await gained(informer, "shard 1", LOW)
    await client.create(ConfigMap(metadata=ObjectMeta(name="b", namespace=LOW)))
    await heard.until(lambda each: each.key == Key(LOW, "b") and each.type == "appeared")
    await client.delete(ConfigMap, Key(LOW, "b"))
    await heard.until(lambda each: each.key == Key(LOW, "b") and each.type == "vanished")


async def test_a_lost_range_leaves_without_a_notification(cache, client, heard):
    """Its objects were not deleted: a reconcile that saw them vanish would clean up after a living object."""
    informer = cache.informer(ConfigMap)
    informer.add_handler(heard)
    informer.add_index("in", lambda each: [each.metadata.labels["in"]] if each.metadata.labels else [])
    await gained(informer, "shard 1", LOW, MIDDLE)
    await gained(informer, "shard 2", HIGH)
    await heard.until(lambda each: each.key.namespace == HIGH)
    for name in (LOW, MIDDLE):
        await client.create(ConfigMap(metadata=ObjectMeta(name="unseen", namespace=name)))
    await informer.lose([RANGE[MIDDLE], RANGE[HIGH]])
    assert stored(informer) == {LOW}
    assert informer.store.by_index("in", MIDDLE) == []
    assert informer.store.list(labels=Selector.of({"in": HIGH})) == []
    assert informer.store.watermark("shard 2") == ""
    await client.create(ConfigMap(metadata=ObjectMeta(name="b", namespace=MIDDLE)))
    await client.create(ConfigMap(metadata=ObjectMeta(name="b", namespace=LOW)))
    await heard.until(lambda each: each.key == Key(LOW, "b"))
    await informer.catch_up()
    assert stored(informer) == {LOW}
    assert not any(kind == "vanished" for _, kind in shown(heard))


async def test_after_a_loss_the_watch_asks_for_less(cache, client, line, gate, heard):
    """A replica that has given namespaces away would go on to receive every change in them."""
    informer = cache.informer(ConfigMap)
    informer.add_handler(heard)
    await gained(informer, "shard 1", LOW, MIDDLE)
    await heard.until(lambda each: each.key.namespace == MIDDLE)
    line.queries.clear()
    await informer.lose([RANGE[MIDDLE]])
    await client.create(ConfigMap(metadata=ObjectMeta(name="b", namespace=LOW)))
    await heard.until(lambda each: each.key == Key(LOW, "b"))
    first = line.queries[0]
    assert "watch" in first
    assert first["resourceVersion"], "nothing is listed again"
    kept = str(ShardSelector("namespace", (RANGE[LOW],)))
    assert first.get("shardSelector") == (kept if gate else None)
    assert not any("watch" not in each or "sendInitialEvents" in each for each in line.queries)


async def test_a_range_that_comes_back_is_new(cache, client, heard):
    informer = cache.informer(ConfigMap)
    informer.add_handler(heard)
    await gained(informer, "shard 1", LOW, MIDDLE)
    await heard.until(lambda each: each.key.namespace == MIDDLE)
    await informer.lose([RANGE[MIDDLE]])
    await client.delete(ConfigMap, Key(MIDDLE, "a"))
    await client.create(ConfigMap(metadata=ObjectMeta(name="other", namespace=MIDDLE)))
    await gained(informer, "shard 2", MIDDLE)
    await heard.until(lambda each: each.key == Key(MIDDLE, "other") and each.initial)
    assert [each.key.name for each in informer.store if each.key.namespace == MIDDLE] == ["other"]


async def test_a_range_lost_before_it_was_listed_leaves_nothing(cache):
    informer = cache.informer(ConfigMap)
    informer.gain("shard 1", [RANGE[LOW]])
    await informer.lose([RANGE[LOW]])
    await informer.wait_gained("shard 1")
    assert (stored(informer), informer.covers(LOW), informer.synced) == (set(), False, True)


async def test_own_writes_leave_with_their_range(cache, client):
    informer = cache.informer(ConfigMap)
    await gained(informer, "shard 1", LOW)
    for name in (LOW, HIGH):
        cache.record_write(await client.create(ConfigMap(metadata=ObjectMeta(name="b", namespace=name))))
        cache.record_unknown(ConfigMap, Key(name, "b"))
    assert {key.namespace for key in informer.overlay.touched()} <= {LOW}
    reader = cache.reader()
    assert (await reader.get(ConfigMap, Key(LOW, "b"))).metadata.name == "b"
    await informer.lose([RANGE[LOW]])
    assert informer.overlay.is_empty


async def test_no_read_is_partial(cache, client):
    """A list over namespaces that other processes have would lack most of its objects."""
    owner = await client.get(ConfigMap, Key(HIGH, "a"))
    reference = OwnerReference(api_version="v1", kind="ConfigMap", name="a", uid=owner.metadata.uid)
    child = ObjectMeta(name="child", namespace=HIGH, owner_references=[reference])
    await client.create(ConfigMap(metadata=child))
    cache.add_index(ConfigMap, "in", lambda each: [each.metadata.labels["in"]] if each.metadata.labels else [])
    informer, reader = cache.informer(ConfigMap), cache.reader()
    await gained(informer, "shard 1", LOW)
    assert len((await reader.list(ConfigMap)).items) == 4
    assert len((await reader.list(ConfigMap, namespace=HIGH)).items) == 2
    assert len((await reader.list(ConfigMap, labels={"in": MIDDLE})).items) == 1
    assert (await reader.head(ConfigMap)).items
    assert [each.key.namespace for each in (await reader.by_index(ConfigMap, "in", HIGH)).items] == [HIGH]
    assert [each.key.name for each in (await reader.owned_by(ConfigMap, owner)).items] == ["child"]
    uid = owner.metadata.uid
    assert [each.key.name for each in await reader.views_owned_by(ConfigMap, uid, namespace=HIGH)] == ["child"]
    assert [each.key.namespace for each in await reader.views_labeled(ConfigMap, "in", HIGH)] == [HIGH]
    view = await reader.view(ConfigMap, Key(HIGH, "a"))
    assert view is not None
    assert view.key == Key(HIGH, "a")
    assert informer.outside_reads == 9
    with pytest.raises(NotFound):
        await reader.get(ConfigMap, Key(MIDDLE, "none"))
    asked = informer.outside_reads
    assert len((await reader.list(ConfigMap, namespace=LOW)).items) == 1
    assert [each.key.namespace for each in await reader.views_labeled(ConfigMap, "in", LOW, namespace=LOW)] == [LOW]
    assert await reader.views_labeled(ConfigMap, "in", HIGH, namespace=LOW) == []
    assert (await reader.get(ConfigMap, Key(LOW, "a"))).metadata.name == "a"
    assert informer.outside_reads == asked


READS = {
    "list": lambda reader: reader.list(ConfigMap),
    "list of a namespace": lambda reader: reader.list(ConfigMap, namespace=HIGH),
    "head": lambda reader: reader.head(ConfigMap, namespace=HIGH),
    "index": lambda reader: reader.by_index(ConfigMap, "in", HIGH),
    "labels": lambda reader: reader.views_labeled(ConfigMap, "in", HIGH),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_no_read_is_partial_because_a_range_leaves_meanwhile(cache, line, read):
    """A list that lacks the objects of another replica would look as if they were deleted."""
    cache.add_index(ConfigMap, "in", lambda each: [each.metadata.labels["in"]] if each.metadata.labels else [])
    informer = cache.informer(ConfigMap)
    await gained(informer, "shard 1", LOW, MIDDLE)
    await gained(informer, "shard 2", HIGH)
    cache.record_unknown(ConfigMap, Key(LOW, "a"))
    line.open.clear()
    async with Supervisor() as tasks:
        reading = tasks.start(read(cache.reader()), name="read")
        await line.held.wait()
        await informer.lose([RANGE[HIGH]])
        line.open.set()
    found = reading.result()
    keys = {each.key for each in (found if isinstance(found, list) else found.items)}
    assert keys >= {Key(HIGH, "a")}
    assert informer.outside_reads == 1
    assert read is not READS["list"] or len(keys) == 3
