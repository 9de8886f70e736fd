"""examples/namespace_quota.py: what its users see."""

from __future__ import annotations

import pytest

from samples.stage import gone, load, running, seen
from steersman import Key, MergePatch, ObjectMeta, Quantity
from steersman.aio import name_suffix
from steersman.errors import Forbidden
from steersman.kinds.core_v1 import ConfigMap, Namespace, ResourceQuota

example = load("namespace_quota")
QuotaClass = example.QuotaClass


@pytest.fixture
async def small(client):
    name = f"small-{name_suffix()}"
    spec = example.QuotaClassSpec(hard={"pods": Quantity("10"), "count/configmaps": Quantity("2")})
    await client.create(QuotaClass(metadata=ObjectMeta(name=name), spec=spec))
    yield name
    if await client.find(QuotaClass, name) is not None:
        await client.delete(QuotaClass, name)
        await gone(client, QuotaClass, name)


async def choose(client, namespace, name):
    await client.patch(Namespace, namespace, MergePatch({"metadata": {"labels": {example.CLASS: name}}}))


async def fill(client):
    for number in range(5):
        await client.create(ConfigMap(metadata=ObjectMeta(name=f"number-{number}")))


def counts(number):
    return lambda found: found.status is not None and found.status.namespaces == number


async def test_a_namespace_gets_and_loses_the_quota_of_its_class(engine, client, namespace, small):
    quota = Key(namespace, f"class-{small}")
    async with running(client, example) as operator:
        await choose(client, namespace, small)
        await seen(client, ResourceQuota, quota, lambda found: str(found.spec.hard["pods"]) == "10")
        await seen(client, QuotaClass, small, counts(1))
        assert f"{small}   1" in await engine.kubectl("get", "quotaclasses")

        # Kubernetes' own controller counts, and its server enforces
        await seen(
            client, ResourceQuota, quota, lambda found: found.status and "count/configmaps" in (found.status.used or {})
        )
        with pytest.raises(Forbidden, match=f"class-{small}"):
            await fill(client)
        await operator.assert_quiet()

        await client.patch(QuotaClass, small, MergePatch({"spec": {"hard": {"pods": "20"}}}))
        await seen(client, ResourceQuota, quota, lambda found: str(found.spec.hard["pods"]) == "20")

        await client.delete(ResourceQuota, quota)  # drift
        await seen(client, ResourceQuota, quota, lambda found: str(found.spec.hard["pods"]) == "20")

        await choose(client, namespace, None)
        await gone(client, ResourceQuota, quota)
        await seen(client, QuotaClass, small, counts(0))


async def test_a_class_takes_its_quotas_along(client, namespace, small):
    """Owned across namespaces: the garbage collector removes them."""
    quota = Key(namespace, f"class-{small}")
    async with running(client, example):
        await choose(client, namespace, small)
        await seen(client, ResourceQuota, quota)
        await client.delete(QuotaClass, small)
        await gone(client, ResourceQuota, quota)


async def test_a_restart_over_a_converged_world_writes_nothing(client, namespace, small):
    async with running(client, example) as operator:
        await choose(client, namespace, small)
        await seen(client, QuotaClass, small, counts(1))
        await operator.settled()
    async with running(client, example) as operator:
        await operator.settled()
        assert operator.runs >= 1
        assert operator.writes == []


class Accepted:
    """A transport that remembers in which form Namespaces were asked for."""

    def __init__(self, transport, forms):
        self._transport = transport
        self._forms = forms

    async def send(self, request, **options):
        if request.path == "/api/v1/namespaces":
            self._forms.extend(value for name, value in request.headers if name == "Accept")
        return await self._transport.send(request, **options)

    async def close(self):
        """Leave it to the client that it belongs to."""


async def test_of_namespaces_only_metadata_is_transferred(client, namespace, small):
    forms = []
    async with running(client.with_transport(lambda transport: Accepted(transport, forms)), example):
        await choose(client, namespace, small)
        await seen(client, QuotaClass, small, counts(1))
    assert forms
    assert all("as=PartialObjectMetadata" in form for form in forms)
