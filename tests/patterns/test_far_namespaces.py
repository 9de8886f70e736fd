"""Children in other namespaces than their owner's: their namespace may end and come back, the owner's may not."""

from __future__ import annotations

from contextlib import suppress

import pytest

from samples.postgres import Postgres, managed, postgres
from steersman import Key, MergePatch, ObjectMeta, Resource, Spec, Status
from steersman.controller import Done
from steersman.errors import Conflict, NotFound
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.patterns import Outputs, child, generates, reconciles
from steersman.plan import plan_changes
from steersman.testing import eventually

READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
FINALIZER = "example.com/holds"


class RegionSpec(Spec):
    namespace: str


class Region(Resource[RegionSpec, Status], group="far.test.steersman.dev", version="v1", scope="Cluster"):
    """An owner without a namespace."""


def operator_of(kind, name, namespace):
    far = ConfigMap if kind is Region else child(ConfigMap, across_namespaces=True)

    @generates(kind, children=(far,))
    def settings(obj):
        # Objects of other tests on the same server have no children.
        far = ConfigMap(metadata=ObjectMeta(name="far", namespace=namespace), data={"a": "b"})
        return [far] if obj.key.name == name else []

    return managed(settings)


async def finalize(client, name):
    """End a namespace: the engine of these tests has no controllers."""
    namespace = await client.find(Namespace, name)
    if namespace is not None and namespace.spec.finalizers:
        namespace.spec.finalizers = None
        with suppress(Conflict, NotFound):
            await client.update(namespace, subresource="finalize")
    await eventually(client, Namespace, name, gone=True)


def waits(reason, namespace):
    """Whether an object waits for this namespace."""

    def check(obj):
        return any(
            each.type == "Ready" and each.reason == reason and f"namespace {namespace} " in each.message
            for each in (obj.status.conditions if obj.status else ())
        )

    return check


@pytest.mark.parametrize("kind", [Postgres, Region])
async def test_a_far_child_returns(plane, kind):
    """A namespace that was deleted and created again gets its child; the condition names it, not the owner's."""
    client, far = plane.client, f"{plane.namespace}-far"
    await client.create(Namespace(metadata=ObjectMeta(name=far)))
    name = plane.namespace
    owner = (
        postgres(name) if kind is Postgres else Region(metadata=ObjectMeta(name=name), spec=RegionSpec(namespace=far))
    )
    async with plane.running(operator_of(kind, name, far), namespaces=()):
        await client.create(owner)
        await eventually(client, kind, name, has=READY)
        await client.create(ConfigMap(metadata=ObjectMeta(name="holds", namespace=far, finalizers=[FINALIZER])))
        await client.delete(Namespace, far)
        await client.delete(ConfigMap, Key(far, "far"), missing_ok=True)
        await eventually(client, kind, name, waits("NamespaceTerminating", far))
        await client.patch(ConfigMap, Key(far, "holds"), MergePatch({"metadata": {"finalizers": None}}))
        await finalize(client, far)
        await eventually(client, kind, name, waits("NamespaceNotFound", far))
        await client.create(Namespace(metadata=ObjectMeta(name=far)))
        await eventually(client, ConfigMap, Key(far, "far"))
        await eventually(client, kind, name, has=READY)
        await client.delete(kind, name)
        await eventually(client, kind, name, gone=True)
    await client.delete(Namespace, far)


async def test_a_missing_namespace_holds_up_no_other_child(control_plane):
    """One of two namespaces is missing: the child in the other one is created, and the owner stays deletable."""
    client, missing = control_plane.client, f"{control_plane.namespace}-missing"

    @generates(Postgres, children=(child(ConfigMap, across_namespaces=True),))
    def settings(pg):
        return [
            ConfigMap(metadata=ObjectMeta(name="far", namespace=missing)),
            ConfigMap(metadata=ObjectMeta(name="near")),
        ]

    async with control_plane.running(managed(settings), namespaces=()) as operator:
        await client.create(postgres())
        await eventually(client, ConfigMap, "near")
        await eventually(client, Postgres, "pg", waits("NamespaceNotFound", missing))
        assert all(record.result != "error" for _, record in operator.runs)
        await client.delete(Postgres, "pg")
        await eventually(client, Postgres, "pg", gone=True)


async def test_a_limited_operator_reaches_far_children(control_plane):
    """`running` and a plan limit the owners to the test's namespace, not their children in others."""
    client, far = control_plane.client, f"{control_plane.namespace}-far"
    await client.create(Namespace(metadata=ObjectMeta(name=far)))
    operator = operator_of(Postgres, "pg", far)
    await control_plane.install(Postgres)
    await client.create(postgres())
    plan = await plan_changes(operator, client, namespaces=[control_plane.namespace])
    assert (plan.failed, [each.key for each in plan.created]) == ((), [Key(far, "far")])
    async with control_plane.running(operator):
        await eventually(client, Postgres, "pg", has=READY)
        await client.delete(ConfigMap, Key(far, "far"))
        await eventually(client, ConfigMap, Key(far, "far"))


async def test_a_clean_up_runs_once(plane):
    """A far child whose deletion takes time must not come back when it is gone: its owner could never go."""
    client = plane.client
    far = Key(await plane.create_namespace(f"{plane.namespace}-far"), "last-backup")

    @reconciles(Postgres, children=(child(ConfigMap, across_namespaces=True),))
    async def database(pg: Postgres, out: Outputs) -> Done:
        return Done()

    @database.finalizer
    async def last_backup(pg: Postgres, out: Outputs) -> Done:
        out.apply(ConfigMap(metadata=ObjectMeta(name=far.name, namespace=far.namespace, finalizers=[FINALIZER])))
        return Done()

    async with plane.running(managed(database), namespaces=()):
        await client.create(postgres())
        await eventually(client, Postgres, "pg", has=READY)
        await client.delete(Postgres, "pg")
        await eventually(client, ConfigMap, far, lambda found: found.deleting)
        await client.patch(ConfigMap, far, MergePatch({"metadata": {"finalizers": None}}))
        await eventually(client, Postgres, "pg", gone=True)
        assert await client.find(ConfigMap, far) is None
