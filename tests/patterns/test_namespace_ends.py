"""A finalizer that declares children, in a namespace that is being deleted: nothing can be created there any more."""

from __future__ import annotations

import pytest

from samples.postgres import Postgres, conditions, managed, postgres, settings
from steersman.controller import Done
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.patterns import Outputs, StateMachine, Wait, finalizer, state
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
    said = f"{name}/pg: namespace {name} is being deleted, so the children of last_backup were skipped"
    assert said in caplog.text


@pytest.mark.parametrize("gives_up", [False, True])
async def test_a_finalizer_that_waits_for_its_child_is_told(control_plane, monkeypatch, gives_up) -> None:
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
