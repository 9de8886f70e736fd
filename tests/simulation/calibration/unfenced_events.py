"""A deposed leader records Events."""

from __future__ import annotations

from simulation.calibration.defect import Defect
from simulation.calibration.mutation import Mutation
from simulation.gallery.sites import Site, change, config_map, create

from steersman import Context, Done, LeaderElection, Manager, Request
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import ScenarioUser
from steersman.simulation.runs.faults import Partition

#: Slow, so that a long run has few renewals.
ELECTION = LeaderElection("calibration", lease=150.0, renew=100.0, retry=60.0)


def setup() -> Manager:
    manager = Manager(name="calibration", leader=ELECTION)

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        ctx.events.record(site, "Normal", "Publishing", "Publish", "publishes the text")
        await ctx.client.apply(config_map(site), owner=site, force=True)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


async def several_texts(user: ScenarioUser) -> None:
    """The text of a Site changes a few times, and then not for a while."""
    await create(user)
    for text in "bcd":
        await user.sleep(1)
        await change(user, text)
    await user.sleep(600)
    await user.settled()


DEFECT = Defect(
    was="The recorder of Events lived as long as the manager, and wrote with its client, which no fence stops.",
    fixed_in="624a515c",
    mutations=(
        Mutation(
            "steersman.manager.terms.work:Work._work_in_terms",
            "async with state.election.campaign(client, hesitates=cache.is_stale) as campaign:",
            "async with (\n"
            "        self._events.opened(client),\n"
            "        state.election.campaign(client, hesitates=cache.is_stale) as campaign,\n"
            "    ):",
        ),
        Mutation(
            "steersman.manager.terms.work:Work._lead",
            "async with self._events.opened(term.client) as events:\n"
            "            await self._reconcile(cache, term.client, events, fresh=True)",
            "await self._reconcile(cache, term.client, self._events, fresh=True)",
        ),
    ),
    setup=setup,
    workload=several_texts,
    replicas=2,
    faults=(Partition(seconds=200.0),),
    oracle="leader",
    words="events",
)
