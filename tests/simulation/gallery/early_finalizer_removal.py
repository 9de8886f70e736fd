"""The operator removes its finalizer before it has undone the effect outside of the cluster."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import FINALIZER, Site, life, with_finalizer, without_finalizer

from steersman import Context, Done, Manager, Request
from steersman.simulation import ExternalSystem

BANK = ExternalSystem("bank")


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def release(ctx: Context, site: Site) -> None:
        site.metadata.finalizers = without_finalizer(site)
        await ctx.client.save(site)

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None:
            return Done()
        has_finalizer = FINALIZER in (site.metadata.finalizers or ())
        if site.deleting:
            if has_finalizer:
                if wrong:
                    await release(ctx, site)
                await BANK.call("close", str(site.key), lambda: BANK.objects.pop(site.uid, None))
                if not wrong:
                    await release(ctx, site)
            return Done()
        if not has_finalizer:
            site.metadata.finalizers = with_finalizer(site)
            await ctx.client.save(site)
        await BANK.call("open", str(site.key), lambda: BANK.add({"owner": site.key.name}, site.uid))
        return Done()

    manager.controller(Site).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="The Site is gone when the account should be closed: a crash in between leaves the account behind.",
    setup=setup,
    workload=life,
    shown_by=("crash after commit", "crash after reply", "lost request"),
    words="bank 1 is left behind",
)
