"""The operator counts the revisions of a Site in memory, and names its children by that number."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, change_of_text, config_map

from steersman import Context, Done, Key, Manager, Request
from steersman.kinds.core_v1 import ConfigMap


def setup(*, wrong: bool) -> Manager:
    manager, revisions = Manager(name="gallery"), dict[Key, int]()

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        status = site.ensure_status()
        if status.text != site.spec.text:
            revisions[request.key] = revisions.get(request.key, 0) + 1
            number = revisions[request.key] if wrong else site.generation
            status.text, status.child = site.spec.text, f"{site.key.name}-{number}"
            await ctx.client.save(site)
        await ctx.client.apply(config_map(site, name=status.child), owner=site, force=True)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="After a restart it counts from one again, and writes over the first child.",
    setup=setup,
    workload=change_of_text,
    shown_by=("crash before sending", "conflict"),
    words="configmaps default/home-2 is missing",
)
