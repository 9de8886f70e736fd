"""Whatever happens to a database and its parts, and whenever the operator is restarted: the world is what the model says."""

from __future__ import annotations

from random import Random  # noqa: TID251 - of this test alone, and seeded
from typing import Any

import pytest

from samples.postgres import Cluster, Postgres, managed, postgres, report, statuses
from steersman import MergePatch
from steersman.kinds.apps_v1 import Deployment
from steersman.kinds.core_v1 import ConfigMap

#: How often the operator is started, and what happens while it runs.
LIVES, STEPS = 4, 12
SUSPEND = "steersman.dev/suspend"


class World:
    """What should be there, from what happened so far."""

    def __init__(self) -> None:
        self.replicas = 1
        self.ready = False
        self.suspended = False
        #: The children that are there.
        self.storage = self.primary = False
        self.made: set[int] = set()
        #: What was last said about the object.
        self.said: dict[str, str] = {}

    def settle(self) -> None:
        """Do what a pass does."""
        if self.suspended:
            self.said |= {"Suspended": "True"}
            return
        self.storage = self.primary = True
        if self.ready:
            self.made = set(range(self.replicas))
        last = "True" if self.ready else "False"
        self.said = {
            "Ready": last,
            "StorageReady": "True",
            "PrimaryReady": last,
            "ReplicasReady": "True" if self.ready else "Unknown",
        }

    @property
    def children(self) -> set[str]:
        names = {f"pg-replica-{number}" for number in self.made}
        return names | ({"pg-storage"} if self.storage else set()) | ({"pg-primary"} if self.primary else set())


class Player:
    """Does something at random, to the world and to the model of it."""

    def __init__(self, plane: Any, chance: Random) -> None:
        self.plane, self.client, self.chance = plane, plane.client, chance
        self.world = World()

    async def act(self) -> None:
        acts = [self.scale, self.flip, self.flip, self.suspend, self.lose, self.drift]
        await self.chance.choice(acts)()

    async def scale(self) -> None:
        self.world.replicas = self.chance.randrange(4)
        await self.client.patch(Postgres, "pg", MergePatch({"spec": {"replicas": self.world.replicas}}))

    async def flip(self) -> None:
        if self.world.primary:
            self.world.ready = not self.world.ready
            await report(self.client, "pg-primary", ready=self.world.ready)

    async def suspend(self) -> None:
        self.world.suspended = not self.world.suspended
        value = "yes" if self.world.suspended else None
        await self.client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {SUSPEND: value}}}))

    async def lose(self) -> None:
        if not self.world.children:
            return
        name = self.chance.choice(sorted(self.world.children))
        await self.client.delete(Deployment if name == "pg-primary" else ConfigMap, name)
        if name == "pg-primary":
            self.world.primary = self.world.ready = False
        elif name == "pg-storage":
            self.world.storage = False
        else:
            self.world.made.discard(int(name.rpartition("-")[2]))

    async def drift(self) -> None:
        if self.world.storage:
            await self.client.patch(ConfigMap, "pg-storage", MergePatch({"data": {"version": "0"}}))

    async def check(self, operator: Any) -> None:
        await operator.drained()
        self.world.settle()
        here = self.plane.namespace
        found = [
            *await self.client.list(ConfigMap, namespace=here),
            *await self.client.list(Deployment, namespace=here),
        ]
        assert {each.key.name for each in found if each.key.name.startswith("pg-")} == self.world.children
        assert statuses(await self.client.get(Postgres, "pg")) == self.world.said
        if not self.world.suspended:
            assert (await self.client.get(ConfigMap, "pg-storage")).data == {"version": "17"}


@pytest.mark.parametrize("seed", range(3))
async def test_the_world_follows_the_model(control_plane, seed):
    player = Player(control_plane, Random(seed))
    await control_plane.install(Postgres)
    await player.client.create(postgres())
    for _ in range(LIVES):
        async with control_plane.running(managed(Cluster())) as operator:
            await player.check(operator)
            for _ in range(STEPS):
                await player.act()
                await player.check(operator)
            with control_plane.writes() as writes:
                await player.client.patch(Postgres, "pg", MergePatch({"metadata": {"annotations": {"look": "again"}}}))
                await operator.drained()
            assert [str(each) for each in writes if each.manager != "test"] == []
        for _ in range(player.chance.randrange(4)):
            await player.act()  # while no operator runs
