"""A daemon does not start again when its process leads again."""

from __future__ import annotations

from simulation.calibration.defect import Defect
from simulation.calibration.mutation import Mutation
from simulation.gallery.sites import Site, change_of_text, config_map

from steersman import LeaderElection, Manager
from steersman.patterns import DaemonRun, daemon
from steersman.simulation.runs.faults import Partition


def setup() -> Manager:
    manager = Manager(name="calibration", leader=LeaderElection("calibration"))

    @daemon(Site)
    async def publish(run: DaemonRun[Site]) -> None:
        """Publish each text."""
        while True:
            await run.client.apply(config_map(run.object), owner=run.object, force=True)
            await run.changed()

    manager.add(publish)
    return manager


DEFECT = Defect(
    was="In its second term, a process took the ended functions of the first term for running ones.",
    fixed_in="3edb2cb5",
    mutations=(Mutation("steersman.patterns.daemons:DaemonRuns.run", "self._daemons.clear()", "pass"),),
    setup=setup,
    workload=change_of_text,
    faults=(Partition(),),
    oracle="state",
    words="data.text",
)
