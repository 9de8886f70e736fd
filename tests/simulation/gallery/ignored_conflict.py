"""The operator ignores a conflict."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, creation

from steersman import Context, Done, Manager, Request
from steersman.controller import generation_changed
from steersman.errors import Conflict


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        site.ensure_status().text = site.spec.text
        try:
            await ctx.client.save(site)
        except Conflict:
            if not wrong:
                raise
        return Done()

    manager.controller(Site).when(generation_changed()).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="A rejected write is never repeated.",
    setup=setup,
    workload=creation,
    shown_by=("conflict",),
    words="sites default/home: status is absent",
)
