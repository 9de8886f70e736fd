"""A server restored from a backup under a running operator with external objects, on both servers."""

import shutil
from collections import Counter
from contextlib import AsyncExitStack

import pytest
from faults.workload import until

from samples.externals import settled
from samples.postgres import Postgres, managed, postgres, settings
from steersman import Client, ControlPlane, MergePatch
from steersman.aio import Supervisor
from steersman.controller import Done
from steersman.errors import ConnectionFailed
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import External, Outputs, StateMachine, Wait, finalizer, state
from steersman.transport import TransportWrapper


class Cloud:
    """Disks with the version of their database."""

    def __init__(self):
        self.disks = {}
        self.calls = Counter()

    async def find(self, key, obj):
        return self.disks.get(key.uid)

    async def create(self, key, pg):
        self.calls["create", key.key.name] += 1
        self.disks[key.uid] = pg.spec.version
        return pg.spec.version

    def up_to_date(self, pg, found):
        return pg.spec.version == found

    async def update(self, key, pg, found):
        self.calls["update", key.key.name, pg.spec.version] += 1
        self.disks[key.uid] = pg.spec.version
        return pg.spec.version

    async def delete(self, key, obj, found):
        self.calls["delete", key.key.name] += 1
        del self.disks[key.uid]


class Disks(StateMachine[Postgres], children=(ConfigMap,)):
    def __init__(self, cloud):
        self.disks = External(cloud, name="disk", late=0.1)
        self.reconciled = []

    @state(condition="DiskReady")
    async def disk(self, pg: Postgres, out: Outputs) -> Done | Wait:
        self.reconciled.append(pg.key.name)
        out.apply(settings(f"{pg.key.name}-settings", version=pg.spec.version))
        return settled(self.disks.ensure(pg))

    @finalizer
    async def clean_up(self, pg: Postgres, out: Outputs) -> Done | Wait:
        return settled(self.disks.remove(pg))


class Gate(TransportWrapper):
    """A connection to whatever server runs now."""

    def __init__(self):
        self._inner = None

    def lead_to(self, transport):
        self._inner = transport

    async def send(self, request, **options):
        if self._inner is None:
            raise ConnectionFailed("the server is down")
        return await super().send(request, **options)


class Embedded:
    """A control plane with a folder that can be exchanged."""

    def __init__(self, folder):
        self.folder, self.copy, self.gate = folder / "data", folder / "copy", Gate()
        self._running = None

    async def start(self):
        self._running = AsyncExitStack()
        plane = await self._running.enter_async_context(ControlPlane(folder=self.folder))
        self.gate.lead_to(plane.transport())

    async def stop(self):
        self.gate.lead_to(None)
        await self._running.aclose()

    def client(self, name):
        return Client(self.gate, field_manager=name, namespace="default")

    async def back_up(self):
        await self.stop()
        shutil.copytree(self.folder, self.copy)
        await self.start()
        return self.copy

    async def restore(self, backup):
        await self.stop()
        shutil.rmtree(self.folder)
        shutil.copytree(backup, self.folder)
        await self.start()


@pytest.fixture(params=["embedded", "engine"])
async def server(request, tmp_path):
    if request.param == "engine":
        engine = request.getfixturevalue("broken_engine")
        async with AsyncExitStack() as stack:
            yield (
                engine,
                [
                    await stack.enter_async_context(engine.client(field_manager=name, namespace="default"))
                    for name in ("user", "databases")
                ],
            )
        return
    embedded = Embedded(tmp_path)
    await embedded.start()
    yield embedded, [embedded.client("user"), embedded.client("databases")]
    await embedded.stop()


@pytest.mark.slow
async def test_what_the_restored_server_says_is_made_true_once(server, caplog):
    server, (client, own) = server
    await client.install(Postgres)
    cloud = Cloud()
    machine = Disks(cloud)
    manager = managed(machine)
    async with Supervisor() as tasks:
        tasks.start(manager.run(own, signals=False), name="operator")
        try:
            for name in ("kept", "edited", "deleted"):
                await client.create(postgres(name, version="1"))
            await until(lambda: sorted(cloud.disks.values()) == ["1"] * 3, "the disks are there")
            backup = await server.back_up()
            await client.patch(Postgres, "edited", MergePatch({"spec": {"version": "2"}}))
            await client.delete(Postgres, "deleted")
            await client.create(postgres("lost", version="1"))
            await until(lambda: sorted(cloud.disks.values()) == ["1", "1", "2"], "the disks followed")
            await until(lambda: not any(each.busy for each in manager.controllers), "nothing is left to do")
            cloud.calls.clear()
            machine.reconciled.clear()
            await server.restore(backup)
            await until(lambda: sorted(cloud.disks.values()) == ["1"] * 4, "the disks are as the server says")
            await client.patch(Postgres, "edited", MergePatch({"spec": {"version": "3"}}))
            await until(lambda: "3" in cloud.disks.values(), "changes are followed as before")
        finally:
            manager.stop()
    # "edited" had generation 2 in both lives, with another spec
    assert cloud.calls == {("update", "edited", "1"): 1, ("create", "deleted"): 1, ("update", "edited", "3"): 1}
    # what was created after the backup does not exist, and no reconcile took it for real
    assert "lost" not in machine.reconciled
    assert "the server was restored from a backup" in caplog.text
    assert await client.find(ConfigMap, "lost-settings") is None
