"""Programs beside the operator take part in a simulation."""

from __future__ import annotations

from examples.site_operator import Site, SiteSpec

from steersman import Client, ObjectMeta
from steersman.kinds.core_v1 import Pod
from steersman.simulation import Objects, ScenarioUser, at_rest, simulate
from steersman.testing import WorkloadRunner


def cluster(client: Client) -> WorkloadRunner:
    """A cluster whose Pods start slowly: a run that settles earlier would see none that is ready."""
    return WorkloadRunner(client, delay=7.0)


def all_ready(objects: Objects) -> bool:
    """Each Site is as it should be."""
    return all(site.status is not None and site.status.ready_replicas == 2 for site in objects.list(Site))


async def one_site(user: ScenarioUser) -> None:
    await user.client.create(Site(metadata=ObjectMeta(name="home"), spec=SiteSpec(image="a", replicas=2)))
    await user.settled()
    assert len((await user.client.list(Pod)).items) == 2
    await user.client.delete(Site, "home")
    await user.settled()
    assert len((await user.client.list(Pod)).items) == 0


def test_a_run_waits_for_the_programs_beside_the_operator() -> None:
    report = simulate(
        "examples.site_operator",
        one_site,
        beside={"cluster": cluster},
        checks=[at_rest(all_ready)],
        faults=("crash-before-sending",),
    )
    assert report.ok, str(report)
    # No fault happened to a program that is not the operator.
    assert not [target for target in report.coverage if "pods" in target], report.coverage
