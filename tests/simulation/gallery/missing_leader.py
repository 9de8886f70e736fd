"""Two processes of the operator act at once."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, creation

from steersman import Context, Done, LeaderElection, Manager, Request
from steersman.simulation import ExternalSystem, at_rest

LEDGER = ExternalSystem("ledger")


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery", leader=None if wrong else LeaderElection("gallery"))

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        entry = {"site": site.key.name}
        entered = await LEDGER.call("look", str(site.key), lambda: entry in LEDGER.objects.values())
        if not entered:
            await LEDGER.call("enter", str(site.key), lambda: LEDGER.add(entry))
        return Done()

    manager.controller(Site).run_with(reconcile)
    return manager


EXHIBIT = Exhibit(
    defect="Both look before either has written, and both write.",
    setup=setup,
    workload=creation,
    checks=(at_rest(lambda _: len(LEDGER.objects) <= 1, "the ledger has one entry for one Site"),),
    replicas=2,
    words="the ledger has one entry for one Site",
)
