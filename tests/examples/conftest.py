"""One engine with Kubernetes' own controllers for all examples; some run on an embedded control plane too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from samples.stage import load
from steersman import Client
from steersman.testing import Engine, Plane
from steersman.testing.embedded_host import EmbeddedHost
from steersman.testing.hosts import Host
from steersman.testing.plugin import namespace_for
from steersman.testing.remote_hosts import EngineHost

#: Kinds of the examples that are written twice, on the bare runtime and with patterns.
IN_SEVERAL_FILES = (
    load("postgres_cluster.types").PostgresCluster,
    load("application_namespace.types").ApplicationNamespace,
    load("secure_storage.types").SecureStorage,
)


async def _install(engine: Engine) -> None:
    async with engine.client(field_manager="example") as client:
        await client.install(
            load("site_operator").Site,
            load("namespace_quota").QuotaClass,
            load("external_job").Command,
            load("once").Task,
            load("immutable_settings").App,
            load("schedule").Schedule,
            *IN_SEVERAL_FILES,
        )
    # The garbage collector looks for new kinds when it starts, and then every 30 seconds.
    await engine.controller_manager.restart()


@pytest.fixture(scope="package")
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


@pytest.fixture(params=("embedded", "engine"))
def plane(request: pytest.FixtureRequest) -> Iterator[Plane]:
    """A control plane for an operator that is to do the same on both: one of its own, and Kubernetes itself."""
    if request.param == "embedded":
        host: Host = EmbeddedHost({}, in_thread=False, lasting=False)
    else:
        host = EngineHost(request.getfixturevalue("engine"))
        host.installed.update(IN_SEVERAL_FILES)
    plane = Plane(host, namespace=namespace_for(request.node.name))
    yield plane
    plane.end()
    host.end()
