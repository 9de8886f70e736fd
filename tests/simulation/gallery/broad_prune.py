"""The operator deletes every child that one Site does not want, also those of other Sites."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, change, config_map, create

from steersman import Context, Done, Manager, Request
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import is_owned_by
from steersman.simulation import ScenarioUser


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        wanted = config_map(site, name=f"{site.key.name}-{site.spec.text}")
        await ctx.client.apply(wanted, owner=site, force=True)
        for child in await ctx.client.list(ConfigMap, labels={"site": site.key.name}):
            if child.key != wanted.key and (wrong or is_owned_by(child, site)):
                await ctx.client.delete(child, missing_ok=True)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    await create(user)
    await create(user, namespace="other")
    await user.settled()
    await change(user, "b")
    await user.settled()


EXHIBIT = Exhibit(
    defect="It finds its children by a label that a Site in another namespace uses, too.",
    setup=setup,
    workload=workload,
    words="again and again",
)
