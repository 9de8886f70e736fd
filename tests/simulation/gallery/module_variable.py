"""The operator keeps the numbers of revisions in a variable of its module."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, change_of_text, config_map

from steersman import Context, Done, Manager, Request
from steersman.kinds.core_v1 import ConfigMap

#: The numbers of the revisions, by uid and generation. A process that starts again has none.
NUMBERS: dict[tuple[str, int], int] = {}


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        number = NUMBERS.setdefault((site.uid, site.generation), len(NUMBERS) + 1) if wrong else site.generation
        await ctx.client.apply(config_map(site, name=f"{site.key.name}-{number}"), owner=site, force=True)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="A restart forgets the numbers, and the operator writes over the first child.",
    setup=setup,
    workload=change_of_text,
    shown_by=("crash before sending",),
    words="configmaps default/home-2 is missing",
)
