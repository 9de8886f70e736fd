"""The operator cannot undo an effect that is undone already, and so never removes its finalizer."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import FINALIZER, Site, life, with_finalizer, without_finalizer

from steersman import Context, Done, Manager, Request
from steersman.simulation import ExternalSystem

BANK = ExternalSystem("bank")


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    def close(account: str) -> None:
        if BANK.objects.pop(account, None) is None and wrong:
            raise ValueError("there is no such account")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None:
            return Done()
        has_finalizer = FINALIZER in (site.metadata.finalizers or ())
        if site.deleting:
            if has_finalizer:
                await BANK.call("close", str(site.key), lambda: close(site.uid))
                site.metadata.finalizers = without_finalizer(site)
                await ctx.client.save(site)
            return Done()
        if not has_finalizer:
            site.metadata.finalizers = with_finalizer(site)
            await ctx.client.save(site)
        await BANK.call("open", str(site.key), lambda: BANK.add({"owner": site.key.name}, site.uid))
        return Done()

    manager.controller(Site).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="It fails to close an account that is closed already: after a lost reply the Site is never deleted.",
    setup=setup,
    workload=life,
    shown_by=("crash after commit", "lost reply"),
    words="the run did not settle",
)
