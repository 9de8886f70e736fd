"""An operator sees its own plan as it would see its own writes: by name, in lists, and in the server's conflicts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman import Context, Done, Key, Manager, MergePatch, ObjectMeta, Outputs, Request, Resource, Spec, Status
from steersman.errors import Conflict, Invalid, NotFound
from steersman.kinds.core_v1 import ConfigMap
from steersman.patches import JsonPatch, json_patch
from steersman.patterns import DaemonRun, StateMachine, Wait, daemon, finalizer, state
from steersman.plan import plan_changes
from steersman.testing import eventually


class SiteSpec(Spec):
    image: str = "nginx:1.27"


class Site(Resource[SiteSpec, Status], group="own.plan.test.steersman.dev", version="v1"):
    """A web site."""


def page(name: str, at: str | None = None, *, data: dict[str, str] | None = None, **more: Any) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=at, **more), data=data)


def manager_of(*planned: Any) -> Manager:
    manager = Manager(name="site-operator")
    for each in planned:
        manager.add(each)
    return manager


async def home(plane: Any, **more: Any) -> None:
    await plane.install(Site)
    await plane.client.create(Site(metadata=ObjectMeta(name="home", **more), spec=SiteSpec()))


class Versions(StateMachine[Site], children=(ConfigMap,)):
    """A page whose content depends on whether it exists."""

    @state(condition="PageReady")
    async def page(self, site: Site, out: Outputs) -> Done | Wait:
        declared = page("page", data={"version": "1"})
        present = await out.current(declared)
        if present is not None:
            declared.data = {"version": "2"}
        out.apply(declared)
        return Done() if present is not None else Wait("the page has just been made", after=0.1)


async def test_a_child_that_changes_once_it_exists_is_planned_in_its_last_form(plane) -> None:
    """The server has no such object, and would refuse its uid in the second apply."""
    await home(plane)
    manager = manager_of(Versions())
    plan = await plan_changes(manager, plane.client, namespaces=[plane.namespace])
    assert (plan.failed, plan.rejected) == ((), ())
    assert [each.after["data"] for each in plan.created] == [{"version": "2"}]
    async with plane.running(manager):
        await eventually(plane.client, ConfigMap, "page", has={"data": {"version": "2"}})


class Held(StateMachine[Site], finalizer="example.com/site"):
    """A site with something to clean up."""

    @state(condition="HeldReady")
    async def held(self, site: Site, out: Outputs) -> Done:
        return Done()

    @finalizer
    async def clean_up(self, site: Site, out: Outputs) -> Done:
        return Done()


async def test_an_object_whose_last_finalizer_goes_is_deleted(plane) -> None:
    """A plan that says "change" hides that the object disappears."""
    await home(plane, finalizers=["example.com/site"])
    await plane.client.delete(Site, "home")
    plan = await plan_changes(manager_of(Held()), plane.client, namespaces=[plane.namespace])
    assert [each.title for each in plan.changes] == [f"delete Site {plane.namespace}/home"]
    assert plan.complete


async def test_one_of_several_finalizers_is_a_change(plane) -> None:
    await home(plane, finalizers=["example.com/site", "example.com/other"])
    await plane.client.delete(Site, "home")
    plan = await plan_changes(manager_of(Held()), plane.client, namespaces=[plane.namespace])
    assert [each.action for each in plan.changes if each.action != "status"] == ["change"]
    await plane.client.patch(Site, "home", _no_finalizers())


def _no_finalizers() -> Any:
    return MergePatch({"metadata": {"finalizers": None}})


class Reads:
    """A reconcile that deletes a collection, and what it reads before and after that."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        client, at = ctx.client, request.key.namespace
        if await client.find(Site, request.key) is None:
            return Done()
        self.seen = []
        for each in ("fresh", "again"):
            if await client.live.find(ConfigMap, (at, each)) is None:
                await client.create(page(each, at, labels={"old": "yes"}))
        await self._look(client, at)
        await client.delete_collection(ConfigMap, namespace=at, labels={"old": "yes"})
        await self._look(client, at)
        held = await client.find(ConfigMap, Key(at, "held"))
        self.seen.append(held is not None and held.deleting)
        await client.create(page("again", at, data={"a": "2"}))
        await self._look(client, at)
        return Done()

    async def _look(self, client: Any, at: str) -> None:
        for reader in (client, client.live):
            listed = await reader.list(ConfigMap, namespace=at, labels={"old": "yes"})
            self.seen.append([each.key.name for each in listed])
        everything = await client.metadata.list(ConfigMap, namespace=at)
        self.seen.append(sorted(each.metadata.name for each in everything if each.metadata.name != "kube-root-ca.crt"))
        self.seen.append(await client.live.find(ConfigMap, (at, "plain")) is None)


async def test_an_operator_reads_what_it_would_have_made_and_deleted(plane) -> None:
    """Lists too, from the cache and from the server, also of a kind that is cached only from then on."""
    client, at = plane.client, plane.namespace
    await home(plane)
    await client.create(page("held", labels={"old": "yes"}, finalizers=["example.com/held"]))
    await client.create(page("plain", labels={"old": "yes"}))
    await client.create(page("other"))
    reads = Reads()
    manager = Manager(name="site-operator")
    manager.controller(Site).run_with(reads)
    plan = await plan_changes(manager, client, namespaces=[at])
    assert plan.complete
    predicted, reads.seen = reads.seen, []
    async with plane.running(manager) as operator:
        await operator.drained()
    assert (predicted, plan.failed) == (reads.seen, ())
    assert predicted[0] == ["again", "fresh", "held", "plain"]
    assert {(each.action, each.name) for each in plan.changes} == {
        ("create", "again"),
        ("delete", "held"),
        ("delete", "plain"),
    }
    assert next(each for each in plan.deleted if each.name == "held").notes == (
        "waits for its finalizers: example.com/held",
    )
    await client.patch(ConfigMap, "held", _no_finalizers())


async def test_a_write_that_expects_an_older_state_conflicts(plane) -> None:
    """As it would on the server: a plan that accepts it shows what never happens."""
    outcomes: list[str] = []

    async def reconcile(ctx: Context, request: Request) -> Done:
        client, at = ctx.client, request.key.namespace
        outcomes.clear()
        for name in ("new", "old"):
            found = await client.live.find(ConfigMap, (at, name)) or await client.create(page(name, at))
            found.data = {"a": "1"}
            await client.update(found)
            found.data = {"a": "2"}
            try:
                await client.update(found)
            except Conflict:
                outcomes.append(f"{name}: conflict")
            again = await client.live.get(ConfigMap, (at, name))
            again.data = {"a": "1"}
            unchanged = await client.update(again)
            outcomes.append(f"same version {unchanged.metadata.resource_version == again.metadata.resource_version}")
        found = await client.live.get(ConfigMap, (at, "new"))
        await client.delete(found)
        try:
            await client.update(found)
        except NotFound:
            outcomes.append("gone")
        return Done()

    await home(plane)
    await plane.client.create(page("old"))
    manager = Manager(name="site-operator")
    manager.controller(Site).run_with(reconcile)
    plan = await plan_changes(manager, plane.client, namespaces=[plane.namespace])
    predicted = [*outcomes]
    async with plane.running(manager) as operator:
        await operator.drained()
    assert (predicted, plan.failed) == (outcomes, ())
    assert "new: conflict" in outcomes
    assert [each.title for each in plan.changes] == [f"change ConfigMap {plane.namespace}/old"]


async def test_reconciles_that_did_not_get_their_turn_are_named(control_plane, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that is silent about them looks complete."""
    monkeypatch.setattr("steersman.plan.trials.TURN", 0.05)

    async def reconcile(ctx: Context, request: Request) -> Done:
        await asyncio.sleep(600 if request.key.name != "z" else 0)
        return Done()

    await control_plane.install(Site)
    for name in ("a", "b", "z"):
        await control_plane.client.create(Site(metadata=ObjectMeta(name=name), spec=SiteSpec()))
    manager = Manager(name="site-operator")
    manager.controller(Site).options(concurrency=1).run_with(reconcile)
    plan = await plan_changes(manager, control_plane.client, within=2.0)
    assert [each.what.split("/")[-1] for each in plan.failed] == ["a", "b", "z"]
    manager = Manager(name="site-operator")
    manager.controller(Site).run_with(reconcile)
    plan = await plan_changes(manager, control_plane.client, within=2.0)
    assert [each.what.split("/")[-1] for each in plan.failed] == ["a", "b"]


class Guarded(StateMachine[Site], name="guarded", ready="GuardedReady"):
    """A machine with a finalizer of its own."""

    @state(condition="Guarded")
    async def guard(self, site: Site, out: Outputs) -> Done:
        return Done()

    @finalizer
    async def unguard(self, site: Site, out: Outputs) -> Done:
        return Done()


@daemon(Site)
async def watch_site(run: DaemonRun[Site]) -> None:
    WATCHED.append(run.object.key.name)


WATCHED: list[str] = []


async def test_two_controllers_of_one_object_each_plan_a_finalizer(plane) -> None:
    """The second JSON patch tests the list with the first finalizer, which only the plan has; no daemon runs."""
    await home(plane)
    plan = await plan_changes(manager_of(Guarded(), watch_site), plane.client, namespaces=[plane.namespace])
    assert (plan.failed, plan.rejected) == ((), ())
    (change,) = plan.changed
    assert change.after is not None
    assert change.after["metadata"]["finalizers"] == [
        "own.plan.test.steersman.dev/site-operator.guarded",
        "own.plan.test.steersman.dev/site-operator.site-watch-site",
    ]
    assert not WATCHED


async def test_a_json_patch_with_a_failed_test_is_refused(plane) -> None:
    """As on the server, the patch is compared with the planned object."""
    answers: list[str] = []

    async def reconcile(ctx: Context, request: Request) -> Done:
        await ctx.client.patch(Site, request.key, MergePatch({"spec": {"image": "nginx:1.28"}}))
        for image in ("nginx:1.27", "nginx:1.28"):
            tested = JsonPatch.of(
                json_patch.test(["spec", "image"], image), json_patch.replace(["spec", "image"], "nginx:1.29")
            )
            try:
                await ctx.client.patch(Site, request.key, tested)
                answers.append("changed")
            except Invalid:
                answers.append("refused")
        return Done()

    await home(plane)
    manager = Manager(name="site-operator")
    manager.controller(Site).run_with(reconcile)
    plan = await plan_changes(manager, plane.client, namespaces=[plane.namespace])
    assert answers[:2] == ["refused", "changed"]
    (change,) = plan.changed
    assert change.after is not None
    assert change.after["spec"] == {"image": "nginx:1.29"}
