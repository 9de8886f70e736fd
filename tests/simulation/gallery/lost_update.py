"""The operator writes a list back that it has read before, whatever has changed since."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, create

from steersman import Context, Done, Manager, MergePatch, Request
from steersman.simulation import ScenarioUser

READERS = "gallery.example.com/readers"


def with_reader(site: Site, name: str) -> str:
    readers = (site.metadata.annotations or {}).get(READERS, "").split()
    return " ".join(sorted({*readers, name}))


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        annotations = {**(site.metadata.annotations or {}), READERS: with_reader(site, "operator")}
        if annotations == site.metadata.annotations:
            return Done()
        if wrong:
            await ctx.client.patch(Site, request.key, MergePatch({"metadata": {"annotations": annotations}}))
        else:
            site.metadata.annotations = annotations
            await ctx.client.update(site)
        return Done()

    manager.controller(Site).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    await create(user)
    await user.sleep(10)
    site = await user.client.get(Site, "default/home")
    annotations = {READERS: with_reader(site, "guest")}
    await user.client.patch(Site, "default/home", MergePatch({"metadata": {"annotations": annotations}}))
    await user.sleep(60)
    await user.settled()


EXHIBIT = Exhibit(
    defect="A patch without a version replaces what another client has added in the meantime.",
    setup=setup,
    workload=workload,
    shown_by=("partition",),
    words='is "operator" and should be "guest operator"',
)
