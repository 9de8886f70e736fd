"""The calls of an operator's webhooks meet faults, too."""

from __future__ import annotations

from steersman import Manager, ObjectMeta, Resource, Spec
from steersman.simulation import ExternalSystem, ScenarioUser, simulate
from steersman.simulation.runs.faults import LostReply
from steersman.webhooks import mutates


class ShopSpec(Spec):
    host: str
    ticket: str | None = None


class Shop(Resource[ShopSpec, None], group="reviews.example.com", version="v1"):
    """A shop that gets a ticket when it is created."""


tickets = ExternalSystem("tickets")


@mutates(Shop, operations=("CREATE",))
def a_ticket_for_each_call(shop: Shop) -> Shop:
    shop.spec.ticket = tickets.add(shop.key.name)
    return shop


@mutates(Shop, operations=("CREATE",))
def a_ticket_for_each_shop(shop: Shop) -> Shop:
    shop.spec.ticket = tickets.add(shop.key.name, id_=shop.key.name)
    return shop


async def open_shop(user: ScenarioUser) -> None:
    await user.client.create(Shop(metadata=ObjectMeta(name="home"), spec=ShopSpec(host="home.example.com")))
    await user.settled()


def desk(hook: object) -> Manager:
    manager = Manager(name="desk")
    manager.add(hook)  # type: ignore[arg-type]
    return manager


def test_a_call_of_a_webhook_meets_faults() -> None:
    report = simulate(lambda: desk(a_ticket_for_each_shop), open_shop)
    assert report.ok, str(report)
    (faults,) = report.coverage.values()
    assert set(faults) == {"crash before sending", "lost request", "lost reply", "slow server"}


def test_a_webhook_that_acts_at_each_call_is_found() -> None:
    """The API server calls it again when its answer is lost, or when the client tries again."""
    faults = ("crash-before-sending", "lost-request", "lost-reply", "slow-server")
    report = simulate(lambda: desk(a_ticket_for_each_call), open_shop, faults=faults)
    (finding,) = report.findings
    assert finding.schedule.faults[0].fault == LostReply()
    assert "tickets 2 is left behind" in str(finding)
