"""The operator asks another service once, and forgets to ask again when that fails."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, creation

from steersman import Context, Done, Manager, Request, RequeueAfter
from steersman.simulation import ExternalFailure, ExternalSystem

MARKET = ExternalSystem("market")


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done | RequeueAfter:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        try:
            price = await MARKET.call("ask", str(site.key), lambda: "12 crowns")
        except ExternalFailure:
            return Done() if wrong else RequeueAfter(1)
        site.ensure_status().text = price
        await ctx.client.save(site)
        return Done()

    manager.controller(Site).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="No event tells it that the other service works again.",
    setup=setup,
    workload=creation,
    shown_by=("lost request", "lost reply"),
    words="status is absent and should be",
)
