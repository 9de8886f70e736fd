"""The operator deletes a collection by a selector that matches too much."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import (
    FINALIZER,
    Site,
    annotate,
    config_map,
    create,
    delete,
    with_finalizer,
    without_finalizer,
)

from steersman import Context, Done, Manager, Request
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import ScenarioUser


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None:
            return Done()
        if site.deleting:
            labels = {"app": "site"} if wrong else {"site": site.key.name}
            await ctx.client.delete_collection(ConfigMap, namespace=site.key.namespace, labels=labels)
            site.metadata.finalizers = without_finalizer(site)
            await ctx.client.save(site)
            return Done()
        if FINALIZER not in (site.metadata.finalizers or ()):
            site.metadata.finalizers = with_finalizer(site)
            await ctx.client.save(site)
        await ctx.client.apply(config_map(site), owner=site, force=True)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    await create(user)
    await create(user, "shop")
    await user.settled()
    await annotate(user, ConfigMap, "shop", "keep this")
    await delete(user)
    await user.settled()
    child = await user.client.get(ConfigMap, "default/shop")
    assert child.metadata.annotations, "the child of another Site was deleted"


EXHIBIT = Exhibit(
    defect="With one Site it deletes the children of all.",
    setup=setup,
    workload=workload,
    words="the child of another Site was deleted",
)
