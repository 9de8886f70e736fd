"""Children that several owners share (``owner=False``): each owner has its own fields."""

from __future__ import annotations

from samples.postgres import Postgres, conditions, managed, postgres, settings
from steersman import Manager, MergePatch
from steersman.controller import Done
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import Outputs, reconciles
from steersman.testing import eventually


@reconciles(Postgres, children=(ConfigMap,))
async def registered(pg: Postgres, out: Outputs) -> Done:
    out.apply(settings("registry", **{pg.key.name: pg.spec.version}), owner=False)
    return Done()


@reconciles(Postgres, children=(ConfigMap,))
async def newest(pg: Postgres, out: Outputs) -> Done:
    out.apply(settings("registry", newest=pg.spec.version), owner=False)
    return Done()


async def test_owners_of_one_operator_share_a_child(plane):
    """Each adds its own key, and neither removes the other's; a converged child costs no write."""
    client = plane.client
    async with plane.running(managed(registered)) as running:
        # as an earlier release left it: all owners wrote under one name
        earlier = settings("registry", one="16", old="gone")
        await plane.client_with(field_manager="databases").apply(earlier)
        for name in ("one", "two"):
            await client.create(postgres(name))
        await eventually(client, ConfigMap, "registry", has={"data": {"one": "17", "two": "17"}})
        await running.drained()
        assert (await client.get(ConfigMap, "registry")).data == {"one": "17", "two": "17"}
        with plane.writes() as writes:
            await client.patch(Postgres, "one", MergePatch({"metadata": {"labels": {"look": "again"}}}))
            await running.drained()
        assert writes.of(ConfigMap) == []
        await client.patch(Postgres, "one", MergePatch({"spec": {"version": "18"}}))
        await eventually(client, ConfigMap, "registry", has={"data": {"one": "18", "two": "17"}})


async def test_the_longest_names_share_a_child(plane):
    """The field manager of a share contains both names, and a server accepts 128 characters."""

    @reconciles(Postgres, children=(ConfigMap,))
    async def long_named(pg: Postgres, out: Outputs) -> Done:
        out.apply(settings("registry", one=pg.spec.version), owner=False)
        return Done()

    manager = Manager(name="m" * 92)
    manager.add(long_named)
    async with plane.running(manager):
        await plane.client.create(postgres("o" * 240))
        await eventually(plane.client, ConfigMap, "registry", has={"data": {"one": "17"}})


async def test_the_fields_of_a_deleted_owner_go_with_the_next_reconcile_of_another(plane):
    client = plane.client
    async with plane.running(managed(registered)) as running:
        for name in ("one", "two"):
            await client.create(postgres(name))
        await running.drained()
        await client.delete(Postgres, "one")
        await running.drained()
        assert (await client.get(ConfigMap, "registry")).data == {"one": "17", "two": "17"}
        await client.patch(Postgres, "two", MergePatch({"spec": {"version": "18"}}))
        await eventually(client, ConfigMap, "registry", lambda found: found.data == {"two": "18"})


async def test_an_owner_that_was_replaced_keeps_its_fields(plane):
    """Otherwise the fields of its predecessor would be a conflict forever."""
    client = plane.client
    async with plane.running(managed(registered)) as running:
        await client.create(postgres("one"))
        await running.drained()
        await client.delete(Postgres, "one")
        await client.create(postgres("one", version="18"))
        await eventually(client, ConfigMap, "registry", has={"data": {"one": "18"}})


async def test_a_field_of_two_owners_is_a_conflict_until_one_of_them_is_gone(plane):
    client = plane.client
    async with plane.running(managed(newest)) as running:
        await client.create(postgres("one"))
        await running.drained()
        await client.create(postgres("two", version="18"))
        has = {"status": {"conditions": [{"type": "Ready", "reason": "FieldConflict"}]}}
        found = await eventually(client, Postgres, "two", has=has)
        assert (
            f"databases/shared-for-{Postgres.gvk().group_kind}:{plane.namespace}:one" in conditions(found)["Ready"][2]
        )
        await client.delete(Postgres, "one")
        await client.patch(Postgres, "two", MergePatch({"metadata": {"labels": {"look": "again"}}}))
        await eventually(client, ConfigMap, "registry", has={"data": {"newest": "18"}})


async def test_a_child_that_is_no_longer_shared_loses_what_was_shared(plane):
    client = plane.client

    @reconciles(Postgres, children=(ConfigMap,), name="registered")
    async def owning(pg: Postgres, out: Outputs) -> Done:
        out.apply(settings("registry", newest=pg.spec.version), adopt=True)
        return Done()

    async with plane.running(managed(registered)) as running:
        await client.create(postgres())
        await running.drained()
    async with plane.running(managed(owning)) as running:
        await running.drained()
        await client.patch(Postgres, "pg", MergePatch({"spec": {"version": "18"}}))
        await eventually(client, ConfigMap, "registry", lambda found: found.data == {"newest": "18"})
