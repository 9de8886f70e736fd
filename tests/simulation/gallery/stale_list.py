"""The operator counts its children in the cache, and creates them through a client that the cache does not know of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, config_map, creation

from steersman import Client, Context, Done, Manager, Request, RequeueAfter
from steersman.kinds.core_v1 import ConfigMap


def setup(*, wrong: bool) -> Manager:
    manager, clients = Manager(name="gallery"), list[Client]()

    @asynccontextmanager
    async def connected(client: Client) -> AsyncIterator[None]:
        clients.append(client)
        yield

    async def reconcile(ctx: Context, request: Request) -> Done | RequeueAfter:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        reads = ctx.client if wrong else ctx.client.live
        if await reads.exists(ConfigMap, namespace=site.key.namespace, labels={"site": site.key.name}):
            return Done()
        child = config_map(site)
        child.metadata.name, child.metadata.generate_name = None, f"{site.key.name}-"
        await clients[0].create(child, owner=site)
        return RequeueAfter(1)

    manager.before_leading(connected)
    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="It creates a child whenever its cache shows none, and the cache may lag behind.",
    setup=setup,
    workload=creation,
    shown_by=("stale cache", "coalesced events"),
    words="configmaps default/home-*2 is left behind",
)
