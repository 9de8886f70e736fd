"""Two controllers of one kind write the time of each reconcile into its status, and so wake each other."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, creation

from steersman import Context, Done, Manager, MergePatch, Request, utc_now


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    def stamping(field: str) -> None:
        async def reconcile(ctx: Context, request: Request) -> Done:
            site = await ctx.client.find(Site, request.key)
            if site is None or site.deleting:
                return Done()
            if wrong or not getattr(site.ensure_status(), field):
                patch = MergePatch({"status": {field: utc_now().isoformat()}})
                await ctx.client.patch(Site, request.key, patch, subresource="status")
            return Done()

        manager.controller(Site, name=f"stamp-{field}").run_with(reconcile)

    stamping("text")
    stamping("child")
    return manager


EXHIBIT = Exhibit(
    defect="Every reconcile changes the status, and every change of the status causes a reconcile.",
    setup=setup,
    workload=creation,
    words="again and again",
)
