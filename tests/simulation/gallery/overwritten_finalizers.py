"""The operator writes its finalizer over those of others."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import FINALIZER, Site, SiteSpec, with_finalizer, without_finalizer

from steersman import Context, Done, Manager, MergePatch, ObjectMeta, Request
from steersman.simulation import ScenarioUser

HOLD = "user.example.com/hold"


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None:
            return Done()
        if site.deleting:
            site.metadata.finalizers = without_finalizer(site)
        elif FINALIZER not in (site.metadata.finalizers or ()):
            site.metadata.finalizers = [FINALIZER] if wrong else with_finalizer(site)
        await ctx.client.save(site)
        return Done()

    manager.controller(Site).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    metadata = ObjectMeta(name="home", namespace="default", finalizers=[HOLD])
    await user.client.create(Site(metadata=metadata, spec=SiteSpec()))
    await user.settled()
    await user.client.delete(Site, "default/home")
    await user.settled()
    assert await user.client.find(Site, "default/home"), "the Site is gone in spite of the user's finalizer"
    await user.client.patch(Site, "default/home", MergePatch({"metadata": {"finalizers": None}}))
    await user.settled()


EXHIBIT = Exhibit(
    defect="It replaces the list of finalizers, and so drops that of the user.",
    setup=setup,
    workload=workload,
    words="the Site is gone in spite of the user's finalizer",
)
