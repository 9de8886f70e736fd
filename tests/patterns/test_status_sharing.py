"""Several writers of one status: each keeps its part, and none fights without end."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest

from samples.postgres import (
    GROUP,
    Cluster,
    Postgres,
    PostgresStatus,
    conditions,
    managed,
    postgres,
    report,
    statuses,
)
from steersman import Context, Manager, MergePatch, ObjectMeta, Request, Resource
from steersman.aio import utc_now
from steersman.client.applied_intent import intent_of
from steersman.controller import Blueprint, Done, controller_for
from steersman.kinds.apps_v1 import Deployment
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.kinds.events_v1 import Event
from steersman.objects import Condition, set_condition
from steersman.patterns import Outputs, StateMachine, Wait, reconciles, state
from steersman.testing import Plane, eventually

pytestmark = pytest.mark.both_servers("the server merges conditions")


class Backups(StateMachine[Postgres], children=(Secret,), name="backups", ready="BackupReady"):
    """A second machine of the same kind."""

    @state(condition="Scheduled")
    async def schedule(self, pg: Postgres, out: Outputs) -> Done | Wait:
        if pg.spec.backup is None:
            return Wait("no backup is asked for")
        pg.status = pg.status or PostgresStatus()
        pg.status.restored = pg.spec.backup
        out.apply(Secret(metadata=ObjectMeta(name="backups")))
        return Done()


async def test_two_machines_of_one_kind_keep_each_others_conditions(plane):
    client = plane.client
    async with plane.running(managed(Cluster(), Backups()), namespaces=[plane.namespace]) as operator:
        await client.create(postgres())
        await eventually(client, Deployment, "pg-primary")
        await report(client, "pg-primary")
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert statuses(pg) == {
            "Ready": "True",
            "StorageReady": "True",
            "PrimaryReady": "True",
            "ReplicasReady": "True",
            "BackupReady": "False",
            "Scheduled": "False",
        }
        await client.patch(Postgres, "pg", MergePatch({"spec": {"backup": "daily"}}))
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert set(statuses(pg).values()) == {"True"}
        assert len(statuses(pg)) == 6
        assert (pg.status.endpoint, pg.status.restored) == ("pg-primary:5432", "daily")
        assert pg.status.observed_generation == 2
        for value, times in (("yes", 1), (None, 0)):
            await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"steersman.dev/suspend": value}}}))
            await operator.drained()
            assert list(statuses(await client.get(Postgres, "pg"))).count("Suspended") == times
        with plane.writes() as writes:
            await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"look": "again"}}}))
            await operator.drained()
        assert [each for each in writes if each.manager.startswith("databases")] == []


def test_two_machines_with_one_condition_are_refused_where_they_are_added():
    class Second(StateMachine[Postgres], name="second"):
        @state(condition="SecondReady")
        async def second(self, pg: Postgres, out: Outputs) -> Done: ...

    manager = managed(Cluster())
    with pytest.raises(ValueError, match="both set condition Ready") as caught:
        manager.add(Second())
    assert str(caught.value) == (
        "controllers postgres and second both set condition Ready of a Postgres, and would overwrite each other forever;"
        ' give one of them its own condition, such as ready="BackupReady"'
    )
    assert [blueprint.name for blueprint in manager.blueprints] == ["postgres"]


def test_two_controllers_that_make_the_same_kind_are_refused_where_they_are_added():
    class Second(StateMachine[Postgres], children=(Secret, ConfigMap), name="second", ready="SecondDone"):
        @state(condition="SecondReady")
        async def second(self, pg: Postgres, out: Outputs) -> Done: ...

    async def reconcile(ctx: Context, request: Request) -> Done: ...

    words = (
        "controllers postgres and {} both create ConfigMap children for a Postgres, and each would prune the other's;"
        " create all of them in one controller, or give the second its own kind to reconcile"
    )
    for other in (Second(), controller_for(Postgres, name="bare").owns(ConfigMap).run_with(reconcile)):
        with pytest.raises(ValueError, match="both create") as caught:
            managed(Cluster(), other)
        assert str(caught.value) == words.format("second" if isinstance(other, Second) else "bare")


def test_a_machine_is_added_as_an_object():
    with pytest.raises(TypeError, match="this is a class") as caught:
        managed(Cluster)
    assert str(caught.value) == "manager.add(Cluster): this is a class; pass an instance: add(Cluster())"


def auditor(how: str) -> Blueprint:
    """A controller on the bare runtime that reports in the same status, and writes all conditions that it has read."""

    async def reconcile(ctx: Context, request: Request) -> Done:
        pg = await ctx.client.find(Postgres, request.key)
        if pg is None:
            return Done()
        status = pg.status = pg.status or PostgresStatus()
        audited = Condition(type="Audited", status="True", reason="Looked", message=f"at version {pg.spec.version}")
        if not set_condition(status, audited, now=utc_now()):
            return Done()
        if how == "put":
            await ctx.client.update(pg, subresource="status")
            return Done()
        trees = [
            {
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": each.message,
                "lastTransitionTime": each.last_transition_time,
                "observedGeneration": each.observed_generation,
            }
            for each in status.conditions or ()
        ]
        patch: dict[str, object] = {"status": {"conditions": trees}}
        if how == "locked":
            patch["metadata"] = {"resourceVersion": pg.metadata.resource_version}
        await ctx.client.patch(Postgres, pg.key, MergePatch(patch), subresource="status")
        return Done()

    return controller_for(Postgres, name="auditor").run_with(reconcile)


@pytest.mark.parametrize(
    ("plane", "how"),
    [("embedded", "put"), ("embedded", "locked"), ("embedded", "unlocked"), ("engine", "unlocked")],
    indirect=["plane"],
)
async def test_a_foreign_writer_of_all_conditions_and_a_machine_come_to_rest(plane, how):
    """A writer of the whole list may undo what it has not seen yet: we write it again, and then it has seen it."""
    client = plane.client
    foreign = Manager(name="audit")
    foreign.add(auditor(how))
    here = [plane.namespace]
    async with plane.running(managed(Cluster()), namespaces=here) as operator, plane.running(foreign, namespaces=here):
        await client.create(postgres())
        await eventually(client, Deployment, "pg-primary")
        await report(client, "pg-primary")
        for version in ("18", "19", "20"):
            await client.patch(Postgres, "pg", MergePatch({"spec": {"version": version}}))
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert statuses(pg) == {
            "Ready": "True",
            "StorageReady": "True",
            "PrimaryReady": "True",
            "ReplicasReady": "True",
            "Audited": "True",
        }
        assert conditions(pg)["Audited"] == ("True", "Looked", "at version 20")
        assert {each.observed_generation for each in pg.status.conditions if each.type != "Audited"} == {4}
        with plane.writes() as writes:
            await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"look": "again"}}}))
            await operator.drained()
        assert [str(each) for each in writes if each.manager != "test"] == []


@pytest.mark.parametrize("how", ["put", "merge"])
async def test_conditions_that_another_writer_removed_or_changed_are_restored(control_plane, how):
    client = control_plane.client
    async with control_plane.running(managed(Cluster())) as operator:
        await client.create(postgres())
        await operator.drained()
        before = await client.get(Postgres, "pg")
        stale = await client.get(Postgres, "pg")
        stale.status.conditions = [
            Condition(type="Ready", status="True", reason="Wishful", last_transition_time=utc_now()),
            Condition(type="Theirs", status="True", reason="Said", last_transition_time=utc_now()),
        ]
        if how == "put":
            await client.update(stale, subresource="status")
        else:
            await client.patch_from(before, stale, subresource="status")
        await operator.drained()
        found = conditions(await client.get(Postgres, "pg"))
        assert found.pop("Theirs") == ("True", "Said", "")
        assert found == conditions(before)


async def test_a_condition_of_another_writer_with_our_name_is_its_to_take_away(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(Cluster())) as operator:
        await client.create(postgres())
        await operator.drained()
        found = await client.get(Postgres, "pg")
        found.status.conditions.append(
            Condition(type="Suspended", status="True", reason="Paused", last_transition_time=utc_now())
        )
        await client.update(found, subresource="status")
        await operator.drained()
        with control_plane.writes() as writes:
            await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"look": "again"}}}))
            await operator.drained()
        assert [str(each) for each in writes if each.manager != "test"] == []
        assert conditions(await client.get(Postgres, "pg"))["Suspended"] == ("True", "Paused", "")
        assert list(await client.list(Event, namespace=client.namespace)) == []


class Renamed(StateMachine[Postgres], children=(ConfigMap,), name="postgres"):
    """A later version of `Cluster`: other states, other conditions."""

    wait: ClassVar[bool] = False

    @state(condition="EverythingReady")
    async def everything(self, pg: Postgres, out: Outputs) -> Done | Wait:
        return Wait("for everything") if self.wait else Done()


async def test_conditions_that_no_state_has_any_more_go_with_the_first_complete_pass(control_plane, monkeypatch):
    client = control_plane.client
    async with control_plane.running(managed(Cluster())) as operator:
        await client.create(postgres())
        await operator.drained()
        await client.patch(Postgres, "pg", MergePatch({"metadata": {"annotations": {"was": "here"}}}))
        pg = await client.get(Postgres, "pg")
        status = PostgresStatus.only(
            conditions=[Condition(type="Theirs", status="True", reason="Said", last_transition_time=utc_now())]
        )
        theirs = Postgres.only(metadata=type(pg.metadata)(name="pg"), status=status)
        await client.apply(theirs, field_manager="another-operator", subresource="status")
    monkeypatch.setattr(Renamed, "wait", True)
    async with control_plane.running(managed(Renamed())) as operator:
        await operator.drained()
        assert {"StorageReady", "Theirs", "EverythingReady"} <= statuses(await client.get(Postgres, "pg")).keys()
        monkeypatch.setattr(Renamed, "wait", False)
        await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"look": "again"}}}))
        await operator.drained()
        assert statuses(await client.get(Postgres, "pg")) == {
            "Ready": "True",
            "EverythingReady": "True",
            "Theirs": "True",
        }


class ByHand(StateMachine[Postgres], children=(ConfigMap,)):
    """Sets a condition of its own beside those of its states."""

    @state(condition="FirstReady")
    async def first(self, pg: Postgres, out: Outputs) -> Done:
        pg.status = pg.status or PostgresStatus()
        if pg.spec.backup:
            fresh = Condition(type="BackupFresh", status="True", reason="Young", message=pg.spec.backup)
            set_condition(pg.status, fresh, now=utc_now())
        return Done()


async def test_a_condition_that_a_state_sets_by_hand_lives_as_long_as_it_is_set(control_plane, clock):
    client = control_plane.client
    async with control_plane.running(managed(ByHand())) as operator:
        await client.create(postgres(backup="monday"))
        await operator.drained()
        first = await client.get(Postgres, "pg")
        assert conditions(first)["BackupFresh"] == ("True", "Young", "monday")
        await clock.advance(60)
        with control_plane.writes() as writes:
            await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"look": "again"}}}))
            await operator.drained()
        assert [str(each) for each in writes if each.manager != "test"] == []
        assert (await client.get(Postgres, "pg")).status == first.status
        await client.patch(Postgres, "pg", MergePatch({"spec": {"backup": None}}))
        await operator.drained()
        assert statuses(await client.get(Postgres, "pg")) == {"Ready": "True", "FirstReady": "True"}


NAMED = {"apiVersion": f"{GROUP}/v1", "kind": "Postgres"}


class Loose(Resource[None, PostgresStatus], group="loose.test.steersman.dev", version="v1", status_subresource=False):
    """Its status is no subresource, so that applying a status could make an object."""


async def test_a_status_makes_no_object_that_was_deleted_meanwhile(plane: Plane) -> None:
    entered, go_on = asyncio.Event(), asyncio.Event()

    @reconciles(Loose)
    async def slow(loose: Loose, out: Outputs) -> Done:
        entered.set()
        await go_on.wait()
        return Done()

    client = plane.client
    async with plane.running(managed(slow)) as operator:
        await client.create(Loose(metadata=ObjectMeta(name="one"), spec=None))
        await entered.wait()
        await client.delete(Loose, "one")
        go_on.set()
        await operator.drained()
        assert await client.find(Loose, "one") is None


async def test_a_field_of_ours_that_another_writer_says_too_is_taken_away(control_plane: Plane) -> None:
    @reconciles(Postgres)
    async def endpoint(pg: Postgres, out: Outputs) -> Done:
        pg.status = pg.status or PostgresStatus()
        pg.status.endpoint = "db:5432" if pg.spec.replicas else None
        return Done()

    client = control_plane.client
    other = control_plane.client_with(field_manager="other")
    async with control_plane.running(managed(endpoint)) as operator:
        await client.create(postgres())
        await operator.drained()
        theirs = {**NAMED, "metadata": {"name": "pg"}, "status": {"endpoint": "db:5432"}}
        await other.apply(intent_of(Postgres, theirs), subresource="status")
        await client.patch(Postgres, "pg", MergePatch({"spec": {"replicas": 0}}))
        await operator.drained()
        assert (await client.get(Postgres, "pg")).status.endpoint is None
