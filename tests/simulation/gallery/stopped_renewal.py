"""The operator plans the next renewal when it renews, and not when it finds that nothing is due."""

from __future__ import annotations

from datetime import datetime, timedelta

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, config_map, creation

from steersman import Context, Done, Manager, Request, RequeueAfter, utc_now
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import ScenarioUser

LIFE = timedelta(hours=1)


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done | RequeueAfter:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        child, now = await ctx.client.find(ConfigMap, site.key), utc_now()
        due = datetime.fromisoformat(child.data["due"]) if child and child.data and "due" in child.data else now
        is_due = due <= now
        if is_due:
            due = now + LIFE
        await ctx.client.apply(config_map(site, due=due.isoformat()), owner=site, force=True)
        if wrong and not is_due:
            return Done()
        return RequeueAfter((due - now).total_seconds() + 1)

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    await creation(user)
    await user.sleep(2 * LIFE.total_seconds())
    await user.settled()


EXHIBIT = Exhibit(
    defect="A process that starts when nothing is due never renews again.",
    setup=setup,
    workload=workload,
    shown_by=("crash before sending", "crash after commit", "lost reply"),
    words="configmaps default/home: data.due is not renewed as time passes",
)
