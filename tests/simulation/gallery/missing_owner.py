"""The operator creates a child without an owner reference."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, config_map, life

from steersman import Context, Done, Manager, Request
from steersman.kinds.core_v1 import ConfigMap


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        await ctx.client.apply(config_map(site), owner=None if wrong else site, force=True)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="The garbage collector cannot know that the child belongs to the Site.",
    setup=setup,
    workload=life,
    words="left behind when everything was deleted: configmaps default/home",
)
