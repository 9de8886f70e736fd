"""A new release of the operator has another name, and does not own the fields of the old one."""

from __future__ import annotations

from simulation.calibration.defect import Defect
from simulation.calibration.mutation import Mutation
from simulation.gallery.sites import Site, change_of_text

from steersman import LeaderElection, Manager, ObjectMeta
from steersman.aio import host_name
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import generates
from steersman.simulation.runs.faults import CrashBefore

OLD, NEW = "blog-operator", "blogs"


def setup() -> Manager:
    """A rolling update: one process is the new release, and leads when the other one ends."""
    election = LeaderElection("blogs")
    if host_name() == "operator-1":
        manager = Manager(name=NEW, formerly=(OLD,), leader=election)
    else:
        manager = Manager(name=OLD, leader=election)

    @generates(Site, children=(ConfigMap,))
    def pages(site: Site) -> list[ConfigMap]:
        draft = {"draft": "yes"} if site.spec.text == "a" else {}
        return [ConfigMap(metadata=ObjectMeta(name=site.key.name), data={"text": site.spec.text, **draft})]

    manager.add(pages)
    return manager


DEFECT = Defect(
    was="A renamed operator could not remove a field, or a child, that it had written under its old name.",
    fixed_in="fedabf5f",
    mutations=(
        Mutation(
            "steersman.controller.writes.takeovers:Takeovers.take_over",
            "return await _rewrite(self._verbs, kind, key, lambda entries: renamed_managers(entries, name, formerly))",
            "return None",
        ),
    ),
    setup=setup,
    workload=change_of_text,
    replicas=2,
    faults=(CrashBefore(),),
    oracle="state",
    words="data.draft",
)
