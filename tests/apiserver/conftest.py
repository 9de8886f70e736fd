"""A server in this process, a client of ours on it, and raw requests to it."""

import pytest

from samples.embedded import Raw
from samples.site import Site
from steersman import Client
from steersman.apiserver import ApiServer
from steersman.transport import InProcessTransport


@pytest.fixture
async def server():
    async with ApiServer(kinds=["v1", "apps/v1", "coordination.k8s.io/v1"], resources=[Site]) as server:
        yield server


@pytest.fixture
def raw(server):
    return Raw(server.handler)


@pytest.fixture
async def client(server):
    async with Client(InProcessTransport(server.handler), field_manager="tests") as client:
        yield client
