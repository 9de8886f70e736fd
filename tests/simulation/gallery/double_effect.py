"""The operator opens an account without an idempotency key."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, creation

from steersman import Context, Done, Manager, Request
from steersman.simulation import ExternalSystem

BANK = ExternalSystem("bank")


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting or site.ensure_status().account:
            return Done()
        idempotency_key = "" if wrong else site.uid
        account = {"owner": site.key.name}
        opened = await BANK.call("open", str(site.key), lambda: BANK.add(account, idempotency_key))
        site.ensure_status().account = opened
        await ctx.client.save(site)
        return Done()

    manager.controller(Site).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="The effect outside of the cluster is not idempotent: a crash before it is noted repeats it.",
    setup=setup,
    workload=creation,
    shown_by=("crash after commit", "lost reply"),
    words="bank 2 is left behind",
)
