"""The operator remembers in memory what it has seen, and acts on a change of that alone."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, change_of_text, config_map

from steersman import Context, Done, Key, Manager, Request
from steersman.kinds.core_v1 import ConfigMap


def setup(*, wrong: bool) -> Manager:
    manager, seen = Manager(name="gallery"), dict[Key, str]()

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        child = await ctx.client.find(ConfigMap, request.key)
        if child is None:
            await ctx.client.create(config_map(site), owner=site)
        else:
            written = (child.data or {}).get("text")
            before = seen.get(request.key, site.spec.text) if wrong else written
            if before != site.spec.text:
                child.data = {"text": site.spec.text}
                await ctx.client.update(child)
        seen[request.key] = site.spec.text
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="It compares the text with what it remembers, not with what the child holds.",
    setup=setup,
    workload=change_of_text,
    shown_by=("crash before sending",),
    words='data.text is "a" and should be "b"',
)
