"""Two Sites write one child, each its own text."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, config_map, create

from steersman import Context, Done, Manager, Request, set_owner
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import ScenarioUser


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        child = config_map(site, name="front" if wrong else f"{site.key.name}-front")
        set_owner(child, site, controller=False)
        await ctx.client.apply(child, force=True)
        return Done()

    manager.controller(Site).owns(ConfigMap, any_owner=True).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    await create(user)
    await create(user, "shop", text="b")
    await user.settled()


EXHIBIT = Exhibit(
    defect="One object has two owners that disagree: each reverts the other's change.",
    setup=setup,
    workload=workload,
    words="again and again",
)
