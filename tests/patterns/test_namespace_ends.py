"""A finalizer that declares children, in a namespace that is being deleted: nothing can be created there any more."""

from __future__ import annotations

import pytest

from samples.postgres import Postgres, conditions, managed, postgres, settings
from steersman import Key, ObjectMeta
from steersman.controller import Done
from steersman.kinds.batch_v1 import Job, JobSpec
from steersman.kinds.core_v1 import ConfigMap, Container, Namespace, PodSpec, PodTemplateSpec
from steersman.patterns import Outputs, StateMachine, Wait, child, finalizer, reconciles, state
from steersman.testing import eventually


class Backed(StateMachine[Postgres], children=(ConfigMap,)):
    """Declares its last backup in the finalizer."""

    @state(condition="StorageReady")
    async def storage(self, pg: Postgres, out: Outputs) -> Done:
        out.apply(settings("storage"))
        return Done()

    @finalizer
    async def last_backup(self, pg: Postgres, out: Outputs) -> Done | Wait:
        out.apply(settings("last-backup"))
        return Done()


class Waiting(StateMachine[Postgres], name="waiting", children=(ConfigMap,)):
    """Waits for its last backup, wherever it is."""

    gives_up = False

    @state(condition="StorageReady")
    async def storage(self, pg: Postgres, out: Outputs) -> Done:
        return Done()

    @finalizer
    async def last_backup(self, pg: Postgres, out: Outputs) -> Done | Wait:
        backup = out.apply(settings("last-backup"))
        if out.namespace_ends and self.gives_up:
            return Done()
        found = await out.current(backup)
        return Done() if found else Wait("the backup is not complete", after=0.05)


async def test_the_finalizer_declares_children(control_plane) -> None:
    """What a finalizer declares exists before the object goes."""
    client = control_plane.client
    async with control_plane.running(managed(Backed())) as operator:
        await client.create(postgres())
        await operator.drained()
        with control_plane.writes() as writes:
            await client.delete(Postgres, "pg")
            await operator.drained()
        assert await client.find(Postgres, "pg") is None
        assert [each.verb for each in writes.of(ConfigMap, "last-backup")][:1] == ["apply"]


async def test_a_namespace_ends_although_the_finalizer_declares_a_child(control_plane, caplog) -> None:
    """The child is skipped: otherwise the namespace could never be deleted."""
    client, name = control_plane.client, control_plane.namespace
    async with control_plane.running(managed(Backed())) as operator:
        await client.create(postgres())
        await operator.drained()
        await client.delete(Namespace, name)
        await eventually(client, Namespace, name, gone=True)
    said = f"{name}/pg: namespace {name} is being deleted, so new children of last_backup were skipped"
    assert said in caplog.text


@pytest.mark.parametrize("gives_up", [False, True])
async def test_a_finalizer_that_waits_for_its_child_is_reported(control_plane, monkeypatch, gives_up) -> None:
    """A function that waits decides by itself; until it gives up, the condition says what it can do."""
    client, name = control_plane.client, control_plane.namespace
    monkeypatch.setattr(Waiting, "gives_up", gives_up)
    async with control_plane.running(managed(Waiting())) as operator:
        await client.create(postgres())
        await operator.drained()
        await client.delete(Namespace, name)
        if not gives_up:
            pg = await eventually(client, Postgres, "pg", lambda pg: "out.namespace_ends" in conditions(pg)["Ready"][2])
            told = f"the backup is not complete; namespace {name} is being deleted, so nothing can be created in it:"
            hint = "last_backup can return Done() if out.namespace_ends"
            assert conditions(pg)["Ready"] == ("False", "Deleting", f"{told} {hint}")
            monkeypatch.setattr(Waiting, "gives_up", True)
        await eventually(client, Namespace, name, gone=True)


async def end_namespace(plane) -> Key:
    """Delete the namespace of an object that was reconciled; returns its key."""
    client = plane.client
    namespace = await plane.create_namespace(f"{plane.namespace}-ends")
    pg = postgres()
    pg.metadata = ObjectMeta(name="pg", namespace=namespace)
    await client.create(pg)
    await eventually(client, ConfigMap, Key(namespace, "page"))
    await client.delete(Namespace, namespace)
    # On the engine, no controller deletes the objects of the namespace.
    await client.delete(Postgres, Key(namespace, "pg"), missing_ok=True)
    return Key(namespace, "pg")


async def test_a_wait_without_a_message_ends(plane) -> None:
    """It waits for the children alone, and there are none to wait for."""

    @reconciles(Postgres, children=(ConfigMap,))
    async def database(pg: Postgres, out: Outputs) -> Done:
        out.apply(settings("page"))
        return Done()

    @database.finalizer
    async def last_backup(pg: Postgres, out: Outputs) -> Done | Wait:
        return Done() if await out.current(out.apply(settings("last-backup"))) else Wait()

    async with plane.running(managed(database), namespaces=()):
        await eventually(plane.client, Postgres, await end_namespace(plane), gone=True)


async def test_a_child_elsewhere_is_awaited(plane) -> None:
    """A child in another namespace can still be created, so the clean-up must not end before it is ready."""
    client = plane.client
    far = await plane.create_namespace(f"{plane.namespace}-far")
    pod = PodSpec(containers=[Container(name="main", image="backup:1")], restart_policy="Never")

    @reconciles(Postgres, children=(ConfigMap, child(Job, across_namespaces=True)))
    async def database(pg: Postgres, out: Outputs) -> Done:
        out.apply(settings("page"))
        return Done()

    @database.finalizer
    async def last_backup(pg: Postgres, out: Outputs) -> Done:
        out.apply(settings("last-backup"))
        spec = JobSpec(template=PodTemplateSpec(spec=pod))
        out.apply(Job(metadata=ObjectMeta(name="last-backup", namespace=far), spec=spec))
        return Done()

    async with plane.running(managed(database), namespaces=()) as running:
        key = await end_namespace(plane)
        made = await eventually(client, Job, Key(far, "last-backup"))
        await running.drained()
        found = await client.get(Postgres, key)
        assert found.deleting
        assert f"Job {far}/last-backup" in conditions(found)["Ready"][2]
        assert not made.deleting
