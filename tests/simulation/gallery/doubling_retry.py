"""The operator repeats a payment when it gets no answer."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, creation

from steersman import Context, Done, Manager, Request
from steersman.simulation import ExternalFailure, ExternalSystem

BANK = ExternalSystem("bank")
ATTEMPTS = 3


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def pay(site: Site) -> None:
        idempotency_key = "" if wrong else site.uid
        for _ in range(ATTEMPTS):
            try:
                await BANK.call("pay", str(site.key), lambda: BANK.add({"crowns": 12}, idempotency_key))
            except ExternalFailure:
                continue
            return
        raise ExternalFailure("the bank does not answer")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting or site.ensure_status().ready:
            return Done()
        await pay(site)
        site.ensure_status().ready = True
        await ctx.client.save(site)
        return Done()

    manager.controller(Site).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="The first payment may have happened, though its reply was lost.",
    setup=setup,
    workload=creation,
    shown_by=("lost reply",),
    words="bank 2 is left behind",
)
