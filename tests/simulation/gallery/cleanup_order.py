"""The operator deletes the child that says what else is to be cleaned up."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import FINALIZER, Site, config_map, life, with_finalizer, without_finalizer

from steersman import Context, Done, Manager, Request
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import ExternalSystem

BANK = ExternalSystem("bank")


async def clean_up(ctx: Context, site: Site, *, wrong: bool) -> None:
    child = await ctx.client.find(ConfigMap, site.key)
    if child is None:
        return
    account = (child.data or {})["account"]
    if wrong:
        await ctx.client.delete(child, missing_ok=True)
    await BANK.call("close", str(site.key), lambda: BANK.objects.pop(account, None))
    if not wrong:
        await ctx.client.delete(child, missing_ok=True)


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None:
            return Done()
        has_finalizer = FINALIZER in (site.metadata.finalizers or ())
        if site.deleting:
            if has_finalizer:
                await clean_up(ctx, site, wrong=wrong)
                site.metadata.finalizers = without_finalizer(site)
                await ctx.client.save(site)
            return Done()
        if not has_finalizer:
            site.metadata.finalizers = with_finalizer(site)
            await ctx.client.save(site)
        account = {"owner": site.key.name}
        opened = await BANK.call("open", str(site.key), lambda: BANK.add(account, f"of-{site.key.name}"))
        await ctx.client.apply(config_map(site, account=opened), owner=site, force=True)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="After a crash, no object tells which account to close.",
    setup=setup,
    workload=life,
    shown_by=("crash after commit", "crash after reply", "lost reply"),
    words="bank 1 is left behind",
)
