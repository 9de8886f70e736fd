"""A finalizer that creates something keeps its namespace for ever."""

from __future__ import annotations

from simulation.calibration.defect import Defect
from simulation.calibration.mutation import Mutation
from simulation.gallery.sites import Site, create

from steersman import Done, Manager, ObjectMeta, Outputs, StateMachine, finalizer, state
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.simulation import ScenarioUser
from steersman.simulation.runs.faults import CrashBefore


def setup() -> Manager:
    class Pages(StateMachine[Site], children=(ConfigMap,)):
        @state(condition="Published")
        async def published(self, site: Site, out: Outputs) -> Done:
            """Publish the text."""
            out.apply(ConfigMap(metadata=ObjectMeta(name=site.key.name), data={"text": site.spec.text}))
            return Done()

        @finalizer
        async def archived(self, site: Site, out: Outputs) -> Done:
            """Keep the last text."""
            out.apply(ConfigMap(metadata=ObjectMeta(name=f"{site.key.name}-last"), data={"text": site.spec.text}))
            return Done()

    manager = Manager(name="calibration")
    manager.add(Pages())
    return manager


async def namespace_deleted(user: ScenarioUser) -> None:
    """A namespace is deleted with everything in it."""
    await create(user, namespace="red")
    await user.settled()
    await user.client.delete(Namespace, "red")
    await user.settled()


DEFECT = Defect(
    was="A finalizer whose child the server refuses, because the namespace ends, was retried for ever.",
    fixed_in="bd572cfd",
    mutations=(
        Mutation(
            "steersman.patterns.reconciler:_Reconcile._clean_up",
            "if not own_namespace_ends(error, self._obj):\n            raise",
            "raise",
        ),
    ),
    setup=setup,
    workload=namespace_deleted,
    faults=(CrashBefore(),),
    oracle="rest",
    words="fails for red/home: ",
)
