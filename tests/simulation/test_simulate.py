"""`simulate` finds what a fault breaks, and nothing else."""

from __future__ import annotations

import asyncio
import random  # noqa: TID251 - what a program must not use
from collections.abc import Awaitable, Callable
from typing import get_args

import pytest

from steersman import Context, Done, Manager, ObjectMeta, Request, Resource, Spec, Status
from steersman.aio import randomness
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import (
    ALL_FAULTS,
    ExternalFailure,
    ExternalSystem,
    FaultName,
    Objects,
    ScenarioUser,
    always,
    fault_name,
    simulate,
    sometimes,
)
from steersman.simulation.runs.faults import CrashCommitted


class OrderSpec(Spec):
    amount: int = 0


class OrderStatus(Status):
    paid: bool = False


class Order(Resource[OrderSpec, OrderStatus], group="simulation.example.com", version="v1"):
    """Something to pay, once."""


bank = ExternalSystem("bank")


async def pay_blindly(order: Order) -> None:
    """Pay without looking: a second call pays again."""
    await bank.call("pay", order.key.name, lambda: bank.add({"order": order.key.name, "amount": order.spec.amount}))


async def pay_once(order: Order) -> None:
    """Pay under the order's own id: a second call changes nothing."""
    payment = {"order": order.key.name, "amount": order.spec.amount}
    await bank.call("pay", order.key.name, lambda: bank.add(payment, order.key.name))


def operator(pay: Callable[[Order], Awaitable[None]]) -> Manager:
    """An operator that pays orders, keeps a receipt and reports it."""
    manager = Manager(name="orders")

    async def reconcile(ctx: Context, request: Request) -> Done:
        order = await ctx.client.find(Order, request.key)
        if order is None or order.deleting:
            return Done()
        if not (order.status and order.status.paid):
            await pay(order)
        receipt = ConfigMap(metadata=ObjectMeta(name=order.key.name, namespace=request.key.namespace))
        receipt.data = {"amount": str(order.spec.amount)}
        await ctx.client.apply(receipt, owner=order, force=True)
        order.status = OrderStatus(paid=True)
        await ctx.client.save(order)
        return Done()

    manager.controller(Order).owns(ConfigMap).run_with(reconcile)
    return manager


async def buy(user: ScenarioUser) -> None:
    """One order is made, and paid."""
    await user.client.create(Order(metadata=ObjectMeta(name="shoes"), spec=OrderSpec(amount=80)))
    await user.settled()


def test_an_effect_that_a_crash_doubles_is_found() -> None:
    report = simulate(lambda: operator(pay_blindly), buy)
    assert not report.ok
    crash = next(finding for finding in report.findings if finding.schedule.faults[0].fault == CrashCommitted())
    assert len(crash.schedule.faults) == 1
    assert "bank 2 is left behind" in str(crash)


def test_an_effect_with_an_id_of_its_own_survives_every_fault() -> None:
    report = simulate(lambda: operator(pay_once), buy, pairs=10, random_schedules=10)
    assert report.ok, str(report)
    assert report.schedules > 40


async def pay_in_three_attempts(order: Order) -> None:
    """Pay, or give up after three attempts within three seconds."""
    for _ in range(3):
        try:
            await pay_once(order)
            break
        except ExternalFailure:
            await asyncio.sleep(1)


def test_a_system_that_stays_away_is_found_where_a_single_failure_is_not() -> None:
    """Three attempts survive one lost request, and not an outage: the order counts as paid, and is not."""
    once = simulate(lambda: operator(pay_in_three_attempts), buy, faults=("lost-request", "lost-reply", "slow-server"))
    assert once.ok, str(once)
    away = simulate(lambda: operator(pay_in_three_attempts), buy, faults=("outage",))
    assert "outage for 60 s, starting at the request to pay shoes at bank" in str(away)
    assert "bank 1 is missing" in str(away)
    assert simulate(lambda: operator(pay_once), buy, faults=("outage",)).ok


def test_every_request_is_disturbed_in_every_way() -> None:
    report = simulate(
        lambda: operator(pay_once), buy, faults=("crash-before-sending", "crash-after-commit", "lost-reply")
    )
    for write in ("apply configmaps", "update orders/status", "pay external:bank"):
        assert set(report.coverage[write]) == {"crash before sending", "crash after commit", "lost reply"}, write
    assert " requests, crash before sending, crash after commit, lost reply at each; " in str(report)


def test_faults_have_the_names_of_the_command_line() -> None:
    assert get_args(FaultName) == tuple(fault_name(fault).replace(" ", "-") for fault in ALL_FAULTS)
    with pytest.raises(ValueError, match="'lost-replies' is no kind of fault; did you mean lost-reply"):
        simulate(lambda: operator(pay_once), buy, faults=("lost-replies",))  # type: ignore[arg-type]


class Event(Resource[OrderSpec, OrderStatus], group="simulation.example.com", version="v1"):
    """Something to see: not the Event of Kubernetes."""


def test_a_kind_with_the_name_of_one_of_kubernetes_meets_faults() -> None:
    def show() -> Manager:
        manager = Manager(name="shows")

        async def reconcile(ctx: Context, request: Request) -> Done:
            event = await ctx.client.find(Event, request.key)
            if event is not None and not event.deleting:
                event.status = OrderStatus(paid=True)
                await ctx.client.save(event)
            return Done()

        manager.controller(Event).run_with(reconcile)
        return manager

    async def announce(user: ScenarioUser) -> None:
        await user.client.create(Event(metadata=ObjectMeta(name="opera"), spec=OrderSpec(amount=80)))
        await user.settled()

    report = simulate(show, announce, faults=("lost-reply",))
    assert report.ok, str(report)
    assert report.coverage["update events/status"] == {"lost reply": 1}


def test_a_run_starts_with_new_modules() -> None:
    first = simulate(lambda: operator(pay_once), buy, faults=("crash-before-sending",))
    again = simulate(lambda: operator(pay_once), buy, faults=("crash-before-sending",))
    assert not bank.objects
    assert first.ok
    assert again.ok


def test_the_checks_of_a_user() -> None:
    def paid_with_receipt(objects: Objects) -> bool:
        paid = [order for order in objects.list(Order) if order.status and order.status.paid]
        return all(objects.get(ConfigMap, f"default/{order.key.name}") is not None for order in paid)

    checks = [
        always(paid_with_receipt, "a paid order has a receipt"),
        sometimes(lambda objects: len(objects.list(Order)) > 1, "two orders at once"),
    ]
    report = simulate(lambda: operator(pay_once), buy, checks=checks, faults=("crash-before-sending",))
    assert not report.findings, str(report)
    assert report.never == ("two orders at once",)
    assert not report.ok


def test_what_is_reached_without_faults_is_reached() -> None:
    check = sometimes(lambda objects: any(order.status and order.status.paid for order in objects.list(Order)), "paid")
    report = simulate(lambda: operator(pay_once), buy, checks=[check], faults=())
    assert report.never == ()


def test_values_that_are_not_compared_are_listed() -> None:
    """A reader who does not know of them trusts a comparison that did not happen."""

    async def pay_with_token(order: Order) -> None:
        payment = {"order": order.key.name, "token": randomness().random()}
        await bank.call("pay", order.key.name, lambda: bank.add(payment, order.key.name))

    report = simulate(lambda: operator(pay_with_token), buy, faults=())
    assert report.uncompared == ("bank 1: value.token",)
    assert "not compared, because they vary without faults: bank 1: value.token" in str(report)


def test_chance_of_the_machine_is_named() -> None:
    async def pay_with_number(order: Order) -> None:
        number = random.randint(0, 10**9)
        await bank.call("pay", f"{order.key.name}-{number}", lambda: bank.add(1, order.key.name))

    report = simulate(lambda: operator(pay_with_number), buy)
    (violation,) = report.without_faults
    assert "random.randint at" in violation.words
    assert __file__ in violation.words
    # Contents of objects may be secret.
    assert "Entry(" not in violation.words


def test_sockets_are_refused_with_the_line_that_asks() -> None:
    async def pay_over_the_network(order: Order) -> None:
        await asyncio.open_connection("127.0.0.1", 1)

    report = simulate(lambda: operator(pay_over_the_network), buy, faults=())
    assert "NotSimulated" in str(report), str(report)
    assert __file__ in str(report)


def test_one_manager_for_two_starts_is_refused() -> None:
    manager = operator(pay_once)
    report = simulate(lambda: manager, buy)
    assert "build a new one in setup" in str(report)
