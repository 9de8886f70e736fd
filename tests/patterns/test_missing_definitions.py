"""Kinds whose CRD is not installed, was deleted, or lacks the status; and declarations that an earlier version had."""

from __future__ import annotations

import pytest

from samples.postgres import Postgres, managed, postgres, settings
from steersman import Done, JsonPatch, Key, ObjectMeta, Resource, Spec, Status
from steersman.aio import Supervisor
from steersman.kinds.apiextensions_v1 import CustomResourceDefinition
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import LeaderElection, Manager
from steersman.patterns import child, generates, reconciles
from steersman.testing import eventually

GROUP = "missing.test.steersman.dev"
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


class CrateSpec(Spec):
    size: int = 1


class Crate(Resource[CrateSpec, None], group=GROUP, version="v1"):
    """A child whose CRD comes and goes."""


class Plain(Resource[CrateSpec, Status], group=GROUP, version="v1"):
    """An owner whose CRD on the server has no status."""


async def test_a_retired_kind_without_a_crd_stops_nothing(plane):
    client = plane.client
    await plane.install(Postgres)

    @generates(Postgres, children=(ConfigMap,), retired=(Crate,))
    def operator(pg):
        return [settings("kept")]

    # A process takes the Lease only once it could work.
    leader = LeaderElection("databases", namespace=plane.namespace)
    client_of_manager = plane.client_with(field_manager="databases")
    manager = Manager(client_of_manager, name="databases", namespaces=(plane.namespace,), leader=leader)
    manager.add(operator)
    async with Supervisor() as tasks:
        tasks.start(manager.run(signals=False), name="manager")
        await client.create(postgres())
        await eventually(client, Postgres, "pg", has=READY)
        missing = next(each for each in manager.statistics().informers if each.kind.endswith("Crate"))
        assert (missing.served, missing.optional) == (False, True)
        assert [each.message for each in await manager.ready.run()] == [""] * len(manager.ready.last)
        manager.stop()


async def test_a_deleted_crd_of_a_child_holds_no_owner(plane):
    client = plane.client
    far = await plane.create_namespace(f"{plane.namespace}-far")

    @generates(Postgres, children=(child(Crate, across_namespaces=True), ConfigMap))
    def operator(pg):
        return [Crate(metadata=ObjectMeta(name="crate", namespace=far), spec=CrateSpec()), settings("near")]

    async with plane.running(managed(operator), namespaces=(), crashes=True):
        await client.create(postgres())
        await eventually(client, Crate, Key(far, "crate"))
        await client.delete(CustomResourceDefinition, f"crates.{GROUP}")
        await eventually(client, CustomResourceDefinition, f"crates.{GROUP}", gone=True)
        await client.delete(Postgres, "pg")
        await eventually(client, Postgres, "pg", gone=True)


async def test_a_kind_without_the_status_subresource_is_reported(plane):
    client = plane.client
    await plane.install(Plain)
    without = JsonPatch.parse([{"op": "remove", "path": "/spec/versions/0/subresources"}])
    await client.patch(CustomResourceDefinition, f"plains.{GROUP}", without)

    @generates(Plain, children=(ConfigMap,))
    def operator(plain):
        return [settings("page")]

    async with plane.running(managed(operator), install=False, crashes=True) as running:
        await client.create(Plain(metadata=ObjectMeta(name="x"), spec=CrateSpec()))
        words = "has no status subresource"
        await eventually(lambda: any(words in str(run.last_error) for _, run in running.runs_of("x")))


async def test_withdrawn_far_children_go(plane):
    client = plane.client
    far = await plane.create_namespace(f"{plane.namespace}-far")

    @generates(Postgres, children=(child(ConfigMap, across_namespaces=True),), name="pages")
    def first(pg):
        return [ConfigMap(metadata=ObjectMeta(name="page", namespace=far))]

    @generates(Postgres, children=(ConfigMap,), name="pages")
    def second(pg):
        return [settings("page")]

    async with plane.running(managed(first)) as running:
        await client.create(postgres())
        await running.drained()
        assert await client.find(ConfigMap, Key(far, "page")) is not None
    async with plane.running(managed(second)) as running:
        await running.drained()
        assert await client.find(ConfigMap, Key(far, "page")) is None
        assert await client.find(ConfigMap, "page") is not None


async def test_a_kept_far_child_goes_with_its_owner(plane):
    """`prune=False` keeps it while its owner exists, not beyond."""
    client = plane.client
    far = await plane.create_namespace(f"{plane.namespace}-far")

    @reconciles(Postgres, children=(child(ConfigMap, across_namespaces=True),), name="pages", ordered_deletion=True)
    async def first(pg, out):
        out.apply(ConfigMap(metadata=ObjectMeta(name="page", namespace=far)), prune=False)
        return Done()

    @reconciles(Postgres, children=(ConfigMap,), name="pages", ordered_deletion=True)
    async def second(pg, out):
        return Done()

    async with plane.running(managed(first)) as running:
        await client.create(postgres())
        await running.drained()
    async with plane.running(managed(second)) as running:
        await running.drained()
        assert await client.find(ConfigMap, Key(far, "page")) is not None
        await client.delete(Postgres, "pg")
        await running.drained()
        assert await client.find(ConfigMap, Key(far, "page")) is None


@pytest.mark.parametrize("down", [True, False], ids=["down", "kept"])
async def test_far_children_go_with_a_clean_up(plane, down):
    """A child that is kept, or whose owner was deleted while no process ran, would stay for ever."""
    client = plane.client
    far = await plane.create_namespace(f"{plane.namespace}-far")

    @reconciles(Postgres, children=(child(ConfigMap, across_namespaces=True),), name="pages")
    async def first(pg, out):
        out.apply(ConfigMap(metadata=ObjectMeta(name="page", namespace=far)), prune=down)
        return Done()

    @reconciles(Postgres, children=(ConfigMap,), name="pages")
    async def second(pg, out):
        return Done()

    @first.finalizer
    @second.finalizer
    async def clean_up(pg, out):
        return Done()

    async with plane.running(managed(first)) as running:
        await client.create(postgres())
        await running.drained()
    if down:
        await client.delete(Postgres, "pg")
    async with plane.running(managed(second)) as running:
        await running.drained()
        if not down:
            assert await client.find(ConfigMap, Key(far, "page")) is not None
            await client.delete(Postgres, "pg")
        await eventually(client, Postgres, "pg", gone=True)
        assert await client.find(ConfigMap, Key(far, "page")) is None
