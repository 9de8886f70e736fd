"""The operator lets the server choose the name of a child, and notes it afterwards."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, config_map, life

from steersman import Context, Done, Key, Manager, Request
from steersman.kinds.core_v1 import ConfigMap


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        status = site.ensure_status()
        child = config_map(site)
        if wrong:
            if status.child and await ctx.client.find(ConfigMap, Key(site.key.namespace, status.child)):
                return Done()
            child.metadata.name, child.metadata.generate_name = None, f"{site.key.name}-"
            child = await ctx.client.create(child, owner=site)
        else:
            child = await ctx.client.apply(child, owner=site, force=True)
        status.child = child.key.name
        await ctx.client.save(site)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="Each attempt creates a child under a new name: a crash before the name is noted leaves one behind.",
    setup=setup,
    workload=life,
    shown_by=("crash after commit", "crash after reply", "lost reply"),
    words="configmaps default/home-*2 is left behind",
)
