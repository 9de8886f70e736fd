"""The operator gives each Site a letter of its own, and keeps in memory which letters are taken."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, create

from steersman import Context, Done, Manager, Request
from steersman.simulation import ScenarioUser

LETTERS = "abcdef"


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")
    #: The letters of the Sites that this process has reconciled, by uid.
    letters: dict[str, str] = {}

    async def taken(ctx: Context) -> set[str]:
        if wrong:
            return set(letters.values())
        return {site.status.text for site in await ctx.client.live.list(Site) if site.status is not None}

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        status = site.ensure_status()
        if not status.text:
            others = await taken(ctx)
            status.text = next(letter for letter in LETTERS if letter not in others)
            await ctx.client.save(site)
        letters[site.uid] = status.text
        return Done()

    manager.controller(Site).options(concurrency=1).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    await create(user, "home")
    await user.settled()
    await create(user, "attic")
    await user.settled()


EXHIBIT = Exhibit(
    defect="A new process gives a letter away before it has seen the Site that has it.",
    setup=setup,
    workload=workload,
    shown_by=("crash before sending",),
    words='sites default/attic: status.text is "a" and should be "b"',
)
