"""The operator adopts every ConfigMap with a common label."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, config_map, life

from steersman import Context, Done, Manager, ObjectMeta, Request, set_owner
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import ScenarioUser


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        await ctx.client.apply(config_map(site), owner=site, force=True)
        labels = {"app": "site"} if wrong else {"app": "site", "site": site.key.name}
        for found in await ctx.client.list(ConfigMap, namespace=site.key.namespace, labels=labels):
            if not found.metadata.owner_references:
                set_owner(found, site)
                await ctx.client.update(found)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    notes = ConfigMap(metadata=ObjectMeta(name="notes", namespace="default", labels={"app": "site"}))
    await user.client.create(notes)
    await life(user)
    assert await user.client.find(ConfigMap, "default/notes"), "the user's ConfigMap is gone"
    await user.client.delete(ConfigMap, "default/notes")


EXHIBIT = Exhibit(
    defect="It takes over an object of the user, which is then deleted with the Site.",
    setup=setup,
    workload=workload,
    words="the user's ConfigMap is gone",
)
