"""The operator deletes an object by its name alone."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, create, delete

from steersman import Context, Done, Manager, Request
from steersman.simulation import ScenarioUser


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is not None and site.spec.text == "expired":
            if wrong:
                await ctx.client.delete(Site, request.key, missing_ok=True)
            else:
                await ctx.client.delete(site, missing_ok=True)
        return Done()

    manager.controller(Site).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    await create(user, text="expired")
    await user.sleep(10)
    await delete(user)
    await create(user, text="new")
    await user.sleep(60)
    await user.settled()


EXHIBIT = Exhibit(
    defect="A delete that arrives late meets the object that the user has created in the meantime.",
    setup=setup,
    workload=workload,
    shown_by=("partition",),
    words="sites default/home is missing",
)
