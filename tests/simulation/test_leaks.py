"""Objects that an operator leaves on purpose: how a workload says so."""

from __future__ import annotations

from steersman import Context, Done, Manager, MergePatch, ObjectMeta, Request, Resource, Spec, Status
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import ScenarioUser, simulate
from steersman.simulation.scenario import Workload


class ShelfSpec(Spec):
    place: int = 1


class Shelf(Resource[ShelfSpec, Status], group="leaks.example.com", version="v1"):
    """Something in a table that all of its kind share."""


def table() -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="table", namespace="default"))


def operator() -> Manager:
    manager = Manager(name="shelves")

    async def reconcile(ctx: Context, request: Request) -> Done:
        shelf = await ctx.client.find(Shelf, request.key)
        if shelf is not None and not shelf.deleting:
            await ctx.client.apply(table(), force=True)
        return Done()

    manager.controller(Shelf).run_with(reconcile)
    return manager


async def one_shelf(user: ScenarioUser) -> None:
    await user.client.create(Shelf(metadata=ObjectMeta(name="books"), spec=ShelfSpec()))
    await user.settled()
    await user.client.delete(Shelf, "books")
    await user.settled()


async def with_a_table_of_the_user(user: ScenarioUser) -> None:
    await user.client.create(table())
    await one_shelf(user)


async def with_a_user_who_tidies_up(user: ScenarioUser) -> None:
    await one_shelf(user)
    await user.client.delete(ConfigMap, "table")
    await user.settled()


async def with_a_deletion_that_does_not_end(user: ScenarioUser) -> None:
    await one_shelf(user)
    await user.client.patch(ConfigMap, "table", MergePatch({"metadata": {"finalizers": ["example.com/hold"]}}))
    await user.client.delete(ConfigMap, "table")
    await user.settled()


def report_of(workload: Workload) -> str:
    return str(simulate(operator, workload, faults=("crash-after-commit",), jobs=1))


def test_an_object_that_nothing_deletes_is_a_leak() -> None:
    assert "left behind when everything was deleted: configmaps default/table" in report_of(one_shelf)


def test_a_leak_that_a_finalizer_holds_names_it() -> None:
    """Without the controller of its kind, such as that of claims, a deletion that was requested does not end."""
    said = "configmaps default/table (being deleted; finalizer example.com/hold holds it)"
    assert said in report_of(with_a_deletion_that_does_not_end)


def test_what_stays_on_purpose_is_none() -> None:
    """Without a way to say so, authors would turn the simulation off."""
    assert report_of(with_a_table_of_the_user).endswith("no violation")
    assert report_of(with_a_user_who_tidies_up).endswith("no violation")
