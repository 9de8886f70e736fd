"""A real API server that freezes, dies and comes back, and an etcd that does: the client tells, and goes on afterwards."""

import asyncio

import pytest

from steersman import Client, ObjectMeta
from steersman.client import Added, BearerToken, Config, RetryPolicy
from steersman.errors import ConnectionFailed, DeadlineExceeded, NotFound, OutcomeUnknown, Unauthorized
from steersman.kinds.core_v1 import ConfigMap
from steersman.testing import Engine
from steersman.transport import TlsMaterial

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ports")]


@pytest.fixture(scope="module")
def own_engine():
    """An engine of this file's own: what happens to it must not happen to others."""
    with Engine.start() as engine:
        yield engine


@pytest.fixture
async def impatient(own_engine):
    """A client that tries once and waits a second."""
    async with connected(own_engine) as client:
        yield client


def connected(engine):
    return Client.connect(
        kubeconfig=engine.kubeconfig, field_manager="tests", retry=RetryPolicy(attempts=1), timeout=1.0
    )


@pytest.fixture
async def server(own_engine):
    """The API server, running again after the test, whatever was done to it."""
    server = own_engine.api_servers[0]
    yield server
    if server.paused:
        await server.resume()
    if not server.running:
        await server.start()
    await own_engine.wait_ready()


def config(name):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data={"key": "OPENSESAME"})


async def test_a_server_that_freezes_during_a_watch(server, impatient, refused):
    await impatient.create(config("before"))
    async with impatient.watch(ConfigMap, initial_events=True, idle_timeout=1.0) as events:
        seen = [await anext(events)]
        assert isinstance(seen[0], Added)
        await server.pause()

        async def rest():
            return [event async for event in events]

        await refused(DeadlineExceeded, rest(), within=40)
        await server.resume()
    async with asyncio.timeout(60):
        while True:
            try:
                assert (await impatient.get(ConfigMap, "before")).data
                break
            except DeadlineExceeded:
                continue  # it has some catching up to do


async def test_a_server_that_freezes_during_a_request(server, impatient, refused):
    """A write on an open connection may happen later; without a connection it certainly does not."""
    await impatient.list(ConfigMap)
    await server.pause()
    await refused(OutcomeUnknown, impatient.create(config("frozen")), within=40)
    error = await refused(DeadlineExceeded, impatient.create(config("unsent")), within=40)
    assert not error.sent
    await refused(DeadlineExceeded, impatient.get(ConfigMap, "a"), within=40)
    await refused(DeadlineExceeded, anext(impatient.watch(ConfigMap)), within=40)
    await server.resume()
    async with Client.connect(kubeconfig=server.kubeconfig) as patient:
        try:
            found = await patient.get(ConfigMap, "frozen")
        except NotFound:
            found = None
        assert found is None or found.data == {"key": "OPENSESAME"}
        with pytest.raises(NotFound):
            await patient.get(ConfigMap, "unsent")


async def test_a_server_that_is_killed_during_a_watch(own_engine, server, impatient, refused):
    await impatient.create(config("watched"))
    async with impatient.watch(ConfigMap, initial_events=True) as events:
        assert isinstance(await anext(events), Added)
        await server.kill()

        async def rest():
            return [event async for event in events]

        await refused(ConnectionFailed, rest(), within=40)
        assert [event async for event in events] == []
    # Not the same client: it may not know yet that its open connections are closed.
    async with connected(own_engine) as late:
        error = await refused(ConnectionFailed, late.get(ConfigMap, "watched"), within=40)
        assert "is it running?" in str(error)
        error = await refused(ConnectionFailed, late.create(config("unsent")), within=40)
        assert not error.sent
    await server.start()
    assert (await impatient.get(ConfigMap, "watched")).data == {"key": "OPENSESAME"}


async def test_a_read_survives_a_restart(server):
    """With the usual retries, a server that is away for a moment is not noticed."""
    async with Client.connect(kubeconfig=server.kubeconfig, field_manager="tests") as client:
        await client.create(config("durable"))
        await server.kill()
        policy = RetryPolicy(attempts=100, initial_delay=0.1, maximum_delay=0.2)
        async with (
            Client.connect(kubeconfig=server.kubeconfig, retry=policy) as patient,
            asyncio.timeout(60),
            asyncio.TaskGroup() as tasks,
        ):
            reading = tasks.create_task(patient.list(ConfigMap, namespace="default"))
            await server.start()
            listed = await reading
        assert "durable" in [item.metadata.name for item in listed]


async def test_an_etcd_that_freezes_leaves_a_write_unknown(own_engine, server, impatient, refused):
    """The API server took the request and cannot tell either; afterwards it is there once, or not at all."""
    (etcd,) = own_engine.etcd
    await etcd.pause()
    try:
        await refused(OutcomeUnknown, impatient.create(config("stuck")), within=40)
    finally:
        await etcd.resume()
    await own_engine.wait_ready()
    async with Client.connect(kubeconfig=server.kubeconfig) as patient:
        listed = await patient.list(ConfigMap, namespace="default", fields={"metadata.name": "stuck"})
        assert len(listed) <= 1


async def test_a_wrong_token(own_engine, refused):
    tls = TlsMaterial(ca_file=str(own_engine.ca_file))
    async with Client.connect(Config(own_engine.url, tls=tls, auth=BearerToken("OPENSESAME"))) as stranger:
        error = await refused(Unauthorized, stranger.get(ConfigMap, "a"))
    assert "credentials" in str(error)


async def test_an_unknown_authority(own_engine, refused):
    async with Client.connect(
        Config(own_engine.url, auth=BearerToken("OPENSESAME")), retry=RetryPolicy(attempts=1)
    ) as stranger:
        error = await refused(ConnectionFailed, stranger.get(ConfigMap, "a"))
    assert "certificate-authority" in str(error)
