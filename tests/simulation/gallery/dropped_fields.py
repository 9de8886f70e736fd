"""The operator replaces a Site with one that it has built anew."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, annotate, change, creation

from steersman import Context, Done, Manager, ObjectMeta, Request
from steersman.simulation import ScenarioUser

SEEN = "gallery.example.com/seen"


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        annotations = site.metadata.annotations or {}
        if annotations.get(SEEN) == site.spec.text:
            return Done()
        if wrong:
            version, (namespace, name) = site.metadata.resource_version, site.key
            metadata = ObjectMeta(namespace=namespace, name=name, resource_version=version)
            site = Site(metadata=metadata, spec=site.spec)
            annotations = {}
        site.metadata.annotations = {**annotations, SEEN: site.spec.text}
        await ctx.client.update(site)
        return Done()

    manager.controller(Site).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    await creation(user)
    await annotate(user, Site, "home", "keep this")
    await change(user, "b")
    await user.settled()
    site = await user.client.get(Site, "default/home")
    assert "note" in (site.metadata.annotations or {}), "the user's note is gone"


EXHIBIT = Exhibit(
    defect="A PUT of an object that it did not read drops what others wrote into it.",
    setup=setup,
    workload=workload,
    words="the user's note is gone",
)
