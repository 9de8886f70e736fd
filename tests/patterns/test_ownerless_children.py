"""Children in other namespaces whose owner is gone without its finalizer: nothing but their operator can delete them."""

from __future__ import annotations

import pytest

from samples.postgres import Postgres, postgres
from steersman import Key, Manager, MergePatch, ObjectMeta
from steersman.cache import KindOptions
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import Selector
from steersman.patterns import child, generates
from steersman.testing import eventually

OWNER_UID, OWNER = "steersman.dev/owner-uid", "steersman.dev/owner"


@pytest.fixture
async def far(control_plane):
    return Key(await control_plane.create_namespace("far-away"), "far")


def operator(far, **options):
    """Declares a far child for each database that has a backup."""

    @generates(Postgres, children=(child(ConfigMap, across_namespaces=True),), name="pg")
    def settings(pg):
        metadata = ObjectMeta(name=far.name, namespace=far.namespace)
        return [ConfigMap(metadata=metadata, data={"version": pg.spec.version})] if pg.spec.backup else []

    manager = Manager(name="databases", **options)
    manager.add(settings)
    return manager


async def lose_owner(client):
    """Let an owner vanish as a restored backup does: no finalizer runs."""
    await client.patch(Postgres, "pg", MergePatch({"metadata": {"finalizers": None}}))
    await client.delete(Postgres, "pg")


async def test_a_child_goes_when_its_owner_is_gone(control_plane, far):
    """Found by its own marks: the operator was down."""
    client = control_plane.client
    async with control_plane.running(operator(far), namespaces=()) as running:
        await client.create(postgres(backup="daily"))
        await running.drained()
    await lose_owner(client)
    assert await client.find(ConfigMap, far) is not None
    async with control_plane.running(operator(far), namespaces=()) as running:
        await running.drained()
        assert await client.find(ConfigMap, far) is None


async def test_a_write_for_an_owner_that_a_restore_took_leaves_nothing(control_plane, far):
    """The operator's cache still has the owner when it writes the child."""
    client = control_plane.client
    async with control_plane.running(operator(far), namespaces=()) as running:
        await client.create(postgres(backup="daily"))
        await running.drained()
        await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"steersman.dev/suspend": "true"}}}))
        await running.drained()
        await lose_owner(client)
        await running.drained()
        assert await client.find(ConfigMap, far) is None


@pytest.mark.parametrize("backup", ["daily", None], ids=["declared", "undeclared"])
async def test_the_next_owner_of_the_name_gets_a_new_child(control_plane, far, backup):
    """The old one does not hinder the new owner, whether that one declares a child or not."""
    client = control_plane.client
    async with control_plane.running(operator(far), namespaces=()) as running:
        await client.create(postgres(backup="daily"))
        await running.drained()
    await lose_owner(client)
    owner = await client.create(postgres(backup=backup, version="18"))
    async with control_plane.running(operator(far), namespaces=()) as running:
        await running.drained()
        after = await client.find(ConfigMap, far)
    if backup is None:
        assert after is None
    else:
        assert (after.data, after.metadata.labels[OWNER_UID]) == ({"version": "18"}, owner.uid)


async def test_a_label_of_another_program_deletes_nothing(control_plane, far):
    client = control_plane.client
    metadata = ObjectMeta(
        name=far.name,
        namespace=far.namespace,
        labels={OWNER_UID: "0b1e7f5c-0000-4000-8000-000000000000"},
        annotations={OWNER: f"{Postgres.gvk().group_kind}/{control_plane.namespace}/pg"},
    )
    async with control_plane.running(operator(far), namespaces=()) as running:
        await client.create(ConfigMap(metadata=metadata))
        await running.drained()
        assert await client.find(ConfigMap, far) is not None


async def test_an_owner_that_the_cache_leaves_out_keeps_its_child(control_plane, far):
    """The server decides whether an owner is gone, not the cache."""
    client = control_plane.client
    async with control_plane.running(operator(far), namespaces=()) as running:
        await client.create(postgres(backup="daily"))
        await running.drained()
    narrow = operator(far, kinds={Postgres: KindOptions(labels=Selector.of({"team": "blue"}))})
    async with control_plane.running(narrow, namespaces=()) as running:
        await client.patch(ConfigMap, far, MergePatch({"data": {"look": "again"}}))
        await eventually(lambda: running.runs_of("pg"))
        await running.drained()
        assert await client.find(ConfigMap, far) is not None
