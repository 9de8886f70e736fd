"""The operator counts its children in any state that a server has cached: ``resourceVersion=0``."""

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
        version, labels = "0" if wrong else "", {"site": site.key.name}
        if await ctx.client.list(ConfigMap, namespace=site.key.namespace, labels=labels, resource_version=version):
            return Done()
        child = config_map(site)
        child.metadata.name, child.metadata.generate_name = None, f"{site.key.name}-"
        await ctx.client.create(child, owner=site)
        return RequeueAfter(1)

    manager.controller(Site).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="It creates a child whenever a server shows none, and the cache of that server may be old.",
    setup=setup,
    workload=creation,
    shown_by=("lagging server",),
    words="configmaps default/home-*2 is left behind",
)
