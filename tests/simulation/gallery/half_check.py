"""The operator looks for the first of two children, and takes it for both."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, config_map, creation

from steersman import Context, Done, Key, Manager, Request
from steersman.kinds.core_v1 import ConfigMap


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        if wrong and await ctx.client.find(ConfigMap, Key(site.key.namespace, "first")):
            return Done()
        for name in ("first", "second"):
            await ctx.client.apply(config_map(site, name=name), owner=site, force=True)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="A crash between two creations leaves the second undone for ever.",
    setup=setup,
    workload=creation,
    shown_by=("crash before sending", "crash after commit", "crash after reply", "lost request"),
    words="configmaps default/second is missing",
)
