"""An operator after an outage of the server, in which its objects were deleted."""

from __future__ import annotations

from examples.site_operator import Site, SiteSpec
from simulation.gallery.catalog import EXHIBITS

from steersman import ObjectMeta
from steersman.simulation import ScenarioUser, simulate


def site(name: str) -> Site:
    return Site(metadata=ObjectMeta(name=name), spec=SiteSpec(image="nginx:1.27"))


async def deletion_in_the_outage(user: ScenarioUser) -> None:
    """The outage begins when the operator works on the second Site; meanwhile the first one is deleted."""
    await user.client.create(site("home"))
    await user.settled()
    await user.client.create(site("two"))
    await user.sleep(0.3)
    await user.client.delete(Site, "default/home")
    await user.settled()
    await user.client.delete(Site, "default/two")
    await user.settled()


def test_an_operator_does_not_write_the_children_of_an_owner_that_was_deleted_meanwhile() -> None:
    """If it sees that they are gone, and not that their owner is, it creates them as fast as the server collects them."""
    report = simulate("examples.site_operator", deletion_in_the_outage, faults=("outage",))
    report.check()
    assert report.coverage["apply deployments"]["outage"]


def test_an_operator_that_polls_an_external_system_is_waited_for() -> None:
    """It asks again every second until the system is back: neither a wrong end state nor a hot loop."""
    polling = EXHIBITS["forgotten_requeue"]
    simulate(polling.corrected, polling.workload, faults=("outage",)).check()
    assert not simulate(polling.wrong, polling.workload, faults=("outage",)).ok
