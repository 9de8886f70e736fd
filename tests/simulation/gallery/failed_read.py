"""The operator takes a failed read for an empty list, and deletes what is not on it."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, annotate, config_map, creation

from steersman import Context, Done, Manager, Request
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import ExternalFailure, ExternalSystem, ScenarioUser

STOCK = ExternalSystem("stock")


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        try:
            wanted = await STOCK.call("list", str(site.key), lambda: ["apples"])
        except ExternalFailure:
            if not wrong:
                raise
            wanted = []
        for child in await ctx.client.owned_by(ConfigMap, site):
            if child.key.name not in wanted:
                await ctx.client.delete(child, missing_ok=True)
        for name in wanted:
            await ctx.client.apply(config_map(site, name=name), owner=site, force=True)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    await creation(user)
    await annotate(user, ConfigMap, "apples", "ripe in June")
    await annotate(user, Site, "home", "count again")
    await user.settled()


EXHIBIT = Exhibit(
    defect="It deletes children because it could not learn that they are wanted.",
    setup=setup,
    workload=workload,
    shown_by=("lost request", "lost reply"),
    words="configmaps default/apples: metadata.annotations is absent",
)
