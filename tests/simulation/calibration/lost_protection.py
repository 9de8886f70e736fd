"""A child that the operator must keep is deleted when it loses an annotation."""

from __future__ import annotations

from simulation.calibration.defect import Defect
from simulation.calibration.lost_claim import BY_ANNOTATION
from simulation.gallery.sites import Site, change_of_text

from steersman import Done, Manager, ObjectMeta, Outputs
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import reconciles
from steersman.simulation import ScenarioUser, at_rest
from steersman.simulation.runs.faults import CrashBefore


def setup() -> Manager:
    manager = Manager(name="calibration")

    @reconciles(Site, children=(ConfigMap,))
    async def archive(site: Site, out: Outputs) -> Done:
        """The first text of a Site, which stays."""
        if site.spec.text == "a":
            first = ConfigMap(metadata=ObjectMeta(name=f"{site.key.name}-first"), data={"text": site.spec.text})
            out.apply(first, prune=False)
        return Done()

    manager.add(archive)
    return manager


async def reviewed_archive(user: ScenarioUser) -> None:
    """A user notes on the archive that it was reviewed."""
    await change_of_text(user)
    first = await user.client.get(ConfigMap, "home-first")
    first.metadata.annotations = {"example.com/reviewed": "yes"}
    await user.client.update(first)
    await user.settled()


DEFECT = Defect(
    was="An annotation alone protected a child with prune=False: a user who replaced the annotations lost the child.",
    fixed_in="6cf13c6b",
    mutations=(BY_ANNOTATION,),
    setup=setup,
    workload=reviewed_archive,
    checks=(
        at_rest(
            lambda objects: not objects.list(Site) or objects.get(ConfigMap, "default/home-first") is not None,
            "the first text stays",
        ),
    ),
    faults=(CrashBefore(),),
    oracle="check",
    words="the first text stays",
)
