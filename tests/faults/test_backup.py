"""Backing an engine up, putting the copy back, and reading what an API server counts."""

from pathlib import Path

import pytest

from steersman import ObjectMeta
from steersman.aio import name_suffix
from steersman.errors import NotFound
from steersman.kinds.core_v1 import ConfigMap
from steersman.testing import EngineError


def config(name):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data={"a": "b"})


async def test_a_restored_engine_is_as_it_was(broken_engine):
    suffix = name_suffix()
    async with broken_engine.client(field_manager="tests") as client:
        kept = await client.create(config(f"before-the-backup-{suffix}"))
        backup = await broken_engine.back_up()
        lost = await client.create(config(f"after-the-backup-{suffix}"))
        await client.delete(kept)
        await broken_engine.restore(backup)
        found = await client.get(ConfigMap, kept.key)
        assert found.metadata.resource_version == kept.metadata.resource_version
        with pytest.raises(NotFound):
            await client.get(ConfigMap, lost.key)
        # a copy can be put back more than once
        await client.delete(kept)
        await broken_engine.restore(backup)
        assert (await client.get(ConfigMap, kept.key)).metadata.uid == kept.metadata.uid


async def test_a_folder_that_is_no_backup_is_refused(broken_engine, tmp_path: Path):
    with pytest.raises(EngineError, match="is not a copy of this engine's etcd: it lacks etcd-0"):
        await broken_engine.restore(tmp_path)
    assert broken_engine.etcd[0].running


async def test_an_api_server_counts_its_requests(broken_engine):
    (server,) = broken_engine.api_servers
    async with broken_engine.client(field_manager="tests") as client:
        await client.apply(config("counted"))
    assert 'resource="configmaps",scope="resource",subresource="",verb="APPLY"' in await server.metrics()
