import pytest

from steersman import Client


@pytest.fixture
async def client(engine):
    async with Client.connect(kubeconfig=engine.kubeconfig, field_manager="tests") as client:
        yield client
