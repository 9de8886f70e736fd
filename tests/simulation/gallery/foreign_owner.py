"""The operator makes a Site the owner of an object in another namespace."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, config_map, create

from steersman import Context, Done, Manager, ObjectMeta, Request
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.objects import owner_reference
from steersman.simulation import Objects, ScenarioUser, at_rest


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        child = config_map(site, namespace="shared" if wrong else site.key.namespace)
        child.metadata.owner_references = [owner_reference(site)]
        await ctx.client.apply(child, force=True)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    await user.client.create(Namespace(metadata=ObjectMeta(name="shared")))
    await create(user)
    await user.settled()


def have_children(objects: Objects) -> bool:
    children = {child.key.name for child in objects.list(ConfigMap)}
    return all(site.key.name in children for site in objects.list(Site))


EXHIBIT = Exhibit(
    defect="The garbage collector looks for the owner in the child's namespace, and deletes the child.",
    setup=setup,
    workload=workload,
    checks=(at_rest(have_children, "every Site has a child"),),
    words="every Site has a child",
)
