"""Ordered deletion of an object that is itself a child of an ordered operator."""

from __future__ import annotations

from samples.postgres import settings
from steersman import Manager, MergePatch, ObjectMeta, Resource, Spec, Status
from steersman.controller import Done
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.patterns import Next, Outputs, StateMachine, state
from steersman.testing import eventually

GROUP = "ordered.test.steersman.dev"
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
STOPPING = "example.com/stopping"


class Empty(Spec):
    pass


class Database(Resource[Empty, Status], group=GROUP, version="v1"):
    """A disk, then a server that takes a while to stop."""


class Shop(Resource[Empty, Status], group=GROUP, version="v1"):
    """An application with a Database."""


class Databases(StateMachine[Database], children=(ConfigMap, Secret), ordered_deletion=True):
    @state(condition="DiskReady")
    async def disk(self, database: Database, out: Outputs) -> Next:
        out.apply(Secret(metadata=ObjectMeta(name="disk")))
        return Next()

    @state(condition="ServerReady")
    async def server(self, database: Database, out: Outputs) -> Done:
        server = settings("server")
        server.metadata.finalizers = [STOPPING]
        out.apply(server)
        return Done()


class Shops(StateMachine[Shop], children=(Database, Secret), ordered_deletion=True):
    @state(condition="AccountReady")
    async def account(self, shop: Shop, out: Outputs) -> Next:
        out.apply(Secret(metadata=ObjectMeta(name="account")))
        return Next()

    @state(condition="DatabaseReady")
    async def database(self, shop: Shop, out: Outputs) -> Done:
        out.apply(Database(metadata=ObjectMeta(name="db"), spec=Empty()))
        return Done()


def managed(machine, name):
    manager = Manager(name=name)
    manager.add(machine)
    return manager


async def test_the_order_of_a_childs_own_operator_holds(control_plane):
    """The outer operator waits for the database, whose operator keeps the disk until the server has stopped."""
    client = control_plane.client
    shops, databases = managed(Shops(), "shops"), managed(Databases(), "databases")
    async with control_plane.running(shops) as outer, control_plane.running(databases) as inner:
        await client.create(Shop(metadata=ObjectMeta(name="shop"), spec=Empty()))
        await eventually(client, Shop, "shop", has=READY)
        await client.delete(Shop, "shop")
        await eventually(client, ConfigMap, "server", lambda server: server.deleting)
        await outer.drained()
        await inner.drained()
        await control_plane.drained()
        disk = await client.find(Secret, "disk")
        assert disk is not None
        assert not disk.deleting
        assert "foregroundDeletion" not in ((await client.get(Database, "db")).metadata.finalizers or ())
        assert await client.find(Secret, "account") is not None
        await client.patch(ConfigMap, "server", MergePatch({"metadata": {"finalizers": None}}))
        await eventually(client, Shop, "shop", gone=True)
        assert await client.find(Database, "db") is None
        assert await client.find(Secret, "account") is None
