"""An API server at an IPv6 address: in a kubeconfig, in a pod, in its certificate and in the Host header."""

import dataclasses

import pytest
import yaml
from faults.connect_proxy import ConnectProxy
from faults.leading import leading
from faults.tls_proxy import TlsProxy

from samples.certificates import Authority
from steersman import Client
from steersman.client import in_cluster_config, load_kubeconfig
from steersman.errors import ConnectionFailed
from steersman.manager import HttpEndpoints
from steersman.transport import HttpTransport
from steersman.wire import HttpRequest


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def folder(tmp_path, authority, broken_engine):
    """What a pod finds of its service account."""
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text(broken_engine.admin_token)
    (folder / "ca.crt").write_bytes(authority.file.read_bytes())
    return folder


async def test_an_operator_leads_at_an_ipv6_address(broken_engine, room, authority, folder, monkeypatch):
    """In a pod, where the address comes without brackets; the manager's own endpoints are on ::1, too."""
    async with TlsProxy(broken_engine, authority.issue("::1"), host="::1").serve() as proxy:
        port = proxy.url.rpartition(":")[2]
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "::1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        config = in_cluster_config(folder)
        assert config.server == f"https://[::1]:{port}"
        endpoints = HttpEndpoints(port=0, host="::1")
        async with leading(broken_engine, config, room, endpoints=endpoints) as leader:
            await leader.asks()
            await leader.tells()
            assert leader.leads_its_first_term()
            assert {line for head in proxy.heads for line in head.splitlines() if line.startswith("Host:")} == {
                f"Host: [::1]:{port}"
            }
            assert proxy.accepted >= 4
            address = leader.manager.address
            assert address.startswith("http://[::1]:")
            async with HttpTransport(address) as transport:
                response = await transport.send(HttpRequest("GET", "/healthz"))
                assert (response.status, await response.read()) == (200, b"ok")


async def test_a_kubeconfig_names_an_ipv6_address_behind_a_proxy(broken_engine, room, authority, tmp_path):
    """CONNECT has the address in brackets, and so has the Host header inside of the tunnel."""
    async with (
        TlsProxy(broken_engine, authority.issue("::1"), host="::1").serve() as server,
        ConnectProxy().serve() as proxy,
    ):
        document = yaml.safe_load(broken_engine.kubeconfig.read_text())
        document["clusters"][0]["cluster"] = {
            "server": server.url, "certificate-authority": str(authority.file), "proxy-url": proxy.url
        }  # fmt: skip
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(document))
        config = load_kubeconfig(kubeconfig, context="admin-token")
        async with leading(broken_engine, config, room) as leader:
            await leader.asks()
            assert leader.leads_its_first_term()
        assert {f"https://{target}" for target in proxy.opened} == {server.url}
        assert all(f"Host: {server.url.removeprefix('https://')}" in head for head in server.heads)


async def test_the_certificate_must_be_for_the_ipv6_address(broken_engine, authority, folder):
    async with TlsProxy(broken_engine, authority.issue("127.0.0.1"), host="::1").serve() as proxy:
        config = load_kubeconfig(broken_engine.kubeconfig, context="admin-token")
        tls = dataclasses.replace(config.tls, ca_file=str(authority.file), ca_data=None)
        config = dataclasses.replace(config, server=proxy.url, tls=tls)
        async with Client.connect(config) as client:
            with pytest.raises(ConnectionFailed, match="use a name that is in the certificate, or set tls-server-name"):
                await client.request("GET", "/version")
        named = dataclasses.replace(config, tls=dataclasses.replace(tls, server_name="127.0.0.1"))
        async with Client.connect(named) as client:
            assert b"gitVersion" in await client.request("GET", "/version")
