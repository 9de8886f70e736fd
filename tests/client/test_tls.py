"""Certificates and ports that do not fit: a typed error that says what is wrong, and not a byte of the request leaves."""

import pytest

from samples.certificates import Authority
from samples.raw_server import always, answer, config_map
from steersman import ObjectMeta
from steersman.errors import ConfigError, ConnectionFailed, DeadlineExceeded, OutcomeUnknown, ProtocolError
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.transport import TlsMaterial

GOOD = answer(config_map())


@pytest.fixture
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ours"))


@pytest.fixture
def stranger(tmp_path_factory):
    """An authority that the other side does not know."""
    return Authority(tmp_path_factory.mktemp("theirs"))


def secret():
    return Secret(metadata=ObjectMeta(name="a", namespace="default"), string_data={"key": "OPENSESAME"})


async def test_a_certificate_that_is_good(serve, reach, authority):
    """What the other tests break, whole."""
    server = await serve(always(GOOD), tls=authority.server())
    client = await reach(server, tls=TlsMaterial(ca_file=str(authority.file)))
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"


@pytest.mark.parametrize(
    ("certificate", "said"),
    [
        ({"name": "other.example.com"}, "tls-server-name"),
        ({"days": (-9, -1)}, "expired"),
        ({"days": (1, 9)}, "not yet valid"),
    ],
)
async def test_a_certificate_that_is_wrong(serve, reach, refused, authority, certificate, said):
    server = await serve(always(GOOD), tls=authority.server(**certificate))
    client = await reach(server, tls=TlsMaterial(ca_file=str(authority.file)))
    error = await refused(ConnectionFailed, client.get(ConfigMap, "a"))
    assert said in str(error)
    error = await refused(ConnectionFailed, client.create(secret()))
    assert not error.sent
    assert server.requests == []


@pytest.mark.parametrize("material", [{"ca": True}, {}])
async def test_a_certificate_of_a_stranger(serve, reach, refused, authority, stranger, material):
    """Neither our own authority nor the system's signed it."""
    server = await serve(always(GOOD), tls=stranger.server())
    tls = TlsMaterial(ca_file=str(authority.file)) if material else TlsMaterial()
    error = await refused(ConnectionFailed, (await reach(server, tls=tls)).create(secret()))
    assert "certificate-authority" in str(error)
    assert not error.sent
    assert server.requests == []


async def test_the_right_name_under_another_address(serve, reach, authority):
    server = await serve(always(GOOD), tls=authority.server("api.example.com"))
    tls = TlsMaterial(ca_file=str(authority.file), server_name="api.example.com")
    assert (await (await reach(server, tls=tls)).get(ConfigMap, "a")).metadata.name == "a"


@pytest.mark.parametrize("shown", [None, "stranger"])
async def test_a_client_certificate_that_is_refused(serve, reach, refused, authority, stranger, shown):
    """In TLS 1.3 the refusal comes when the request is under way, so a write cannot know that it was not read."""
    server = await serve(always(GOOD), tls=authority.server(clients=authority))
    files = stranger.issue("somebody") if shown else (None, None)
    certificate_file, key_file = (str(file) if file else None for file in files)
    tls = TlsMaterial(ca_file=str(authority.file), certificate_file=certificate_file, key_file=key_file)
    client = await reach(server, tls=tls)
    await refused(ConnectionFailed, client.get(ConfigMap, "a"))
    await refused((ConnectionFailed, OutcomeUnknown), client.create(secret()))
    assert server.requests == []


async def test_a_client_certificate_that_is_known(serve, reach, authority):
    server = await serve(always(GOOD), tls=authority.server(clients=authority))
    certificate_file, key_file = (str(file) for file in authority.issue("somebody"))
    tls = TlsMaterial(ca_file=str(authority.file), certificate_file=certificate_file, key_file=key_file)
    assert (await (await reach(server, tls=tls)).get(ConfigMap, "a")).metadata.name == "a"


@pytest.mark.parametrize(
    ("said", "kind"), [(answer(b"", status="400 Bad Request"), ConnectionFailed), (b"", DeadlineExceeded)]
)
async def test_tls_to_a_port_without_it(serve, reach, refused, authority, said, kind):
    """A server that takes our greeting for a broken request, and one that waits for the end of it."""

    async def script(talk):
        await talk.reader.read(1)
        await talk.say(said)
        await talk.listen()

    server = await serve(script)
    tls = TlsMaterial(ca_file=str(authority.file))
    client = await reach(f"https://127.0.0.1:{server.port}", tls=tls, timeout=0.3)
    error = await refused(kind, client.create(secret()))
    assert not error.sent


async def test_no_tls_to_a_port_with_it(serve, reach, refused, authority):
    server = await serve(always(GOOD), tls=authority.server())
    client = await reach(f"http://127.0.0.1:{server.port}")
    await refused((ConnectionFailed, ProtocolError), client.get(ConfigMap, "a"))
    await refused(OutcomeUnknown, client.create(secret()))
    assert server.requests == []


async def test_an_authority_that_is_no_certificate(serve, reach, refused, tmp_path):
    bad = tmp_path / "ca.pem"
    bad.write_text("OPENSESAME is no certificate")
    server = await serve(always(GOOD))
    client = await reach(f"https://127.0.0.1:{server.port}", tls=TlsMaterial(ca_file=str(bad)))
    await refused(ConfigError, client.get(ConfigMap, "a"))
