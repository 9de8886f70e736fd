"""The engine with the feature gate on computes our hashes, and parses our text."""

from __future__ import annotations

import pytest

from steersman import ObjectMeta
from steersman.kinds.core_v1 import Namespace, Secret
from steersman.testing import Engine
from steersman.wire import (
    SHARD_GATE,
    SHARD_PARAMETER,
    HashRange,
    ShardField,
    ShardSelector,
    key_of,
    print_query,
    shard_hash,
    split_list,
)

pytestmark = pytest.mark.slow

NAMES = ("ta", "tb", "tj", "team-1", "a" * 63, "0")


@pytest.fixture(scope="module")
def sharding_engine():
    with Engine.start(flags={"kube-apiserver": [f"--feature-gates={SHARD_GATE}=true"]}) as engine:
        yield engine


async def test_every_object_is_at_its_hash(sharding_engine: Engine) -> None:
    """A range of one hash: an object is found by the hash that we compute, and by no other."""
    async with sharding_engine.client(field_manager="user") as client:
        for name in NAMES:
            await client.create(Namespace(metadata=ObjectMeta(name=name)))
        namespaces = (await client.list(Namespace)).items

        async def found(path: str, field: ShardField, value: str) -> set[str]:
            start = shard_hash(value)
            shard = ShardSelector(field, (HashRange(start, start + 1),))
            query = print_query(((SHARD_PARAMETER, str(shard)),))
            page = split_list(await client.request("GET", f"{path}?{query}"))
            assert page.shard_selector == str(shard)
            return {key_of(item).name for item in page.items}

        everything = {each.metadata.name for each in namespaces}
        assert await found("/api/v1/namespaces", "namespace", "") == everything
        for each in namespaces:
            assert await found("/api/v1/namespaces", "uid", each.metadata.uid) == {each.metadata.name}
        for name in NAMES:
            await client.create(Secret(metadata=ObjectMeta(name=f"of-{name[:9]}", namespace=name)))
            assert await found("/api/v1/secrets", "namespace", name) == {f"of-{name[:9]}"}
        # A list of one namespace tells its shard too: a client asks so whether the server selects shards.
        assert await found("/apis/coordination.k8s.io/v1/namespaces/default/leases", "uid", "any") == set()
