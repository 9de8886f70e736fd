"""The finalizer of a machine, deletion in order, and objects that are left alone."""

from __future__ import annotations

from typing import ClassVar

from samples.postgres import Cluster, Postgres, conditions, deployment, managed, postgres, report, settings, statuses
from steersman import MergePatch, ObjectMeta
from steersman.controller import Done
from steersman.kinds.apps_v1 import Deployment
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import Failed, Next, Outputs, StateMachine, Wait, finalizer, state
from steersman.testing import eventually

MANAGER = "databases"
OURS = "db.test.steersman.dev/databases.postgres"


class Archived(StateMachine[Postgres], children=(Deployment, ConfigMap), ordered_deletion=True):
    """Is archived before it goes."""

    archive: ClassVar[str] = "wait"

    @state(condition="StorageReady")
    async def storage(self, pg: Postgres, out: Outputs) -> Next:
        out.apply(settings("storage"))
        return Next()

    @state(condition="PrimaryReady")
    async def primary(self, pg: Postgres, out: Outputs) -> Done:
        out.apply(settings("primary"))
        return Done()

    @finalizer
    async def archived(self, pg: Postgres, out: Outputs) -> Done | Wait | Failed:
        match self.archive:
            case "wait":
                return Wait("for the archive")
            case "fail":
                return Failed("the archive is full", reason="ArchiveFull")
            case "raise":
                raise ConnectionError("no archive")
            case _:
                return Done()


async def test_the_finalizer_is_added_alone_and_before_anything_else(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(Archived())) as operator:
        with control_plane.writes() as writes:
            await client.create(postgres())
            await operator.drained()
        mine = [each for each in writes if each.manager.startswith(MANAGER) and each.kind != "Event"]
        assert [(each.verb, each.kind, each.key.name, each.subresource) for each in mine] == [
            ("patch", "Postgres", "pg", ""),
            ("apply", "ConfigMap", "storage", ""),
            ("apply", "ConfigMap", "primary", ""),
            ("apply", "Postgres", "pg", "status"),
        ]
        assert (await client.get(Postgres, "pg")).metadata.finalizers == [OURS]


async def test_an_object_that_was_deleted_before_the_first_pass_is_left_alone(control_plane):
    client = control_plane.client
    await control_plane.install(Postgres)
    pg = postgres()
    pg.metadata.finalizers = ["example.com/other"]
    await client.create(pg)
    await client.delete(Postgres, "pg")
    with control_plane.writes() as writes:
        async with control_plane.running(managed(Archived())) as operator:
            await operator.drained()
            assert operator.runs_of("pg")
    assert writes == []


async def test_clean_up_is_waited_for_and_children_go_in_reverse_order(control_plane, monkeypatch):
    client = control_plane.client
    monkeypatch.setattr(Archived, "archive", "wait")
    async with control_plane.running(managed(Archived())) as operator:
        await client.create(postgres())
        await operator.drained()
        await client.patch(Postgres, "pg", MergePatch({"metadata": {"finalizers": [OURS, "example.com/other"]}}))
        # what goes last must not go before this one has
        await client.patch(ConfigMap, "primary", MergePatch({"metadata": {"finalizers": ["example.com/slow"]}}))
        await client.delete(Postgres, "pg")
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert conditions(pg)["Ready"] == ("False", "Deleting", "for the archive")
        assert statuses(pg)["PrimaryReady"] == "True"
        assert not (await client.get(ConfigMap, "primary")).deleting

        monkeypatch.setattr(Archived, "archive", "done")
        await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"look": "again"}}}))
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        status, reason, message = conditions(pg)["Ready"]
        assert (status, reason) == ("False", "Deleting")
        assert message == f"ConfigMap {control_plane.namespace}/primary is being deleted, held by example.com/slow"
        assert (await client.get(ConfigMap, "primary")).deleting
        assert not (await client.get(ConfigMap, "storage")).deleting
        assert pg.metadata.finalizers == [OURS, "example.com/other"]

        await client.patch(ConfigMap, "primary", MergePatch({"metadata": {"finalizers": None}}))
        await operator.drained()
        assert await client.find(ConfigMap, "primary") is None
        assert await client.find(ConfigMap, "storage") is None
        assert (await client.get(Postgres, "pg")).metadata.finalizers == ["example.com/other"]

        with control_plane.writes() as writes:
            await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"look": "once-more"}}}))
            await operator.drained()
        # what is left belongs to others
        assert [each for each in writes if each.manager.startswith(MANAGER)] == []


async def test_clean_up_that_fails_says_so_and_holds_the_object(control_plane, monkeypatch):
    client = control_plane.client
    monkeypatch.setattr(Archived, "archive", "fail")
    async with control_plane.running(managed(Archived())) as operator:
        await client.create(postgres())
        await operator.drained()
        await client.delete(Postgres, "pg")
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert conditions(pg)["Ready"] == ("False", "ArchiveFull", "the archive is full")
        monkeypatch.setattr(Archived, "archive", "raise")
        await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"look": "again"}}}))
        ready = {
            "type": "Ready",
            "status": "False",
            "reason": "Error",
            "message": "the clean-up failed: ConnectionError: no archive",
        }
        await eventually(client, Postgres, "pg", has={"status": {"conditions": [ready]}})
        monkeypatch.setattr(Archived, "archive", "done")
        await eventually(client, Postgres, "pg", gone=True)


async def test_a_finalizer_that_is_needed_no_longer_holds_nothing_up(control_plane):
    client = control_plane.client
    await control_plane.install(Postgres)
    pg = postgres()
    pg.metadata.finalizers = [OURS]  # an earlier version of the program cleaned up
    await client.create(pg)
    async with control_plane.running(managed(Cluster())) as operator:
        await operator.drained()
        assert (await client.get(Postgres, "pg")).metadata.finalizers == [OURS]
        await client.delete(Postgres, "pg")
        await operator.drained()
        assert await client.find(Postgres, "pg") is None


class WithJob(StateMachine[Postgres], children=(Deployment, ConfigMap)):
    @state(condition="StorageReady")
    async def storage(self, pg: Postgres, out: Outputs) -> Done:
        out.apply(settings("storage"))
        return Done()

    @finalizer
    async def archived(self, pg: Postgres, out: Outputs) -> Done:
        out.apply(deployment("archive"))
        return Done()


async def test_clean_up_may_declare_children_and_waits_for_them(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(WithJob())) as operator:
        await client.create(postgres())
        await operator.drained()
        await client.delete(Postgres, "pg")
        await operator.drained()
        await report(client, "archive", ready=False)
        await operator.drained()
        assert conditions(await client.get(Postgres, "pg"))["Ready"] == (
            "False",
            "Deleting",
            "Deployment archive: 0 of 1 replica is ready",
        )
        await report(client, "archive")
        await operator.drained()
        assert await client.find(Postgres, "pg") is None
        # nothing needed an order: the server takes away what belonged to it
        assert await client.find(ConfigMap, "storage") is None
        assert await client.find(Deployment, "archive") is None


SUSPEND = {"metadata": {"labels": {"steersman.dev/suspend": "maintenance"}}}
RESUME = {"metadata": {"labels": {"steersman.dev/suspend": None}}}


async def test_an_object_with_the_label_is_left_alone_until_it_is_gone(control_plane, monkeypatch):
    client = control_plane.client
    monkeypatch.setattr(Archived, "archive", "done")
    async with control_plane.running(managed(Archived())) as operator:
        await client.create(postgres())
        await operator.drained()
        await client.patch(Postgres, "pg", MergePatch(SUSPEND))
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        message = "label steersman.dev/suspend=maintenance: Steersman applies, prunes and finalizes nothing until the label is removed"
        assert conditions(pg)["Suspended"] == ("True", "Suspended", message)
        assert statuses(pg)["Ready"] == "True"

        with control_plane.writes() as writes:
            await client.delete(ConfigMap, "storage")
            await client.patch(ConfigMap, "primary", MergePatch({"data": {"drift": "yes"}}))
            await client.patch(Postgres, "pg", MergePatch({"spec": {"version": "18"}}))
            await operator.drained()
        ours = [each for each in writes if each.manager.startswith(MANAGER)]
        # the status has that condition alone: the other states did not run
        assert [(each.kind, each.subresource) for each in ours] == [("Postgres", "status")]
        pg = await client.get(Postgres, "pg")
        assert pg.status.observed_generation == 1

        await client.patch(Postgres, "pg", MergePatch(RESUME))
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert "Suspended" not in conditions(pg)
        assert pg.status.observed_generation == 2
        assert await client.find(ConfigMap, "storage") is not None


async def test_an_object_with_the_label_is_not_finalized(control_plane, monkeypatch):
    client = control_plane.client
    monkeypatch.setattr(Archived, "archive", "done")
    async with control_plane.running(managed(Archived())) as operator:
        await client.create(postgres())
        await operator.drained()
        await client.patch(Postgres, "pg", MergePatch(SUSPEND))
        await client.delete(Postgres, "pg")
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert pg.metadata.finalizers == [OURS]
        assert statuses(pg)["Suspended"] == "True"
        assert not (await client.get(ConfigMap, "primary")).deleting
        await client.patch(Postgres, "pg", MergePatch(RESUME))
        await operator.drained()
        assert await client.find(Postgres, "pg") is None


async def test_the_label_suspends_with_any_value_but_false(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(Cluster())) as operator:
        pg = postgres()
        pg.metadata = ObjectMeta(name="pg", labels={"steersman.dev/suspend": ""})
        await client.create(pg)
        await operator.drained()
        assert conditions(await client.get(Postgres, "pg"))["Suspended"][0] == "True"
        assert await client.find(ConfigMap, "pg-storage") is None
        await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"steersman.dev/suspend": "false"}}}))
        await operator.drained()
        assert "Suspended" not in conditions(await client.get(Postgres, "pg"))
        assert await client.find(ConfigMap, "pg-storage") is not None
