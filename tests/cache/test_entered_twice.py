"""An informer or a cache that is entered twice says so: two tasks would follow each kind, and the first never end."""

import pytest

from steersman.cache import Cache, Informer
from steersman.kinds.core_v1 import ConfigMap


async def test_an_informer_is_entered_once(client):
    async with Informer(client, ConfigMap) as informer:
        with pytest.raises(RuntimeError, match="the informer of ConfigMap was entered already; make another Informer"):
            await informer.__aenter__()
        await informer.wait_synced()


async def test_a_cache_is_entered_once_at_a_time(client):
    async with Cache(client) as cache:
        with pytest.raises(RuntimeError, match="this cache is running already; make another Cache"):
            await cache.__aenter__()
        await cache.informer(ConfigMap).wait_synced()
