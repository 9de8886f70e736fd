"""A cache on the server of a test."""

import pytest

from steersman.cache import Cache


@pytest.fixture
async def cache(client, sites):
    async with Cache(client) as cache:
        yield cache
