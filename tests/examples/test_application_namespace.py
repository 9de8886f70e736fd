"""examples/application_namespace: what its users see, whichever operator runs and on either server."""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress

import pytest

from samples.hands import quotas_are_counted
from samples.stage import load
from steersman import Key, MergePatch, ObjectMeta, Quantity
from steersman.aio import name_suffix
from steersman.errors import NotFound
from steersman.kinds.core_v1 import ConfigMap, Namespace, ResourceQuota
from steersman.kinds.networking_v1 import NetworkPolicy
from steersman.kinds.rbac_v1 import RoleBinding
from steersman.objects import is_owned_by
from steersman.patterns import Outputs
from steersman.testing import eventually

types = load("application_namespace.types")
ApplicationNamespace = types.ApplicationNamespace

CONTENT = (RoleBinding, ResourceQuota, NetworkPolicy)
WITHIN = 60.0


@pytest.fixture(params=("bare", "operator"))
def manager(request):
    return load(f"application_namespace.{request.param}").manager


@pytest.fixture
async def app(plane):
    """An ApplicationNamespace that is not created yet; what it becomes goes after the test."""
    await plane.install(ApplicationNamespace)
    spec = types.ApplicationNamespaceSpec(
        owners=["jane", "joe"], quota={"pods": Quantity("10")}, labels={"team": "shop"}
    )
    app = ApplicationNamespace(metadata=ObjectMeta(name=f"shop-{name_suffix()}"), spec=spec)
    async with AsyncExitStack() as stack:
        if plane.server == "embedded":
            await stack.enter_async_context(plane.running(quotas_are_counted()))
        yield app
    for kind in (ApplicationNamespace, Namespace):
        with suppress(NotFound):
            await plane.client.delete(kind, app.key.name)


def ready(generation=1):
    condition = {"type": "Ready", "status": "True", "observedGeneration": generation}
    return {"status": {"observedGeneration": generation, "conditions": [condition]}}


def not_ready(reason):
    return {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": reason}]}}


async def content(plane, owner):
    """What there is in the namespace: kinds and names."""
    found = set()
    for kind in CONTENT:
        listed = await plane.client.list(kind, namespace=owner.key.name)
        found |= {(child.kind, child.key.name) for child in listed if is_owned_by(child, owner)}
    return found


async def test_a_namespace_from_its_creation_to_its_end(plane, app, manager):
    client, name = plane.client, app.key.name
    async with plane.running(manager):
        made = await client.create(app)
        await eventually(client, ApplicationNamespace, name, has=ready(), within=WITHIN)
        everything = {("RoleBinding", "owners"), ("ResourceQuota", "application"), ("NetworkPolicy", "isolation")}
        assert await content(plane, made) == everything
        await client.create(ConfigMap(metadata=ObjectMeta(name="somebody", namespace=name)))

        # what is not asked for any more goes, and nothing else
        spec = {"isolated": False, "quota": None, "owners": ["jane"], "labels": {"team": None, "tier": "web"}}
        await client.patch(ApplicationNamespace, name, MergePatch({"spec": spec}))
        await eventually(client, ApplicationNamespace, name, has=ready(2), within=WITHIN)
        assert await content(plane, made) == {("RoleBinding", "owners")}
        binding = await client.get(RoleBinding, Key(name, "owners"))
        assert [subject.name for subject in binding.subjects] == ["jane"]
        labels = (await client.get(Namespace, name)).metadata.labels
        assert "team" not in labels
        assert labels["tier"] == "web"
        assert await client.find(ConfigMap, Key(name, "somebody")) is not None
        await plane.drained(within=WITHIN)

    with plane.writes() as writes:
        async with plane.running(manager) as operator:
            await operator.drained(within=WITHIN)
    assert writes.by(manager.name) == []

    async with plane.running(manager):
        await client.delete(ApplicationNamespace, name)
        await eventually(client, ApplicationNamespace, name, gone=True, within=WITHIN)

        async def goes():
            left = await client.find(Namespace, name)
            return left is None or left.deleting  # Kubernetes takes five seconds for the rest

        await eventually(goes, within=WITHIN)


async def test_drift_is_corrected(plane, app, manager):
    client, name = plane.client, app.key.name
    async with plane.running(manager):
        await client.create(app)
        await eventually(client, ApplicationNamespace, name, has=ready(), within=WITHIN)

        await client.delete(NetworkPolicy, Key(name, "isolation"))
        await eventually(client, NetworkPolicy, Key(name, "isolation"), within=WITHIN)
        quota = Key(name, "application")
        await client.patch(ResourceQuota, quota, MergePatch({"spec": {"hard": {"pods": "1000"}}}))
        await eventually(client, ResourceQuota, quota, has={"spec": {"hard": {"pods": "10"}}}, within=WITHIN)
        await client.patch(Namespace, name, MergePatch({"metadata": {"labels": {"team": None}}}))
        await eventually(client, Namespace, name, has={"metadata": {"labels": {"team": "shop"}}}, within=WITHIN)


@pytest.mark.parametrize("manager", ["operator"], indirect=True)  # the end of a namespace takes Kubernetes five seconds
async def test_a_namespace_that_was_deleted_comes_back(plane, app, manager):
    """It ends first, with all that is in it; until then nothing can be made there."""
    client, name = plane.client, app.key.name
    async with plane.running(manager):
        await client.create(app)
        await eventually(client, ApplicationNamespace, name, has=ready(), within=WITHIN)
        gone = await client.get(Namespace, name)
        await client.delete(gone)
        again = await eventually(client, Namespace, name, lambda found: found.uid != gone.uid, within=WITHIN)
        assert not again.deleting
        await eventually(client, NetworkPolicy, Key(name, "isolation"), within=WITHIN)
        await eventually(client, ApplicationNamespace, name, has=ready(), within=WITHIN)


async def test_a_namespace_that_exists_is_refused_until_it_may_be_adopted(plane, app, manager):
    client, name = plane.client, app.key.name
    await client.create(Namespace(metadata=ObjectMeta(name=name, labels={"team": "other", "since": "2019"})))
    async with plane.running(manager) as operator:
        made = await client.create(app)
        await eventually(client, ApplicationNamespace, name, has=not_ready("NotOurs"), within=WITHIN)
        await operator.drained(within=WITHIN)
        assert await content(plane, made) == set()
        assert (await client.get(Namespace, name)).metadata.labels["team"] == "other"

        await client.patch(ApplicationNamespace, name, MergePatch({"spec": {"adopt": True}}))
        await eventually(client, ApplicationNamespace, name, has=ready(2), within=WITHIN)
        adopted = await client.get(Namespace, name)
        assert is_owned_by(adopted, made)
        assert adopted.metadata.labels["team"] == "shop"
        assert adopted.metadata.labels["since"] == "2019"  # not ours to remove
        assert len(await content(plane, made)) == 3


async def test_what_is_declared_can_be_asked_without_a_server():
    operator = load("application_namespace.operator").application_namespace
    spec = types.ApplicationNamespaceSpec(owners=["jane"], isolated=False)
    shop = ApplicationNamespace(metadata=ObjectMeta(name="shop"), spec=spec)
    out = Outputs(shop, operator.children)
    await operator(shop, out)
    assert [output.child.kind for output in out.declared] == ["Namespace", "RoleBinding"]
