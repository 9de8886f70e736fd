"""Endpoints over TLS with certificates that the manager creates itself."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from samples.eventually import eventually
from samples.exposition import parse, value
from samples.site import Site
from steersman import Client, Key, ObjectMeta
from steersman.aio import Supervisor
from steersman.controller import Done
from steersman.errors import ApiError
from steersman.kinds.core_v1 import Namespace, Secret
from steersman.manager import HttpEndpoints, Manager, PermissionRule, permissions_of
from steersman.transport import HttpTransport, ServerTls, TlsMaterial
from steersman.wire import HttpRequest

pytestmark = pytest.mark.usefixtures("sites")


class Idle:
    """Does nothing."""

    async def reconcile(self, _ctx, _request) -> Done:
        return Done()


@pytest.fixture
async def client(api_server, namespace):
    async with api_server.client(field_manager="site-operator", namespace=namespace) as client:
        yield client


def manager_of(client: Client, namespace: str) -> Manager:
    endpoints = HttpEndpoints(port=0, service=f"{namespace}/site-metrics")
    manager = Manager(client, name="site-operator", endpoints=endpoints, namespaces=[client.namespace])
    manager.controller(Site).run_with(Idle())
    return manager


@asynccontextmanager
async def running(manager: Manager):
    async with asyncio.timeout(60), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await eventually(lambda: manager.address)
        yield
        manager.stop()


async def get(manager: Manager, path: str, **trust) -> tuple[int, str]:
    async with (
        HttpTransport(manager.address, tls=TlsMaterial(**trust)) as transport,
        await transport.send(HttpRequest("GET", path)) as response,
    ):
        return response.status, (await response.read()).decode()


async def test_metrics_are_served_over_tls_without_any_file(client, namespace):
    """Prometheus verifies the port with the authority in the Secret, under the name of the Service."""
    manager = manager_of(client, namespace)
    async with running(manager):
        assert manager.address.startswith("https://")
        secret = await client.get(Secret, "site-metrics-tls")
        assert secret.type == "kubernetes.io/tls"
        for name in (f"site-metrics.{namespace}.svc", "localhost"):
            status, text = await get(manager, "/metrics", ca_data=secret.data["ca.crt"], server_name=name)
            assert status == 200
            assert value(parse(text), "certwatcher_read_certificate_errors_total") == 0
        with pytest.raises(ApiError):
            await get(manager, "/metrics", ca_data=secret.data["ca.crt"], server_name="another.example.com")
        assert "[+]certificate ok" in (await get(manager, "/readyz?verbose", insecure_skip_verify=True))[1]


async def test_replicas_share_the_certificates(client, namespace):
    """Behind one Service, each connection may reach another replica."""
    first, second = manager_of(client, namespace), manager_of(client, namespace)
    async with running(first), running(second):
        secret = await client.get(Secret, "site-metrics-tls")
        for manager in (first, second):
            assert (await get(manager, "/healthz", ca_data=secret.data["ca.crt"], server_name="localhost"))[0] == 200


async def test_the_kubelet_is_answered_while_the_secret_cannot_be_written(client, namespace):
    """An outage of the API server, or a missing permission, must not restart the Pod."""
    elsewhere = f"later-{namespace[-20:]}".strip("-")
    manager = manager_of(client, elsewhere)
    async with running(manager):
        assert (await get(manager, "/healthz", insecure_skip_verify=True))[0] == 200
        _, text = await get(manager, "/readyz?verbose", insecure_skip_verify=True)
        assert f"[+]certificate ok (create Secret {elsewhere}/site-metrics-tls: " in text
        await client.create(Namespace(metadata=ObjectMeta(name=elsewhere)))
        while "[+]certificate ok\n" not in text:
            _, text = await get(manager, "/readyz?verbose", insecure_skip_verify=True)
        secret = await client.get(Secret, Key(elsewhere, "site-metrics-tls"))
        assert (await get(manager, "/healthz", ca_data=secret.data["ca.crt"], server_name="localhost"))[0] == 200


async def test_permissions_name_the_secret(client):
    manager = manager_of(client, "shop")
    own = permissions_of(manager).own_rules
    assert PermissionRule("", ("secrets",), ("get", "update"), ("site-metrics-tls",)) in own
    manager.endpoints = HttpEndpoints(service="shop/site-metrics", secret="certificates")
    assert PermissionRule("", ("secrets",), ("get", "update"), ("certificates",)) in permissions_of(manager).own_rules


def test_mistakes_are_refused_where_they_are_written():
    with pytest.raises(ValueError, match='service="metrics" has no namespace; write service="NAMESPACE/metrics"'):
        HttpEndpoints(service="metrics")
    with pytest.raises(ValueError, match="pass tls= or service=, not both"):
        HttpEndpoints(service="shop/metrics", tls=ServerTls(certificate_data=b"", key_data=b""))
    with pytest.raises(ValueError, match='secret="a" needs the Service'):
        HttpEndpoints(secret="a")
