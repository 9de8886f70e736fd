"""Two operators on one kind, and the default finalizer of earlier releases, which they shared.

An operator of an earlier release is one with ``finalizer=SHARED``: that name was the default.
"""

from __future__ import annotations

import pytest

from samples.postgres import GROUP, Postgres, postgres
from steersman import Manager, MergePatch
from steersman.controller import Done
from steersman.objects import GroupVersionKind
from steersman.patterns import Outputs, StateMachine, Wait, finalizer, state
from steersman.patterns.machine.finalizer_names import default_finalizer
from steersman.testing import eventually

SHARED = f"{GROUP}/postgres"


class Backups(StateMachine[Postgres], name="postgres", ready="BackupReady"):
    """Cleans up when it may."""

    def __init__(self):
        self.cleaned = []
        self.may_clean = True

    @state(condition="Saved")
    async def save(self, pg: Postgres, out: Outputs) -> Done:
        return Done()

    @finalizer
    async def clean_up(self, pg: Postgres, out: Outputs) -> Done | Wait:
        if not self.may_clean:
            return Wait("for the test", after=0.05)
        self.cleaned.append(pg.key.name)
        return Done()


class Buckets(Backups, name="postgres", ready="BucketReady"):
    """Another operator with the same controller name."""

    @state(condition="Stored")
    async def save(self, pg: Postgres, out: Outputs) -> Done:
        return Done()


class EarlierBackups(Backups, name="postgres", ready="BackupReady", finalizer=SHARED):
    """As an earlier release named the finalizer."""


class EarlierBuckets(Buckets, name="postgres", ready="BucketReady", finalizer=SHARED):
    """As an earlier release named the finalizer."""


def managed(machine, name, *formerly):
    manager = Manager(name=name, formerly=formerly)
    manager.add(machine)
    return manager


async def finalizers(client, name="pg"):
    found = await client.find(Postgres, name)
    return None if found is None else sorted(found.metadata.finalizers or ())


async def becomes(client, *names):
    """Wait for exactly these finalizers."""
    await eventually(client, Postgres, "pg", lambda pg: sorted(pg.metadata.finalizers or ()) == sorted(names))


async def test_both_clean_ups_run(plane):
    """The faster operator does not remove the finalizer of the slower one."""
    client, backups, buckets = plane.client, Backups(), Buckets()
    backups.may_clean = False
    async with plane.running(managed(backups, "backups")), plane.running(managed(buckets, "buckets")):
        await client.create(postgres())
        await becomes(client, f"{GROUP}/backups.postgres", f"{GROUP}/buckets.postgres")
        await client.delete(Postgres, "pg")
        await becomes(client, f"{GROUP}/backups.postgres")
        assert buckets.cleaned == ["pg"]
        backups.may_clean = True
        await eventually(client, Postgres, "pg", gone=True)
        assert backups.cleaned == ["pg"]


@pytest.mark.parametrize("when", ["live", "deleting"])
async def test_the_finalizer_of_an_earlier_release_is_replaced(plane, when):
    client = plane.client
    async with plane.running(managed(EarlierBackups(), "backups")) as operator:
        await client.create(postgres())
        await operator.drained()
        assert await finalizers(client) == [SHARED]
    if when == "deleting":
        await client.delete(Postgres, "pg")
    machine = Backups()
    async with plane.running(managed(machine, "backups")) as operator:
        if when == "live":
            await operator.drained()
            assert await finalizers(client) == [f"{GROUP}/backups.postgres"]
            await client.delete(Postgres, "pg")
        await eventually(client, Postgres, "pg", gone=True)
        assert machine.cleaned == ["pg"]


async def test_an_earlier_and_a_new_release_run_together(plane):
    """Neither keeps taking the other's finalizer away, and the object goes after both have cleaned up."""
    client, new, old = plane.client, Backups(), EarlierBackups()
    async with plane.running(managed(old, "backups")) as before, plane.running(managed(new, "backups")) as after:
        await client.create(postgres())
        await becomes(client, SHARED, f"{GROUP}/backups.postgres")
        await before.drained()
        await after.drained()
        with plane.writes() as writes:
            await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"look": "again"}}}))
            await before.drained()
            await after.drained()
        assert [each for each in writes.by("backups") if each.verb == "patch"] == []
        await client.delete(Postgres, "pg")
        await eventually(client, Postgres, "pg", gone=True)
        assert "pg" in new.cleaned


async def test_another_operator_of_an_earlier_release_keeps_its_finalizer(plane):
    """The upgraded operator gives the shared finalizer up; the other one adds it again, and its clean-up runs."""
    client, backups, buckets = plane.client, Backups(), EarlierBuckets()
    async with plane.running(managed(EarlierBackups(), "backups")) as operator:
        await client.create(postgres())
        await operator.drained()
    buckets.may_clean = False
    async with plane.running(managed(buckets, "buckets")) as other:
        await other.drained()
        async with plane.running(managed(backups, "backups")):
            await becomes(client, SHARED, f"{GROUP}/backups.postgres")
            await eventually(client, Postgres, "pg", lambda pg: _adder(pg, SHARED) == {"buckets"})
            await client.delete(Postgres, "pg")
            await eventually(client, Postgres, "pg", lambda pg: pg.metadata.finalizers == [SHARED])
            assert backups.cleaned
            # the status follows the finalizer
            await eventually(client, Postgres, "pg", lambda pg: _is_said(pg, "waits for field manager buckets"))
            buckets.may_clean = True
            await eventually(client, Postgres, "pg", gone=True)
            assert buckets.cleaned == ["pg"]


def _is_said(pg, words):
    return any(words in each.message for each in pg.status.conditions or ())


def _adder(pg, name):
    """The field managers that hold a finalizer."""
    return {each.manager for each in pg.metadata.managed_fields if f'v:\\"{name}\\"'.encode() in bytes(each.fields_v1)}


async def test_a_finalizer_from_a_restored_backup_does_not_hold_the_object(plane):
    """A tool that wrote the whole object, with the finalizer in it, never removes it: the operator does."""
    client, machine = plane.client, Backups()
    await plane.install(Postgres)
    restored = postgres()
    restored.metadata.finalizers = [SHARED]
    await plane.client_with(field_manager="restore-tool").create(restored)
    async with plane.running(managed(machine, "backups")) as operator:
        await operator.drained()
        await client.delete(Postgres, "pg")
        await eventually(client, Postgres, "pg", gone=True)
        assert machine.cleaned == ["pg"]


@pytest.mark.parametrize("when", ["live", "deleting"])
async def test_a_renamed_manager_takes_its_finalizer_with_it(plane, when):
    """``formerly=`` covers the default finalizer, which contains the manager's name."""
    client = plane.client
    async with plane.running(managed(Backups(), "backups")) as operator:
        await client.create(postgres())
        await operator.drained()
    if when == "deleting":
        await client.delete(Postgres, "pg")
    machine = Backups()
    async with plane.running(managed(machine, "archive", "backups")) as operator:
        if when == "live":
            await operator.drained()
            assert await finalizers(client) == [f"{GROUP}/archive.postgres"]
            await client.delete(Postgres, "pg")
        await eventually(client, Postgres, "pg", gone=True)
        assert machine.cleaned == ["pg"]


def test_a_long_name_fits():
    """The server accepts at most 63 characters; two long names stay different."""
    kind = GroupVersionKind("", "v1", "ConfigMap")
    assert default_finalizer(kind, "op", "notes") == "steersman.dev/op.notes"
    one, other = (default_finalizer(kind, "a" * 80 + end, "notes") for end in "xy")
    assert one != other
    assert len(one.partition("/")[2]) == 63
    assert default_finalizer(kind, "a b", "notes").startswith("steersman.dev/a-b.notes-")
