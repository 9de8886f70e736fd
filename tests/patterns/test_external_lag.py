"""An outside whose list lags behind what it made, one that hangs, and objects that are as old as the run."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from samples.postgres import Postgres, managed, postgres, settings
from samples.site import Site, SiteSpec
from steersman import MergePatch, ObjectMeta
from steersman.controller import Done
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import Absent, External, Next, Outputs, Present, StateMachine, Wait, finalizer, state
from steersman.patterns.external.entries import Start
from steersman.testing import eventually

READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


class Cloud:
    """Makes at once, and never shows what it made; some looks hang."""

    def __init__(self, *, hangs=""):
        self.disks, self.made, self.hangs = {}, 0, hangs

    async def find(self, key):
        if self.hangs and key.key.name.startswith(self.hangs):
            await asyncio.sleep(600)

    async def create(self, key, pg):
        self.made += 1
        self.disks[f"disk-{self.made}"] = key.uid
        return f"disk-{self.made}"

    async def delete(self, key, found):
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
        match self.disks.ensure(pg):
            case Present():
                return Done()
            case pending:
                return pending.wait

    @finalizer
    async def clean_up(self, pg: Postgres, out: Outputs) -> Done | Wait:
        match self.disks.remove(pg):
            case Absent():
                return Done()
            case pending:
                return pending.wait


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


def test_things_that_nobody_removes_are_refused():
    class Careless(StateMachine[Postgres]):
        def __init__(self, **options):
            self.disks = External(Cloud(), name="disk", **options)

        @state(condition="DiskReady")
        async def disk(self, pg: Postgres, out: Outputs) -> Done:
            return Done()

    with pytest.raises(TypeError) as error:
        Careless().plan()
    assert str(error.value) == (
        "class Careless: nothing removes what external disk creates, because the class has no"
        " finalizer; write @finalizer async def clean_up(self, obj, out) -> Done | Wait that calls"
        " remove(obj), or pass keep=True to External(...) if it should outlive the object"
    )
    assert Careless(keep=True).plan().name == "postgres"


@pytest.mark.parametrize(
    ("seconds", "appeared", "older"),
    [(-1, True, True), (0, False, True), (0, True, False), (1, False, False)],
)
def test_an_object_of_the_same_second_is_new_if_it_was_seen_to_appear(seconds, appeared, older):
    wall = datetime(2030, 1, 1, 12, 0, 0, 500_000, tzinfo=UTC)
    created = wall.replace(microsecond=0) + timedelta(seconds=seconds)
    site = Site(metadata=ObjectMeta(name="web", creation_timestamp=created), spec=SiteSpec(image="web:1"))
    assert Start(0.0, wall).follows(site, appeared=appeared) is older
