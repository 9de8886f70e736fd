"""The operator sets its finalizer after the effect that the finalizer is for."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import FINALIZER, Site, create, delete, with_finalizer, without_finalizer

from steersman import Context, Done, Manager, Request
from steersman.simulation import ExternalSystem, ScenarioUser

BANK = ExternalSystem("bank")


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def open_account(site: Site) -> None:
        await BANK.call("open", str(site.key), lambda: BANK.add({"owner": site.key.name}, site.uid))

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None:
            return Done()
        has_finalizer = FINALIZER in (site.metadata.finalizers or ())
        if site.deleting:
            if has_finalizer:
                await BANK.call("close", str(site.key), lambda: BANK.objects.pop(site.uid, None))
                site.metadata.finalizers = without_finalizer(site)
                await ctx.client.save(site)
            return Done()
        if not has_finalizer:
            if wrong:
                await open_account(site)
            site.metadata.finalizers = with_finalizer(site)
            await ctx.client.save(site)
        if not wrong:
            await open_account(site)
        return Done()

    manager.controller(Site).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    await create(user)
    await user.sleep(0.5)
    await delete(user)
    await user.settled()


EXHIBIT = Exhibit(
    defect="A Site that is deleted between the effect and the finalizer leaves its account behind.",
    setup=setup,
    workload=workload,
    shown_by=("crash before sending", "crash after commit", "slow server"),
    words="bank 1 is left behind",
)
