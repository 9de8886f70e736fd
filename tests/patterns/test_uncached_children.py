"""Children in other namespaces are found before their owner goes, whatever the program declares or caches by now."""

import pytest

from samples.postgres import Postgres, conditions, managed, postgres
from steersman import Key, MergePatch, ObjectMeta
from steersman.controller import Done
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import Outputs, child, generates, reconciles
from steersman.testing import eventually


@pytest.fixture
async def elsewhere(control_plane):
    return await control_plane.create_namespace(f"{control_plane.namespace}-more")


def settings(name="settings", namespace=None, **metadata):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, **metadata), data={"a": "b"})


@reconciles(Postgres, children=(child(ConfigMap, across_namespaces=True),))
async def across(pg: Postgres, out: Outputs) -> Done:
    out.apply(settings(namespace=f"{pg.key.namespace}-more"))
    return Done()


@reconciles(Postgres, children=(ConfigMap,))
async def here(pg: Postgres, out: Outputs) -> Done:
    out.apply(settings())
    return Done()


@pytest.mark.parametrize("limited", [False, True], ids=["undeclared", "limited"])
async def test_nothing_is_left_elsewhere(control_plane, elsewhere, limited):
    client, far = control_plane.client, Key(f"{control_plane.namespace}-more", "settings")
    async with control_plane.running(managed(across)) as operator:
        made = await client.create(postgres())
        await operator.drained()
        copy = settings("copy", far.namespace, labels={"steersman.dev/owner-uid": made.uid})
        await client.create(copy)
    later = {"namespaces": [control_plane.namespace]} if limited else {}
    async with control_plane.running(managed(across if limited else here), **later, crashes=True):
        assert await client.find(ConfigMap, far) is not None
        await client.delete(Postgres, "pg")
        await eventually(client, Postgres, "pg", gone=True)
    assert await client.find(ConfigMap, far) is None
    # an object with a copied label stays
    assert await client.find(ConfigMap, far._replace(name="copy")) is not None


async def test_an_owner_stays_while_its_children_are_held(control_plane, elsewhere):
    client, far = control_plane.client, Key(f"{control_plane.namespace}-more", "settings")
    async with control_plane.running(managed(across)) as operator:
        await client.create(postgres())
        await operator.drained()
    await client.patch(ConfigMap, far, MergePatch({"metadata": {"finalizers": ["test.dev/held"]}}))
    async with control_plane.running(managed(here)):
        await client.delete(Postgres, "pg")
        deleting = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Deleting"}]}}
        found = await eventually(client, Postgres, "pg", has=deleting)
        assert conditions(found)["Ready"][-1] == f"ConfigMap {far} is being deleted, held by test.dev/held"
        await client.patch(ConfigMap, far, MergePatch({"metadata": {"finalizers": None}}))
        await eventually(client, Postgres, "pg", gone=True, within=60)


@generates(Postgres, children=(ConfigMap,), ordered_deletion=True)
def ordered(pg: Postgres) -> list[ConfigMap]:
    return [settings()]


async def test_children_that_are_to_be_orphaned_are_left(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(ordered)) as operator:
        await client.create(postgres())
        await operator.drained()
        await client.delete(Postgres, "pg", propagation="Orphan")
        await eventually(client, Postgres, "pg", gone=True)
        await operator.drained()
        assert (await client.get(ConfigMap, "settings")).metadata.owner_references is None
