"""The cache of a replica of shards, whose ranges come and go while kinds cannot be read, or come and go too. In virtual time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from cache.test_bad_servers import JSON, status

from samples.eventually import eventually
from samples.virtual_time import run_virtual
from steersman import Client, Done, ObjectMeta
from steersman.aio import Supervisor
from steersman.apiserver import ApiServer
from steersman.controller import controller_for
from steersman.errors import StatusError
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret, Service, ServiceAccount, ServiceSpec
from steersman.manager import Shards
from steersman.manager.shards.holdings import Holdings
from steersman.manager.shards.membership import Membership
from steersman.manager.shards.sharded_cache import ShardedCache
from steersman.manager.terms.membership_term import MembershipTerm
from steersman.transport import InProcessTransport, ServerResponse
from steersman.wire import HashRange, namespace_hash

#: Both halves of all hashes, and a namespace in each.
LOW, HIGH = HashRange().split(2**63)
LOW_NAME = next(name for name in map(str, range(100)) if LOW.contains(namespace_hash(name)))
HIGH_NAME = next(name for name in map(str, range(100)) if HIGH.contains(namespace_hash(name)))


class Line:
    """The way to the server, which answers reads of some resources with an error, or not at all."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self.failing: dict[str, int] = {}
        self.silent: set[str] = set()

    async def __call__(self, request):
        resource = request.path.rpartition("/")[2]
        if request.method == "GET" and resource in self.silent:
            await asyncio.get_running_loop().create_future()
        if request.method == "GET" and (code := self.failing.get(resource)) is not None:
            reason = "Forbidden" if code == 403 else "InternalError"
            return ServerResponse(status=code, headers=JSON, body=status(code, reason))
        return await self._server.handler(request)


class World:
    """A cache of ConfigMaps, which are divided, and of Secrets and Namespaces, which are whole."""

    def __init__(self, line: Line, client: Client, cache: ShardedCache, tasks: Supervisor) -> None:
        self.tasks = tasks
        self.line = line
        self.client = client
        self.cache = cache
        self.holdings = cache.holdings = Holdings(lease=15.0)

    def informer(self, kind):
        return self.cache.informers()[kind]

    async def gain(self, *ranges):
        """Take ranges; return what holds them when they have begun."""
        holding = self.holdings.take(ranges)
        async with asyncio.timeout(120):
            await self.cache.gain(holding)
        holding.begun = True
        self.cache.show(holding)
        return holding


async def _outcome(read):
    try:
        return await read
    except StatusError as error:
        return error


async def _reconcile(ctx, request):
    return Done()


def blueprint(kind, name, *watched):
    builder = controller_for(kind, name=name)
    for each in watched:
        builder = builder.watches(each, map=lambda obj: [])
    return builder.run_with(_reconcile)


@asynccontextmanager
async def opened():
    async with ApiServer(kinds=["v1"], feature_gates={"ShardedListAndWatch": True}) as server:
        line = Line(server)
        async with Client(InProcessTransport(line), field_manager="sharer") as client:
            for name in (LOW_NAME, HIGH_NAME):
                await client.create(Namespace(metadata=ObjectMeta(name=name)))
                await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace=name)))
            async with ShardedCache(client, kinds={}, shards=Shards("sharer")) as cache:
                cache.hold(blueprint(ConfigMap, "shared", Secret), blueprint(Namespace, "whole"))
                await eventually(lambda: all(informer.synced for informer in cache.informers().values()))
                async with Supervisor() as tasks:
                    yield World(line, client, cache, tasks)


def in_world(work):
    async def run():
        async with opened() as world:
            await work(world)

    run_virtual(run())


@pytest.mark.parametrize("code", [403, 500])
@pytest.mark.parametrize("resource", ["secrets", "configmaps"])
def test_a_kind_that_cannot_be_read_does_not_keep_a_range_from_beginning(resource, code):
    """The range would stand still for all controllers, and its owner would look alive."""

    async def work(world):
        world.line.failing[resource] = code
        await world.gain(LOW)
        kind = Secret if resource == "secrets" else ConfigMap
        reader = world.cache.reader()
        await world.client.create(Secret(metadata=ObjectMeta(name="late", namespace=LOW_NAME)))
        read = world.tasks.start(_outcome(reader.list(kind, namespace=LOW_NAME)), name="read")
        await asyncio.sleep(1)
        if (resource, code) == ("secrets", 500):
            assert not read.done(), "the store may be older than the last writes of the owner before"
        else:
            assert isinstance(await read, StatusError), "it went to the server"
        world.line.failing.clear()
        await asyncio.sleep(60)
        await asyncio.wait([read])
        names = [each.metadata.name for each in await reader.list(kind, namespace=LOW_NAME)]
        assert names == ["late" if kind is Secret else "a"]
        assert world.informer(kind).readable
        assert world.informer(kind).covers(LOW_NAME)

    in_world(work)


@pytest.mark.parametrize("kind", [Secret, ConfigMap])
def test_a_kind_that_leaves_the_cache_ends_the_wait_for_it(kind):
    """Its controller was removed while its list took long."""

    async def work(world):
        world.line.silent.add("secrets" if kind is Secret else "configmaps")
        gaining = world.tasks.start(world.gain(LOW), name="gain")
        await asyncio.sleep(1)
        assert not gaining.done()
        world.cache.let_go("shared")
        await gaining

    in_world(work)


# a kind that is cached from the middle of a term on, such as one that a reconcile reads first


def test_a_kind_that_joins_in_a_later_term_follows_the_ranges_of_that_term_alone():
    """With those of the term before, two watches would feed one key, and half of all objects look like all."""

    async def work(world):
        membership = Membership(Shards("sharer"), "sharer-a", "program")
        for ranges in ((LOW,), (HashRange(),)):
            term = MembershipTerm(
                membership,
                Shards("sharer"),
                world.client,
                world.cache,
                controllers=tuple,
                deadline=lambda: 1e9,
                renew=lambda: None,
            )
            world.holdings = membership.holdings
            await world.gain(*ranges)
            if ranges == (LOW,):
                await world.gain(HIGH)
                await term.end()
                membership.begin()
                assert [*world.cache.informer(Service).scopes] == []
        late = world.cache.informer(ServiceAccount)
        assert [late.scopes.selector(scope).ranges for scope in late.scopes] == [(HashRange(),)]

    in_world(work)


def test_a_kind_that_joins_while_a_range_drains_follows_the_others():
    """The reconciles that drain read the kind from the server."""

    async def work(world):
        await world.gain(LOW)
        await world.gain(HIGH)
        world.holdings.drain((LOW,))
        late = world.cache.informer(ServiceAccount)
        assert [late.scopes.selector(scope).ranges for scope in late.scopes] == [(HIGH,)]
        assert (late.covers(LOW_NAME), late.covers(None)) == (False, False)
        await eventually(lambda: late.covers(HIGH_NAME))

    in_world(work)


def test_a_kind_that_joins_before_a_range_has_begun_is_shown_when_it_begins():
    """Until then its events lead to requests that are not admitted: they would be lost."""

    async def work(world):
        admitted = []

        def handle(event):
            admitted.append((event.key.namespace, holding.begun))

        holding = world.holdings.take((LOW,))
        await world.cache.gain(holding)
        late = world.cache.informer(Service)
        late.add_handler(handle)
        await world.client.create(
            Service(metadata=ObjectMeta(name="a", namespace=LOW_NAME), spec=ServiceSpec(cluster_ip="None"))
        )
        await eventually(lambda: len(late.store) == 1)
        await asyncio.sleep(1)
        holding.begun = True
        world.cache.show(holding)
        await eventually(lambda: admitted)
        assert set(admitted) == {(LOW_NAME, True)}

    in_world(work)
