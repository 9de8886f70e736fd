"""The operator reports a text in its status before it serves that text."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, change_of_text, config_map

from steersman import Context, Done, Manager, Request
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import Objects, always


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        site.ensure_status().text = site.spec.text
        if wrong:
            await ctx.client.save(site)
        await ctx.client.apply(config_map(site), owner=site, force=True)
        if not wrong:
            await ctx.client.save(site)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


def is_truthful(objects: Objects) -> bool:
    for site in objects.list(Site):
        child = objects.get(ConfigMap, str(site.key))
        if child is not None and site.status is not None and site.status.text == "b":
            return child.data != {"text": "a"}
    return True


EXHIBIT = Exhibit(
    defect="It reports the new text before the child holds it.",
    setup=setup,
    workload=change_of_text,
    checks=(always(is_truthful, "no child holds the old text when the status reports the new one"),),
    words="no child holds the old text when the status reports the new one",
)
