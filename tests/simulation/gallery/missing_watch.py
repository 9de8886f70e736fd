"""The operator does not watch its children."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, config_map, creation

from steersman import Context, Done, Manager, Request
from steersman.kinds.core_v1 import ConfigMap


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        await ctx.client.apply(config_map(site), owner=site, force=True)
        return Done()

    builder = manager.controller(Site)
    if not wrong:
        builder.owns(ConfigMap)
    builder.run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="What happens to a child causes no reconcile: a deleted child stays deleted.",
    setup=setup,
    workload=creation,
    shown_by=("child deleted",),
    words="configmaps default/home is missing",
)
