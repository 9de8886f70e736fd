"""The operator cleans up when a Site is gone, by what it remembers of it."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import FINALIZER, Site, life, with_finalizer, without_finalizer

from steersman import Context, Done, Key, Manager, Request
from steersman.simulation import ExternalSystem

BANK = ExternalSystem("bank")


def setup(*, wrong: bool) -> Manager:
    manager, accounts = Manager(name="gallery"), dict[Key, str]()

    async def close(site: Key, account: str) -> None:
        await BANK.call("close", str(site), lambda: BANK.objects.pop(account, None))

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None:
            if wrong and request.key in accounts:
                await close(request.key, accounts[request.key])
            return Done()
        if site.deleting:
            await close(request.key, site.uid)
            site.metadata.finalizers = without_finalizer(site)
            await ctx.client.save(site)
            return Done()
        if not wrong and FINALIZER not in (site.metadata.finalizers or ()):
            site.metadata.finalizers = with_finalizer(site)
            await ctx.client.save(site)
        account = {"owner": site.key.name}
        accounts[request.key] = await BANK.call("open", str(site.key), lambda: BANK.add(account, site.uid))
        return Done()

    manager.controller(Site).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="Without a finalizer, a Site that is deleted while the operator is down leaves its account behind.",
    setup=setup,
    workload=life,
    shown_by=("crash before sending",),
    words="bank 1 is left behind",
)
