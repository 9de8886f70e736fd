"""Quotas hold under concurrency, and cost nothing where there are none."""

import asyncio
from collections import Counter

import pytest

from samples.embedded import MERGE, Raw
from samples.site import GROUP
from steersman.apiserver import ApiServer, Attributes
from steersman.apiserver.storage import MemoryStorage

CORE = "/api/v1/namespaces/default"
QUOTA = f"{CORE}/resourcequotas/most"
PLENTY = "99"


def named(kind, name, **fields):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


async def limit(raw, **hard):
    """Create a quota with its status, as a controller would write it."""
    await raw.post(f"{CORE}/resourcequotas", named("ResourceQuota", "most", spec={"hard": hard}))
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    answer = await raw.send("PUT", f"{QUOTA}/status", named("ResourceQuota", "most", status=status))
    assert answer.code == 200


async def used(raw):
    return (await raw.get(QUOTA)).body["status"]["used"]


async def test_concurrent_creations_never_exceed_a_quota(raw):
    """Of 50 creations at once, as many succeed as the quota allows, and its usage says how many."""
    await limit(raw, configmaps="10")
    made = (raw.post(f"{CORE}/configmaps", named("ConfigMap", f"a{number}")) for number in range(50))
    answers = await asyncio.gather(*made)
    assert Counter(answer.code for answer in answers) == {201: 10, 403: 40}
    assert len((await raw.get(f"{CORE}/configmaps")).body["items"]) == 10
    assert await used(raw) == {"configmaps": "10"}


async def test_concurrent_writes_of_the_quota_lose_nothing(raw):
    """A controller raises a quota while Pods are created: every Pod is counted, and every new limit counts."""
    await limit(raw, pods=PLENTY)

    async def create(number):
        spec = {"containers": [{"name": "main", "image": "example.com/main:1"}]}
        return await raw.post(f"{CORE}/pods", named("Pod", f"a{number}", spec=spec))

    async def label(number):
        change = {"metadata": {"labels": {"seen": str(number)}}}
        return await raw.send("PATCH", QUOTA, change, content_type=MERGE)

    answers = await asyncio.gather(*(each(number) for number in range(20) for each in (create, label)))
    assert Counter(answer.code for answer in answers) == {201: 20, 200: 20}
    assert await used(raw) == {"pods": "20"}


async def test_a_quota_that_changes_all_the_time_rejects_the_write():
    """A write whose usage cannot be recorded is not stored, and its writer gets the conflict."""

    async def interfere(attributes: Attributes) -> None:
        if attributes.definition.resource == "resourcequotas" and attributes.request.user.name == "system:apiserver":
            change = {"metadata": {"labels": {"version": attributes.obj["metadata"]["resourceVersion"]}}}
            await raw.send("PATCH", QUOTA, change, content_type=MERGE)

    async with ApiServer(admission=[interfere]) as server:
        raw = Raw(server.handler)
        await limit(raw, configmaps=PLENTY)
        answer = await raw.post(f"{CORE}/configmaps", named("ConfigMap", "a"))
        assert (answer.code, answer.body["details"]["kind"]) == (409, "resourcequotas")
        assert (await raw.get(f"{CORE}/configmaps")).body["items"] == []
        assert await used(raw) == {"configmaps": "0"}


async def test_a_custom_resource_counts(raw):
    """A quota also counts objects of custom kinds."""
    counted = f"count/sites.{GROUP}"
    await limit(raw, **{counted: "1"})
    site = {"apiVersion": f"{GROUP}/v1", "kind": "Site", "spec": {"image": "a"}}
    sites = f"/apis/{GROUP}/v1/namespaces/default/sites"
    first, second = [await raw.post(sites, site | {"metadata": {"name": name}}) for name in "ab"]
    assert (first.code, second.code) == (201, 403)
    assert second.body["message"].endswith(f"requested: {counted}=1, used: {counted}=1, limited: {counted}=1")


class CountedStorage(MemoryStorage):
    """Counts what is read of quotas and limit ranges."""

    searches = 0

    async def list(self, prefix, **options):
        self.searches += prefix.startswith(("core/resourcequotas/", "core/limitranges/"))
        return await super().list(prefix, **options)


@pytest.mark.parametrize(
    ("kind", "create", "update"),
    [
        pytest.param(named("ConfigMap", "a"), 1, 0, id="ConfigMap"),
        pytest.param(named("Pod", "a", spec={"containers": [{"name": "main", "image": "x"}]}), 3, 0, id="Pod"),
    ],
)
async def test_a_namespace_without_quotas_costs_almost_nothing(kind, create, update):
    """A write searches the store's index once for quotas and, if it is a Pod's creation, twice for limit ranges."""
    storage = CountedStorage()
    async with storage, ApiServer(storage=storage) as server:
        raw = Raw(server.handler)
        path = f"{CORE}/{kind['kind'].lower()}s"
        storage.searches = 0
        assert (await raw.post(path, kind)).code == 201
        assert storage.searches == create
        storage.searches = 0
        change = {"metadata": {"labels": {"a": "b"}}}
        answer = await raw.send("PATCH", f"{path}/a", change, content_type=MERGE)
        assert (answer.code, storage.searches) == (200, update)
