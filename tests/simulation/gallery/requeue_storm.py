"""The operator asks to run again at once, each time."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, config_map, creation

from steersman import Context, Done, Manager, Request, RequeueAfter
from steersman.kinds.core_v1 import ConfigMap


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done | RequeueAfter:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        await ctx.client.apply(config_map(site), owner=site, force=True)
        return RequeueAfter(0) if wrong else Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="It polls its own cache without a pause.",
    setup=setup,
    workload=creation,
    words="again and again",
)
