"""A plan for a release that renames what owns the fields of children: it shows the fields that the release gives up."""

from __future__ import annotations

from typing import Any

import pytest

from steersman import Done, Manager, ObjectMeta, Outputs, Resource, Spec, Status, reconciles
from steersman.kinds.core_v1 import ConfigMap
from steersman.plan import plan_changes


class SiteSpec(Spec):
    image: str = "nginx:1.27"


class Site(Resource[SiteSpec, Status], group="renamed.plan.test.steersman.dev", version="v1"):
    """A web site."""


def operator(name: str, data: dict[str, str], *, formerly: tuple[str, ...] = (), prune: bool = True) -> Manager:
    @reconciles(Site, children=(ConfigMap,), name="site")
    async def sites(site: Site, out: Outputs) -> Done:
        out.apply(ConfigMap(metadata=ObjectMeta(name="page"), data=data), prune=prune)
        return Done()

    manager = Manager(name=name, formerly=formerly)
    manager.add(sites)
    return manager


async def upgraded(plane: Any, old: Manager, new: Manager, *, between: ConfigMap | None = None) -> tuple[Any, Any]:
    """The page as the plan of the new release predicts it, and as the release then makes it."""
    client = plane.client
    await plane.install(Site)
    async with plane.running(old) as running:
        await client.create(Site(metadata=ObjectMeta(name="home"), spec=SiteSpec()))
        await running.drained()
    if between is not None:
        await plane.client_with(field_manager=new.name).apply(between)
    plan = await plan_changes(new, client, namespaces=[plane.namespace])
    assert (plan.failed, plan.rejected) == ((), ())
    (change,) = plan.changed
    async with plane.running(new) as running:
        await running.drained()
    made = await client.get(ConfigMap, "page")
    again = await plan_changes(new, client, namespaces=[plane.namespace])
    assert not again.changes, again
    return change.after, made


@pytest.mark.parametrize("name", ["other", ""])
async def test_a_renamed_operator_plans_to_remove_what_it_no_longer_declares(plane, name: str) -> None:
    """Also if the new name owns other fields already, as while both releases ran."""
    new = operator("new", {"a": "2"}, formerly=("old",))
    between = ConfigMap(metadata=ObjectMeta(name="page"), data={name: "1"}) if name else None
    planned, made = await upgraded(plane, operator("old", {"a": "1", "gone": "1"}), new, between=between)
    assert planned["data"] == made.data == {"a": "2"}


async def test_a_child_that_is_no_longer_kept_is_planned_to_lose_its_mark(plane) -> None:
    """From then on it is pruned when no state declares it: the plan must say so."""
    data = {"a": "1"}
    planned, made = await upgraded(plane, operator("site-operator", data, prune=False), operator("site-operator", data))
    assert "annotations" not in planned["metadata"]
    assert not made.metadata.annotations
