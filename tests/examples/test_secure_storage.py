"""examples/secure_storage: what its users see, whichever operator runs and on either server; and what the cloud sees."""

from __future__ import annotations

from collections import Counter

import pytest

from samples.cloud import CloudProcess
from samples.stage import load
from steersman import MergePatch, ObjectMeta
from steersman.kinds.core_v1 import Secret
from steersman.objects import is_owned_by
from steersman.testing import eventually

types = load("secure_storage.types")
SecureStorage = types.SecureStorage

KINDS = ("buckets", "keys", "policies")
WITHIN = 60.0
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


@pytest.fixture(params=("bare", "operator"))
def make(request):
    return load(f"secure_storage.{request.param}").make


@pytest.fixture(scope="module")
async def process(tmp_path_factory):
    async with CloudProcess(tmp_path_factory.mktemp("cloud") / "state.jsonl") as process:
        yield process


@pytest.fixture
async def cloud(process):
    return await process.anew()


def storage(name="photos", **spec):
    return SecureStorage(metadata=ObjectMeta(name=name), spec=types.SecureStorageSpec(**({"size": 5} | spec)))


async def ready(plane, name="photos"):
    def is_seen(found):
        return found.status.observed_generation == found.generation

    await eventually(plane.client, SecureStorage, name, has=READY, within=WITHIN)
    await eventually(plane.client, SecureStorage, name, is_seen, within=WITHIN)
    return await eventually(plane.client, SecureStorage, name, has=READY, within=WITHIN)


def says(condition, status, reason):
    return {"status": {"conditions": [{"type": condition, "status": status, "reason": reason}]}}


async def test_a_storage_from_its_creation_to_its_end(plane, cloud, make):
    client, here = plane.client, [plane.namespace]
    async with plane.running(make(), namespaces=here):
        await client.create(storage())
        found = await ready(plane)
        (bucket,), (key,), (policy,) = [await cloud.things(kind) for kind in KINDS]
        assert (found.status.bucket, found.status.key, found.status.policy) == (bucket["id"], key["id"], policy["id"])
        assert (bucket["size"], key["bucket"], policy["retention"]) == (5, bucket["id"], 30)
        assert bucket["tag"] == found.uid
        secret = await client.get(Secret, "photos")
        assert secret.data == {"bucket": bucket["id"].encode(), "key": key["id"].encode()}
        assert is_owned_by(secret, found)

        # a change leads to one update each, and nothing is made anew
        await client.patch(SecureStorage, "photos", MergePatch({"spec": {"size": 8, "retention": 90}}))
        await ready(plane)
        assert (await cloud.things("buckets"), await cloud.things("policies")) == (
            [bucket | {"size": 8}],
            [policy | {"retention": 90}],
        )
        await plane.drained(within=WITHIN)

    # a restart over a converged world writes nothing, here and there
    before = cloud.journal()
    with plane.writes() as writes:
        async with plane.running(make(), namespaces=here) as operator:
            await operator.drained(within=WITHIN)
    assert [write for write in writes if (write.manager or "").startswith("secure-storage")] == []
    assert cloud.journal() == before
    assert cloud.effects() == Counter(
        {("create", kind): 1 for kind in KINDS} | {("update", "buckets"): 1, ("update", "policies"): 1}
    )

    async with plane.running(make(), namespaces=here):
        await client.delete(SecureStorage, "photos")
        await eventually(client, SecureStorage, "photos", gone=True, within=WITHIN)
        assert cloud.live() == {}
        assert [entry["kind"] for entry in cloud.journal()[-3:]] == ["policies", "keys", "buckets"]


async def test_a_cloud_in_bad_weather_makes_everything_once(plane, cloud, make):
    """It breaks connections after it did what it was asked, refuses, and is slow."""
    client = plane.client
    async with plane.running(make(), namespaces=[plane.namespace], crashes=True):
        await cloud.weather(down=1)
        made = await client.create(storage())
        await eventually(
            client, SecureStorage, "photos", has=says("BucketReady", "False", "ExternalError"), within=WITHIN
        )
        found = await eventually(
            client, SecureStorage, "photos", has=says("Ready", "False", "ExternalError"), within=WITHIN
        )
        message = next(each.message for each in found.status.conditions if each.type == "Ready")
        assert "the cloud is down (503)" in message
        assert found.status.conditions[-1].status != "True"
        await cloud.weather(silent=3, slow=0.05)
        await ready(plane)
        assert cloud.effects() == Counter({("create", kind): 1 for kind in KINDS})
        assert {place: len(ids) for place, ids in cloud.live().items()} == {(kind, made.uid): 1 for kind in KINDS}

        await cloud.weather(silent=2)
        await client.delete(SecureStorage, "photos")
        await eventually(client, SecureStorage, "photos", gone=True, within=WITHIN)
        assert cloud.live() == {}


async def test_a_deleted_object_comes_back(plane, cloud, make):
    client = plane.client
    async with plane.running(make(look_again=0.5), namespaces=[plane.namespace]):
        await client.create(storage())
        before = (await ready(plane)).status.policy
        await cloud.delete("policies", before)
        found = await eventually(
            client, SecureStorage, "photos", lambda found: found.status.policy not in (None, before), within=WITHIN
        )
        (policy,) = await cloud.things("policies")
        assert policy["id"] == found.status.policy


async def test_a_cloud_that_is_killed_knows_what_it_knew(tmp_path):
    async with CloudProcess(tmp_path / "state.jsonl") as cloud:
        for _ in range(2):  # with a token, twice is once
            await cloud.create("buckets", "t1", {"size": 1})
        (before,) = await cloud.things("buckets")
    async with CloudProcess(tmp_path / "state.jsonl") as cloud:
        await cloud.create("buckets", "t1", {"size": 1})
        assert await cloud.things("buckets") == [before]
        await cloud.delete("buckets", before["id"])
        await cloud.create("buckets", "t1", {"size": 1})
        assert cloud.effects() == Counter({("create", "buckets"): 2, ("delete", "buckets"): 1})
