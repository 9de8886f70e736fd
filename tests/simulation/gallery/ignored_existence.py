"""The operator takes AlreadyExists for success."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, change, config_map, create

from steersman import Context, Done, Manager, Request
from steersman.errors import AlreadyExists
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import ScenarioUser


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def rewrite(ctx: Context, site: Site, child: ConfigMap) -> None:
        child.data = config_map(site).data
        await ctx.client.update(child)

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        status = site.ensure_status()
        child = await ctx.client.find(ConfigMap, request.key) if status.text else None
        if child is None:
            try:
                await ctx.client.create(config_map(site), owner=site)
            except AlreadyExists:
                if not wrong:
                    await rewrite(ctx, site, await ctx.client.live.get(ConfigMap, request.key))
        elif child.data != config_map(site).data:
            await rewrite(ctx, site, child)
        status.text = site.spec.text
        await ctx.client.save(site)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    await create(user)
    await user.sleep(0.5)
    await change(user, "b")
    await user.settled()


EXHIBIT = Exhibit(
    defect="The object that exists already may hold an older text.",
    setup=setup,
    workload=workload,
    shown_by=("crash after commit", "crash after reply"),
    words='data.text is "a" and should be "b"',
)
