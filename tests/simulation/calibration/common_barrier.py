"""One kind that cannot be listed stops the controllers of all others in a new term."""

from __future__ import annotations

from simulation.calibration.defect import Defect
from simulation.calibration.mutation import Mutation
from simulation.gallery.sites import Site, change, config_map, creation

from steersman import Context, Done, LeaderElection, Manager, Request, Resource, Spec, Status
from steersman.kinds.apiextensions_v1 import CustomResourceDefinition
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import ScenarioUser
from steersman.simulation.runs.faults import CrashBefore

#: Slow, because the run lasts until its limit.
ELECTION = LeaderElection("calibration", lease=300.0, renew=200.0, retry=100.0)


class BackupSpec(Spec):
    site: str = ""


class Backup(Resource[BackupSpec, Status], group="calibration.example.com", version="v1"):
    """A copy of a Site."""


def setup() -> Manager:
    manager = Manager(name="calibration", leader=ELECTION)

    async def publish(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is not None and not site.deleting:
            await ctx.client.apply(config_map(site), owner=site, force=True)
        return Done()

    async def back_up(ctx: Context, request: Request) -> Done:
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(publish)
    manager.controller(Backup).run_with(back_up)
    return manager


async def without_backups(user: ScenarioUser) -> None:
    """A user removes the kind that the cluster does not use."""
    await creation(user)
    await user.client.delete(CustomResourceDefinition, f"{Backup.__resource__.plural}.{Backup.gvk().group}")
    await user.settled()
    await change(user, "b")
    await user.settled()


DEFECT = Defect(
    was="A new term waited for all kinds: one that could not be listed stopped every controller.",
    fixed_in="624a515c",
    mutations=(
        Mutation(
            "steersman.manager.term_controllers:Barrier.passed",
            "waiting = [self._fresh[kind] for kind in kinds if self._concerns(kind)]",
            "waiting = list(self._fresh.values())",
        ),
    ),
    setup=setup,
    workload=without_backups,
    faults=(CrashBefore(),),
    oracle="rest",
    words="does not start working",
)
