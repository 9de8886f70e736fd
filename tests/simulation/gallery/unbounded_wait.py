"""The operator waits within a reconcile for what may never come."""

from __future__ import annotations

import asyncio

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, creation

from steersman import Context, Done, Key, Manager, ObjectMeta, Request
from steersman.controller import View
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import ScenarioUser


def permitted(permit: View[ConfigMap]) -> list[Key]:
    return [permit.key] if permit.key.name == "home" else []


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        while not await ctx.client.find(ConfigMap, request.key):
            if not wrong:
                return Done()
            await asyncio.sleep(30)
        site.ensure_status().ready = True
        await ctx.client.save(site)
        return Done()

    manager.controller(Site).watches(ConfigMap, map=permitted).options(timeout=None).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    await creation(user)
    await user.client.create(ConfigMap(metadata=ObjectMeta(name="home", namespace="default")))
    await user.settled()


EXHIBIT = Exhibit(
    defect="The reconcile holds its worker for as long as the permit is missing.",
    setup=setup,
    workload=workload,
    words="the run did not settle",
)
