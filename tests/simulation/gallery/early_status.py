"""The operator notes an effect before it has happened."""

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
        site.ensure_status().account = site.key.name
        if wrong:
            await ctx.client.save(site)
        await BANK.call("open", str(site.key), lambda: BANK.add({"owner": site.key.name}, site.uid))
        if not wrong:
            await ctx.client.save(site)
        return Done()

    manager.controller(Site).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="After a crash in between, the status says that there is an account, and there is none.",
    setup=setup,
    workload=creation,
    shown_by=("crash before sending", "crash after commit", "crash after reply", "lost request"),
    words="bank 1 is missing",
)
