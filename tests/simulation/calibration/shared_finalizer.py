"""Two operators of one kind have one finalizer, and the faster one lets the object go."""

from __future__ import annotations

from simulation.calibration.defect import Defect
from simulation.calibration.mutation import Mutation
from simulation.gallery.sites import Site, life

from steersman import Done, Manager, Outputs, StateMachine, finalizer, state
from steersman.aio import host_name
from steersman.simulation import ExternalSystem
from steersman.simulation.runs.faults import CrashBefore


def machine_for(system: ExternalSystem, ready: str) -> StateMachine[Site]:
    """An entry in an external system for each Site."""

    class Entries(StateMachine[Site], ready=ready):
        @state(condition=f"{ready}Entry")
        async def entered(self, site: Site, _: Outputs) -> Done:
            """Enter the Site."""
            await system.call("enter", site.key.name, lambda: system.add({"site": site.key.name}, id_=site.key.name))
            return Done()

        @finalizer
        async def removed(self, site: Site, _: Outputs) -> Done:
            """Remove the entry."""
            await system.call("remove", site.key.name, lambda: system.objects.pop(site.key.name, None))
            return Done()

    return Entries()


def setup() -> Manager:
    """Two programs: one for the backups of Sites, one for their addresses."""
    if host_name() == "operator-2":
        manager = Manager(name="address-operator")
        manager.add(machine_for(ExternalSystem("addresses"), "AddressReady"))
    else:
        manager = Manager(name="backup-operator")
        manager.add(machine_for(ExternalSystem("backups"), "BackupReady"))
    return manager


DEFECT = Defect(
    was="The default finalizer did not name the operator, so one of two clean-ups was lost.",
    fixed_in="92b79dd2",
    mutations=(
        Mutation(
            "steersman.patterns.machine.finalizer_names:default_finalizer",
            "return f\"{_domain(kind)}/{_fitting(f'{manager}.{controller}')}\" if manager else shared_finalizer(kind, controller)",
            "return shared_finalizer(kind, controller)",
        ),
    ),
    setup=setup,
    workload=life,
    replicas=2,
    faults=(CrashBefore(),),
    oracle="state",
    words="is left behind",
)
