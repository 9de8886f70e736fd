"""Proxies: found as kubectl finds them, used for a tunnel, their password kept."""

from __future__ import annotations

import asyncio
import base64

import pytest

from steersman.errors import ConfigError, ConnectionFailed
from steersman.transport import HttpTransport, TlsMaterial
from steersman.transport.proxies import proxy_from_environment, split_proxy
from steersman.wire import HttpRequest

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "environment", "expected"),
    [
        ("https://a.example.com", {}, None),
        ("https://a.example.com", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://a.example.com", {"https_proxy": PROXY}, PROXY),
        ("https://a.example.com", {"HTTPS_PROXY": "proxy:3128"}, PROXY),
        ("https://a.example.com", {"HTTP_PROXY": PROXY}, None),
        ("http://a.example.com", {"HTTP_PROXY": PROXY}, PROXY),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://a.example.com", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, None),
        ("https://a.example.com", {"HTTPS_PROXY": PROXY, "NO_PROXY": "example.com"}, None),
        ("https://a.example.com", {"HTTPS_PROXY": PROXY, "no_proxy": "x, .example.com"}, None),
        ("https://a.example.com", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*.example.com"}, None),
        ("https://example.com", {"HTTPS_PROXY": PROXY, "NO_PROXY": ".example.com"}, PROXY),
        ("https://badexample.com", {"HTTPS_PROXY": PROXY, "NO_PROXY": "example.com"}, PROXY),
        ("https://A.EXAMPLE.com", {"HTTPS_PROXY": PROXY, "NO_PROXY": "a.Example.COM"}, None),
        ("https://10.1.2.3:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, None),
        ("https://11.1.2.3:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8,nonsense/x"}, PROXY),
        ("https://10.1.2.3:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.1.2.3"}, None),
        ("https://[fd00::1]:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "fd00::/8"}, None),
        ("https://[fd00::1]:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "fd00::1"}, None),
        ("https://a.example.com:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "a.example.com:6443"}, None),
        ("https://a.example.com:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "a.example.com:443"}, PROXY),
    ],
)
def test_the_environment_is_read_as_kubectl_reads_it(server, environment, expected):
    assert proxy_from_environment(server, environment) == expected


def test_credentials_of_a_proxy_become_a_header():
    address, headers = split_proxy("http://us%40er:p%3Ass@proxy")
    assert address == "http://proxy:80"
    assert headers == {"Proxy-Authorization": "Basic " + base64.b64encode(b"us@er:p:ss").decode()}
    assert split_proxy("http://[::1]:3128") == ("http://[::1]:3128", {})


@pytest.mark.parametrize("address", ["socks5://u:s3cret@proxy", "proxy", "http://", "http://u:s3cret@:x", "http://["])
def test_an_address_of_a_proxy_that_cannot_be_used_is_a_config_error(address):
    with pytest.raises(ConfigError, match="proxy") as caught:
        split_proxy(address)
    assert "s3cret" not in str(caught.value)


async def server_talk(server, reader, writer):
    while True:
        await server.head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


async def tunnel(server, reader, writer):
    """A small proxy: answers CONNECT and passes bytes both ways."""
    head = await server.head(reader)
    host, _, port = head.split(b" ")[1].partition(b":")
    upstream, onward = await asyncio.open_connection(host.decode(), int(port))
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

    async def pass_on(source, target):
        try:
            while data := await source.read(65536):
                target.write(data)
        finally:
            target.close()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(pass_on(reader, onward))
        tasks.create_task(pass_on(upstream, writer))


async def get(transport: HttpTransport) -> bytes:
    request = HttpRequest("GET", "/api/v1/secrets", headers=(("Authorization", "Bearer s3cret"),))
    async with await transport.send(request, timeout=60) as response:
        return await response.read()


async def test_a_tunnel_through_a_proxy(raw, tmp_path, new_authority):
    """The proxy sees where we go and its own password, and nothing of the request."""
    authority = new_authority()
    server, address = await raw(server_talk, ssl=authority.server_context(tmp_path, "127.0.0.1"))
    proxy, proxy_address = await raw(tunnel)
    proxy_url = proxy_address.replace("http://", "http://user:password@")
    async with HttpTransport(address, tls=TlsMaterial(ca_data=authority.pem), proxy=proxy_url) as transport:
        assert await get(transport) == b"ok"
        assert await get(transport) == b"ok"
    assert len(server.received) == 2
    (head,) = proxy.received
    assert head.startswith(b"CONNECT " + address.removeprefix("https://").encode())
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"user:password") in head
    assert b"s3cret" not in head
    assert all(b"Proxy-Authorization" not in received for received in server.received)


async def test_a_server_without_tls_is_reached_by_its_whole_address(raw):
    """There is no tunnel: the proxy reads the request and passes it on."""
    proxy, proxy_address = await raw(server_talk)
    proxy_url = proxy_address.replace("http://", "http://user:password@")
    async with HttpTransport("http://10.255.255.1:8080/prefix", proxy=proxy_url) as transport:
        assert await get(transport) == b"ok"
        assert await get(transport) == b"ok"
    assert proxy.connections == 1
    head = proxy.received[0]
    assert head.startswith(
        b"GET http://10.255.255.1:8080/prefix/api/v1/secrets HTTP/1.1\r\nHost: 10.255.255.1:8080\r\n"
    )
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"user:password") in head


async def test_a_proxy_that_refuses_is_explained(raw, tmp_path):
    async def refuse(server, reader, writer):
        await server.head(reader)
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        await server.see_close(reader)

    _, proxy_address = await raw(refuse)
    async with HttpTransport("https://10.255.255.1:6443", proxy=proxy_address) as transport:
        with pytest.raises(
            ConnectionFailed, match=r"proxy refused to connect to https://10\.255\.255\.1:6443 \(407\)"
        ) as e:
            await get(transport)
    assert not e.value.sent


async def test_a_proxy_that_is_not_there_is_explained():
    proxy = "http://user:s3cret@127.0.0.1:1"
    async with HttpTransport("https://10.255.255.1:6443", proxy=proxy) as transport:
        with pytest.raises(ConnectionFailed, match="proxy for") as caught:
            await get(transport)
    assert not caught.value.sent
    assert "s3cret" not in str(caught.value)


async def test_the_environment_is_overruled_by_an_explicit_proxy_and_by_none(raw, tmp_path, monkeypatch, new_authority):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    async with HttpTransport("https://10.255.255.1:6443") as transport:
        with pytest.raises(ConnectionFailed, match="proxy for"):
            await get(transport)
    authority = new_authority()
    _, address = await raw(server_talk, ssl=authority.server_context(tmp_path, "127.0.0.1"))
    async with HttpTransport(address, tls=TlsMaterial(ca_data=authority.pem), proxy="") as transport:
        assert await get(transport) == b"ok"
