"""TLS: whom we trust, what we show, and what happens when it changes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from steersman.errors import ConfigError, ConnectionFailed
from steersman.transport import HttpTransport, TlsMaterial
from steersman.wire import HttpRequest


async def talk(server, reader, writer):
    """Answer with the common name of the client's certificate."""
    peer = writer.get_extra_info("peercert") or {}
    names = [value for part in peer.get("subject", ()) for key, value in part if key == "commonName"]
    name = (names or ["nobody"])[0].encode()
    while True:
        await server.head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(name), name))


async def get(transport: HttpTransport) -> bytes:
    async with await transport.send(HttpRequest("GET", "/version"), timeout=60) as response:
        return await response.read()


def replace_file(path: str, content: bytes) -> None:
    """Write as renewals are written: a new file under the old name."""
    fresh = Path(path + ".new")
    fresh.write_bytes(content)
    fresh.replace(path)


def remove_file(path: str) -> None:
    Path(path).unlink()


async def test_a_trusted_server_is_talked_to(raw, tmp_path, new_authority):
    authority = new_authority()
    _, address = await raw(talk, ssl=authority.server_context(tmp_path, "127.0.0.1"))
    async with HttpTransport(address, tls=TlsMaterial(ca_data=authority.pem)) as transport:
        assert await get(transport) == b"nobody"


async def test_a_certificate_of_another_authority_is_refused(raw, tmp_path, new_authority):
    """The sentence must name the server, the fault and the setting to look at."""
    server, address = await raw(talk, ssl=new_authority().server_context(tmp_path, "127.0.0.1"))
    async with HttpTransport(address, tls=TlsMaterial(ca_data=new_authority("other").pem)) as transport:
        with pytest.raises(ConnectionFailed) as caught:
            await get(transport)
    text = str(caught.value)
    assert address in text
    assert "not trusted" in text
    assert "certificate-authority" in text
    assert not caught.value.sent
    assert server.received == []


async def test_a_certificate_for_another_name_is_refused_unless_the_name_is_given(raw, tmp_path, new_authority):
    authority = new_authority()
    _, address = await raw(talk, ssl=authority.server_context(tmp_path, "kubernetes.default"))
    async with HttpTransport(address, tls=TlsMaterial(ca_data=authority.pem)) as transport:
        with pytest.raises(ConnectionFailed, match="tls-server-name"):
            await get(transport)
    material = TlsMaterial(ca_data=authority.pem, server_name="kubernetes.default")
    async with HttpTransport(address, tls=material) as transport:
        assert await get(transport) == b"nobody"


async def test_an_expired_certificate_is_named_as_such(raw, tmp_path, new_authority):
    authority = new_authority()
    _, address = await raw(talk, ssl=authority.server_context(tmp_path, "127.0.0.1", expired=True))
    async with HttpTransport(address, tls=TlsMaterial(ca_data=authority.pem)) as transport:
        with pytest.raises(ConnectionFailed, match="expired; renew it"):
            await get(transport)


async def test_verification_can_be_switched_off(raw, tmp_path, new_authority):
    _, address = await raw(talk, ssl=new_authority().server_context(tmp_path, "elsewhere", expired=True))
    async with HttpTransport(address, tls=TlsMaterial(insecure_skip_verify=True)) as transport:
        assert await get(transport) == b"nobody"


async def test_without_a_ca_the_systems_own_are_trusted(raw, tmp_path, new_authority):
    _, address = await raw(talk, ssl=new_authority().server_context(tmp_path, "127.0.0.1"))
    async with HttpTransport(address) as transport:
        with pytest.raises(ConnectionFailed, match="not trusted"):
            await get(transport)


async def test_plain_http_where_tls_is_expected_is_explained(raw):
    async def plain(server, reader, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    _, address = await raw(plain)
    async with HttpTransport(address.replace("http:", "https:")) as transport:
        with pytest.raises(ConnectionFailed, match="does it serve TLS on this port") as caught:
            await get(transport)
    assert not caught.value.sent


@pytest.mark.parametrize("as_data", [True, False])
async def test_a_client_certificate_is_shown(raw, tmp_path, as_data, new_authority):
    authority = new_authority()
    _, address = await raw(talk, ssl=authority.server_context(tmp_path, "127.0.0.1", clients=True))
    pair = authority.issue("alice")
    certificate, key = pair.write(tmp_path, "alice")
    if as_data:
        material = TlsMaterial(ca_data=authority.pem, certificate_data=pair.certificate, key_data=pair.key)
    else:
        material = TlsMaterial(ca_data=authority.pem, certificate_file=certificate, key_file=key)
    async with HttpTransport(address, tls=material) as transport:
        assert await get(transport) == b"alice"


async def test_a_missing_client_certificate_is_an_error_in_bounded_time(raw, tmp_path, new_authority):
    authority = new_authority()
    _, address = await raw(talk, ssl=authority.server_context(tmp_path, "127.0.0.1", clients=True))
    async with HttpTransport(address, tls=TlsMaterial(ca_data=authority.pem)) as transport:
        with pytest.raises(ConnectionFailed, match=r"certificate required|without a response"):
            await get(transport)


async def test_a_renewed_client_certificate_is_used_by_the_next_request(raw, tmp_path, new_authority):
    """Short-lived certificates are renewed under a running client; it must not need a restart."""
    authority = new_authority()
    server, address = await raw(talk, ssl=authority.server_context(tmp_path, "127.0.0.1", clients=True))
    certificate, key = authority.issue("first").write(tmp_path, "client")
    material = TlsMaterial(ca_data=authority.pem, certificate_file=certificate, key_file=key)
    async with HttpTransport(address, tls=material) as transport:
        assert await get(transport) == b"first"
        assert await get(transport) == b"first"
        assert server.connections == 1

        second = authority.issue("second")
        replace_file(certificate, second.certificate)
        # between the two writes the pair does not match: the old one is still good
        assert await get(transport) == b"first"
        replace_file(key, second.key)
        assert await get(transport) == b"second"
        assert server.connections == 2


async def test_a_renewed_authority_is_used_by_the_next_connection(raw, tmp_path, new_authority):
    old, new = new_authority("old"), new_authority("new")
    _, address = await raw(talk, ssl=new.server_context(tmp_path, "127.0.0.1"))
    ca_file = str(tmp_path / "ca.crt")
    replace_file(ca_file, old.pem)
    async with HttpTransport(address, tls=TlsMaterial(ca_file=ca_file)) as transport:
        with pytest.raises(ConnectionFailed, match="not trusted"):
            await get(transport)
        replace_file(ca_file, new.pem)
        assert await get(transport) == b"nobody"
        remove_file(ca_file)
        assert await get(transport) == b"nobody"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"ca_data": b"not a certificate"}, "certificate authority given as data"),
        ({"ca_data": b"\xff\xfe"}, "certificate authority given as data"),
        ({"ca_data": b""}, "certificate authority given as data"),
        (
            {"ca_file": "/nonexistent/ca.crt"},
            r"cannot load the certificate authority /nonexistent/ca\.crt: no such file",
        ),
        ({"certificate_file": "/nonexistent/client.crt"}, r"/nonexistent/client\.crt"),
        ({"key_data": b"s3cret"}, "client certificate"),
        ({"key_data": None}, "has no key"),
    ],
)
async def test_material_that_cannot_be_loaded_is_a_config_error(change, match, new_authority):
    authority = new_authority()
    pair = authority.issue("alice")
    material = {"ca_data": authority.pem, "certificate_data": pair.certificate, "key_data": pair.key} | change
    if "ca_file" in change:
        material["ca_data"] = None
    if "certificate_file" in change:
        material["certificate_data"] = None
    async with HttpTransport("https://127.0.0.1:1", tls=TlsMaterial(**material)) as transport:
        with pytest.raises(ConfigError, match=match) as caught:
            await get(transport)
    assert "s3cret" not in str(caught.value)


async def test_an_encrypted_key_never_asks_for_a_password(new_authority):
    """OpenSSL would ask on the terminal and hang a program that has none."""
    authority = new_authority()
    pair = authority.issue("alice")
    material = TlsMaterial(certificate_data=pair.certificate, key_data=pair.encrypted_key)
    async with HttpTransport("https://127.0.0.1:1", tls=material) as transport:
        with pytest.raises(ConfigError, match="encrypted"):
            await get(transport)


def test_keys_are_not_shown():
    material = TlsMaterial(certificate_data=b"c", key_data=b"s3cret", ca_data=b"ca")
    assert "s3cret" not in repr(material)


async def test_cancelling_over_tls_closes_the_connection(raw, tmp_path, new_authority):
    authority = new_authority()

    async def silent(server, reader, writer):
        await server.head(reader)
        await server.see_close(reader)

    server, address = await raw(silent, ssl=authority.server_context(tmp_path, "127.0.0.1"))
    async with HttpTransport(address, tls=TlsMaterial(ca_data=authority.pem)) as transport:
        task = asyncio.get_running_loop().create_task(get(transport))
        await server.arrived(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.closed.wait(), 60)


async def test_closing_the_transport_ends_streams_over_tls(raw, tmp_path, new_authority):
    authority = new_authority()

    async def stream(server, reader, writer):
        await server.head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        await server.see_close(reader)

    server, address = await raw(stream, ssl=authority.server_context(tmp_path, "127.0.0.1"))
    transport = HttpTransport(address, tls=TlsMaterial(ca_data=authority.pem))
    response = await transport.send(HttpRequest("GET", "/"), stream=True)
    chunks = response.chunks()
    assert await anext(chunks) == b"first"
    reading = asyncio.get_running_loop().create_task(anext(chunks))
    await asyncio.sleep(0)
    await transport.close()
    with pytest.raises(ConnectionFailed):
        await asyncio.wait_for(reading, 60)
    await asyncio.wait_for(server.closed.wait(), 60)
