"""An outside whose list lags behind what it made, one that hangs, and objects that are as old as the run."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from samples.externals import settled
from samples.postgres import Postgres, managed, postgres, settings
from steersman import Manager, MergePatch
from steersman.aio import Supervisor, bind, unbind, utc_now
from steersman.controller import Done
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import External, Next, Outputs, StateMachine, Wait, finalizer, state
from steersman.testing import eventually

READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


class Cloud:
    """Makes at once, and never shows what it made; some looks hang."""

    def __init__(self, *, hangs=""):
        self.disks, self.made, self.hangs = {}, 0, hangs

    async def find(self, key, obj):
        if self.hangs and key.key.name.startswith(self.hangs):
            await asyncio.sleep(600)

    async def create(self, key, pg):
        self.made += 1
        self.disks[f"disk-{self.made}"] = key.uid
        return f"disk-{self.made}"

    async def delete(self, key, obj, found):
        del self.disks[found]


class Disks(StateMachine[Postgres], children=(ConfigMap,)):
    def __init__(self, cloud, **options):
        self.disks = External(cloud, name="disk", **options)

    def declare(self, controller):
        controller.options(concurrency=2)

    @state(condition="Noted")
    async def note(self, pg: Postgres, out: Outputs) -> Next:
        out.apply(settings(pg.key.name))
        return Next()

    @state(condition="DiskReady")
    async def disk(self, pg: Postgres, out: Outputs) -> Done | Wait:
        return settled(self.disks.ensure(pg))

    @finalizer
    async def clean_up(self, pg: Postgres, out: Outputs) -> Done | Wait:
        return settled(self.disks.remove(pg))


async def test_what_create_answered_with_is_neither_made_again_nor_left_behind(control_plane):
    """It also holds by default that an object which came into being during the run is not waited for."""
    cloud, client = Cloud(), control_plane.client
    async with control_plane.running(managed(Disks(cloud))):
        await client.create(postgres())
        await eventually(client, Postgres, "pg", has=READY)
        await client.patch(Postgres, "pg", MergePatch({"spec": {"replicas": 2}}))
        seen = {"metadata": {"generation": 2}, "status": {"observedGeneration": 2}}
        await eventually(client, Postgres, "pg", has={**seen, "status": {**READY["status"], **seen["status"]}})
        assert cloud.made == 1
        await client.delete(Postgres, "pg")
        await eventually(client, Postgres, "pg", gone=True)
        assert not cloud.disks


async def test_an_outside_that_hangs_does_not_hold_up_other_objects(control_plane):
    cloud, client = Cloud(), control_plane.client
    async with control_plane.running(managed(Disks(cloud))):
        for number in range(12):
            await client.create(postgres(f"slow-{number}"))
        for number in range(12):
            await eventually(client, Postgres, f"slow-{number}", has=READY)
    cloud.hangs = "slow"
    loop = asyncio.get_running_loop()
    async with control_plane.running(managed(Disks(cloud, workers=64)), crashes=True):
        began, rounds = loop.time(), []
        for number in range(12):
            waits = {"conditions": [{"type": "DiskReady", "status": "False", "reason": "ExternalPending"}]}
            await eventually(client, Postgres, f"slow-{number}", has={"status": waits})
            rounds.append(loop.time() - began)
        # one round of waiting, whatever the number of objects and workers
        assert rounds[-1] < 3 * rounds[0] + 5, rounds


def test_things_without_a_removal_are_refused():
    class Careless(StateMachine[Postgres]):
        def __init__(self, **options):
            self.disks = External(Cloud(), name="disk", **options)

        @state(condition="DiskReady")
        async def disk(self, pg: Postgres, out: Outputs) -> Done:
            return Done()

    with pytest.raises(TypeError) as error:
        Careless().blueprint()
    assert str(error.value) == (
        "class Careless: nothing removes what external disk creates, because the class has no"
        " finalizer; write @finalizer async def clean_up(self, obj, out) -> Done | Wait that calls"
        " remove(obj), or pass keep=True to External(...) if it should outlive the object"
    )
    assert Careless(keep=True).blueprint().name == "postgres"


class Slow(Cloud):
    """A request takes effect some time after it was sent, whatever becomes of its sender."""

    def __init__(self):
        super().__init__()
        self.sent = asyncio.Event()

    async def find(self, key, obj):
        return next((disk for disk, uid in self.disks.items() if uid == key.uid), None)

    async def create(self, key, pg):
        self.sent.set()
        arrived = asyncio.get_running_loop().create_future()

        def arrive():
            self.made += 1
            self.disks[f"disk-{self.made}"] = key.uid
            if not arrived.done():
                arrived.set_result(f"disk-{self.made}")

        asyncio.get_running_loop().call_later(1.0, arrive)
        return await arrived


class Skewed:
    """A wall clock that is behind the one that the server had when it created the objects."""

    def __init__(self, behind):
        self._loop = asyncio.get_running_loop()
        self._start = utc_now() - timedelta(seconds=behind + self._loop.time())

    def now(self):
        return self._start + timedelta(seconds=self._loop.time())


@pytest.mark.both_servers("the server sets the age of an object, by its own clock")
@pytest.mark.parametrize("behind", [3600.0, 0.0, -3600.0], ids=["behind", "same", "ahead"])
async def test_a_restarted_operator_makes_no_second_disk_whatever_its_clock_says(control_plane, behind):
    """The operator was killed during a creation. Its successor has to wait, however new the object looks to its clock."""
    cloud, client, loop = Slow(), control_plane.client, asyncio.get_running_loop()
    owner = control_plane.client_with(field_manager="databases")
    killed = Manager(owner, name="databases", namespaces=(control_plane.namespace,))
    killed.add(Disks(cloud, late=0.0))
    await control_plane.install(Postgres)
    await client.create(postgres())
    async with Supervisor() as tasks:
        tasks.start(killed.run(signals=False), name="killed")
        await cloud.sent.wait()
        tasks.cancel()
    assert not cloud.disks
    bind(loop, clock=Skewed(behind), seed=1)
    try:
        async with control_plane.running(managed(Disks(cloud, late=3.0))):
            await eventually(client, Postgres, "pg", has=READY, within=20)
    finally:
        unbind(loop)
    assert list(cloud.disks.values()) == [(await client.get(Postgres, "pg")).uid]


async def test_a_stopped_operator_lets_a_creation_end(control_plane):
    """A creation that is cut off leaves the next process in doubt for minutes."""
    cloud, client = Slow(), control_plane.client
    async with control_plane.running(managed(Disks(cloud, late=0.0))):
        await client.create(postgres())
        await cloud.sent.wait()
    assert len(cloud.disks) == 1
