"""One actor per key: replicas that share the objects of a program, and join, leave and die meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from steersman import Client, ObjectMeta
from steersman.aio import Supervisor
from steersman.apiserver import ApiServer
from steersman.controller import Context, Done, Request
from steersman.errors import ConnectionFailed
from steersman.kinds.coordination_v1 import Lease
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret
from steersman.manager import Manager
from steersman.manager.shards.settings import Shards
from steersman.objects import OwnerReference
from steersman.transport import InProcessTransport

NAMESPACES = [f"ns-{number:02}" for number in range(60)]
TIMES = {"lease": 6.0, "renew": 4.5, "retry": 0.5}


class Line:
    """A replica's way to the server. Writes are recorded; `cut` lets no more requests through."""

    def __init__(self, replica, writes):
        self._replica, self._writes = replica, writes
        self._inner = None
        self.is_cut = False

    def wrap(self, transport):
        self._inner = transport
        return self

    async def send(self, request, **options):
        if self.is_cut:
            raise ConnectionFailed("the line is cut", sent=False)
        if request.method not in {"GET", "HEAD"} and "leases" not in request.path:
            loop, before = asyncio.get_running_loop(), options.pop("before_send", None)
            entry = [self._replica, request.method, request.path, loop.time(), float("inf")]

            def begin():
                if before is not None:
                    before()
                entry[3] = loop.time()
                self._writes.append(entry)

            try:
                return await self._inner.send(request, before_send=begin, **options)
            finally:
                entry[4] = loop.time()
        return await self._inner.send(request, **options)

    async def close(self):
        pass


class World:
    """A server with objects, and the replicas that work on them."""

    def __init__(self, server, client):
        self.server, self.client = server, client
        self.writes = []
        #: Reconciles: replica, key, begin and end.
        self.runs = []
        self.replicas = {}

    @asynccontextmanager
    async def replica(self, name):
        line = Line(name, self.writes)
        manager = Manager(name="sharer", shards=Shards("sharer", namespace="default", identity=name, **TIMES))

        async def copy(ctx: Context, request: Request) -> Done:
            """Copy the data of a ConfigMap to a Secret of the same name, in a few steps."""
            run = [name, request.key, asyncio.get_running_loop().time(), float("inf")]
            self.runs.append(run)
            try:
                source = await ctx.client.find(ConfigMap, request.key)
                if source is None or not (source.metadata.labels or {}).get("copy"):
                    return Done()
                await asyncio.sleep(0.01)
                reference = OwnerReference(
                    api_version="v1", kind="ConfigMap", name=request.key.name, uid=source.uid, controller=True
                )
                metadata = ObjectMeta(
                    namespace=request.key.namespace, name=request.key.name, owner_references=[reference]
                )
                await ctx.client.apply(Secret(metadata=metadata, string_data={"by": source.data["value"]}))
                return Done()
            finally:
                run[3] = asyncio.get_running_loop().time()

        manager.controller(ConfigMap).owns(Secret).run_with(copy)
        client = Client(InProcessTransport(self.server.handler), field_manager="sharer").with_transport(line.wrap)
        async with Supervisor() as tasks:
            task = tasks.start(manager.run(client, signals=False), name=name)
            self.replicas[name] = (manager, line, task)
            try:
                yield manager
            finally:
                del self.replicas[name]
                manager.stop()

    def begun(self, name):
        membership = self.replicas[name][0]._state.membership
        return () if membership is None else membership.holdings.begun

    def cached(self, name):
        """The namespaces with a source in the cache of a replica."""
        informers = [each for each in self.replicas[name][0].informers if each.gvk.kind == "ConfigMap"]
        return {each.key.namespace for informer in informers for each in informer.store} & {*NAMESPACES}

    async def divided(self, *names, within=120.0):
        """Wait until these replicas work on all hashes, and each has its part."""
        async with asyncio.timeout(within):
            while True:
                found = [self.begun(name) for name in names]
                total = sum(each.width for ranges in found for each in ranges)
                assert total <= 2**64
                if all(found) and total == 2**64:
                    return
                await asyncio.sleep(0.05)

    async def balanced(self, *names, within=120.0):
        """Wait until none of these replicas caches more than half of the namespaces, and all together each once."""
        async with asyncio.timeout(within):
            while True:
                held = [len(self.cached(name)) for name in names]
                if sum(held) == len(NAMESPACES) and max(held) <= 0.5 * len(NAMESPACES):
                    return
                await asyncio.sleep(0.05)

    async def converged(self, value, *, within=120.0):
        """Wait until every Secret has a value."""
        async with asyncio.timeout(within):
            while True:
                secrets = (await self.client.list(Secret)).items
                if len(secrets) == len(NAMESPACES) and all(each.data["by"].decode() == value for each in secrets):
                    return
                await asyncio.sleep(0.1)

    async def change(self, value):
        for namespace in NAMESPACES:
            metadata = ObjectMeta(namespace=namespace, name="source", labels={"copy": "yes"})
            await self.client.apply(ConfigMap(metadata=metadata, data={"value": value}))

    def assert_one_actor(self):
        """No two replicas reconcile a key, or write in a namespace, at the same time."""
        for intervals in (
            [(key.namespace, replica, begin, end) for replica, key, begin, end in self.runs],
            [
                (path.split("/")[4], replica, begin, end)
                for replica, _, path, begin, end in self.writes
                if "/namespaces/ns-" in path
            ],
        ):
            for namespace in NAMESPACES:
                last = {}
                for _, replica, begin, end in sorted(
                    (each for each in intervals if each[0] == namespace), key=lambda each: each[2]
                ):
                    for other, until in last.items():
                        assert other == replica or until <= begin, (namespace, other, until, replica, begin)
                    last[replica] = max(end, last.get(replica, 0.0))


@pytest.fixture(params=[True, False], ids=["gate on", "gate off"])
async def world(request):
    async with (
        ApiServer(
            kinds=["v1", "coordination.k8s.io/v1", "events.k8s.io/v1"],
            feature_gates={"ShardedListAndWatch": request.param},
        ) as server,
        Client(InProcessTransport(server.handler), field_manager="user") as client,
    ):
        for name in ("default", *NAMESPACES):
            await client.apply(Namespace(metadata=ObjectMeta(name=name)))
        world = World(server, client)
        await world.change("one")
        async with asyncio.timeout(600):
            yield world


async def test_replicas_share_the_work(world):
    """Each has a part of the namespaces, in its cache and for its reconciles, and hands it over when it leaves."""
    async with world.replica("a"):
        await world.divided("a")
        await world.converged("one")
        async with world.replica("b"), world.replica("c"):
            await world.divided("a", "b", "c")
            await world.balanced("a", "b", "c")
            await world.change("two")
            await world.converged("two")
            assert {replica for replica, *_ in world.runs} == {"a", "b", "c"}
        await world.divided("a")
        await world.change("three")
        await world.converged("three")
    world.assert_one_actor()


async def test_a_rebalance_of_a_converged_world_writes_nothing(world):
    async with world.replica("a"), world.replica("b"):
        await world.divided("a", "b")
        await world.converged("one")
        before = len(world.writes)
        async with world.replica("c"):
            await world.divided("a", "b", "c")
        await world.divided("a", "b")
        written = {path for _, _, path, *_ in world.writes[before:]}
        assert written <= {f"/api/v1/namespaces/default/configmaps{name}" for name in ("", "/sharer-assignment")}
    world.assert_one_actor()


async def test_a_replica_that_cannot_reach_the_server_is_replaced(world):
    """It ends its work before another one begins, and comes back with an identity that nothing is assigned to."""
    async with world.replica("a"), world.replica("b"):
        await world.divided("a", "b")
        await world.converged("one")
        first = world.replicas["b"][0]._state.membership.state.identity
        world.replicas["b"][1].is_cut = True
        await world.change("two")
        await world.divided("a")
        await world.converged("two")
        assert world.begun("b") == ()
        world.replicas["b"][1].is_cut = False
        await world.divided("a", "b")
        assert world.replicas["b"][0]._state.membership.state.identity != first
        await world.change("three")
        await world.converged("three")
    world.assert_one_actor()
    leases = (await world.client.list(Lease, labels={"steersman.dev/shards": "sharer"})).items
    assert all(not each.spec.holder_identity for each in leases)
