"""An object that the operator adopted is deleted when it loses an annotation."""

from __future__ import annotations

from simulation.calibration.defect import Defect
from simulation.calibration.mutation import Mutation
from simulation.gallery.sites import Site, create

from steersman import Done, Manager, ObjectMeta, Outputs
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import child, reconciles
from steersman.simulation import ScenarioUser, at_rest
from steersman.simulation.runs.faults import CrashBefore

BY_ANNOTATION = Mutation(
    "steersman.patterns.children.membership:kept_by",
    "markers = markers_of(view, uid)",
    "markers = ()",
)


def setup() -> Manager:
    manager = Manager(name="calibration")

    @reconciles(Site, children=(child(ConfigMap, claims=lambda site: {"site": site.key.name}),))
    async def contents(site: Site, out: Outputs) -> Done:
        """A table of contents for the pages that users write."""
        pages = sorted(page.key.name for page in out.claimed(ConfigMap))
        out.apply(ConfigMap(metadata=ObjectMeta(name=f"{site.key.name}-contents"), data={"pages": ",".join(pages)}))
        return Done()

    manager.add(contents)
    return manager


async def reviewed_page(user: ScenarioUser) -> None:
    """A user writes a page, and notes on it that it was reviewed."""
    await create(user)
    metadata = ObjectMeta(name="page", labels={"site": "home"})
    await user.client.create(ConfigMap(metadata=metadata, data={"text": "precious"}))
    await user.settled()
    page = await user.client.get(ConfigMap, "page")
    page.metadata.annotations = {"example.com/reviewed": "yes"}
    await user.client.update(page)
    await user.settled()


DEFECT = Defect(
    was="An annotation alone protected an adopted object: a user who replaced the annotations lost the object.",
    fixed_in="6cf13c6b",
    mutations=(BY_ANNOTATION,),
    setup=setup,
    workload=reviewed_page,
    checks=(
        at_rest(
            lambda objects: not objects.list(Site) or objects.get(ConfigMap, "default/page") is not None,
            "the page of a user stays",
        ),
    ),
    faults=(CrashBefore(),),
    oracle="check",
    words="the page of a user stays",
)
