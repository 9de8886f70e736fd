"""One engine with Kubernetes' own controllers for all examples."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from samples.stage import load
from steersman import Client
from steersman.testing import Engine


async def _install(engine: Engine) -> None:
    async with engine.client(field_manager="example") as client:
        await client.install(
            load("site_operator").Site,
            load("namespace_quota").QuotaClass,
            load("external_job").Command,
            load("once").Task,
            load("schedule").Schedule,
        )
    # The garbage collector looks for new kinds when it starts, and then every 30 seconds.
    await engine.controller_manager.restart()


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """An engine that collects garbage, and whose Deployments and Jobs have Pods."""
    with Engine.start(controller_manager=True) as engine:
        engine.submit(_install(engine)).result()
        yield engine


@pytest.fixture
async def client(engine: Engine, namespace: str) -> AsyncIterator[Client]:
    """The operator's client; tests use it too."""
    async with engine.client(field_manager="example", namespace=namespace) as client:
        yield client
