"""The operator logs a failed write, and reports success."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, config_map, creation

from steersman import Context, Done, Manager, Request
from steersman.errors import ApiError
from steersman.kinds.core_v1 import ConfigMap


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        try:
            await ctx.client.apply(config_map(site), owner=site, force=True)
        except ApiError as error:
            ctx.logger.info("the child could not be written: %s", error)
            if not wrong:
                raise
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="A write that failed is not tried again.",
    setup=setup,
    workload=creation,
    shown_by=("lost request",),
    words="configmaps default/home is missing",
)
