"""The operator gives up after the second failure."""

from __future__ import annotations

from collections import Counter

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, config_map, creation

from steersman import Context, Done, Key, Manager, Request, TerminalError
from steersman.errors import ApiError
from steersman.kinds.core_v1 import ConfigMap


def setup(*, wrong: bool) -> Manager:
    manager, failures = Manager(name="gallery"), Counter[Key]()

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        try:
            await ctx.client.apply(config_map(site), owner=site, force=True)
        except ApiError as error:
            failures[request.key] += 1
            if wrong and failures[request.key] == 2:
                raise TerminalError("the child cannot be written") from error
            raise
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="An outage that lasts longer than one retry leaves the child unwritten.",
    setup=setup,
    workload=creation,
    shown_by=("lost request",),
    pairs=5,
    words="configmaps default/home is missing",
)
