"""A client of the shared engine, and a cache on it."""

import pytest

from samples.site import Site
from steersman import Client
from steersman.cache import Cache


@pytest.fixture
async def client(engine):
    async with Client.connect(kubeconfig=engine.kubeconfig, field_manager="tests") as client:
        yield client


@pytest.fixture(scope="session")
async def sites(engine):
    """The Site kind, installed once."""
    async with Client.connect(kubeconfig=engine.kubeconfig, field_manager="tests") as client:
        await client.install(Site)


@pytest.fixture
async def cache(client, sites):
    async with Cache(client) as cache:
        yield cache
