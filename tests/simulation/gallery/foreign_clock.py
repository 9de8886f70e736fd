"""The operator compares its own clock with that of the server."""

from __future__ import annotations

from datetime import timedelta

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, config_map, creation

from steersman import Context, Done, Manager, Request, utc_now
from steersman.kinds.core_v1 import ConfigMap

DEADLINE = timedelta(seconds=115)


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        child = await ctx.client.apply(config_map(site), owner=site, force=True)
        began, ended = site.metadata.creation_timestamp, child.metadata.creation_timestamp
        assert began is not None
        assert ended is not None
        in_time = (utc_now() if wrong else ended) - began < DEADLINE
        site.ensure_status().text = "in time" if in_time else "too late"
        await ctx.client.save(site)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="Two clocks may differ by minutes.",
    setup=setup,
    workload=creation,
    shown_by=("clock skew",),
    words='status.text is "too late" and should be "in time"',
)
