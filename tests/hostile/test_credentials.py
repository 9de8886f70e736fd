"""A port answers no request without credentials, health and version aside: tried for every path there is."""

from __future__ import annotations

import asyncio
import json
import ssl
from datetime import timedelta
from random import Random  # noqa: TID251 - seeded here

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hostile import strange
from hostile.catalog import read_catalog, reader
from hostile.port import Port, Talk, context_for
from hostile.requests import METHODS

from steersman import aio
from steersman.apiserver import ApiServer, MemoryStorage, User
from steersman.apiserver.bootstrap import create_objects
from steersman.apiserver.chain import Authentication, Rbac, Reviews, chain, single_user
from steersman.apiserver.serving import Authority, serve
from steersman.transport import HttpListener
from steersman.wire import HttpRequest

OPEN = {"/healthz", "/livez", "/readyz", "/version", "/version/"}
TOKEN = "s3cret"
UNAUTHORIZED = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "Unauthorized",
    "reason": "Unauthorized",
    "code": 401,
}


@pytest.fixture(scope="module")
async def served(tmp_path_factory):
    """A server on a port, and its folder."""
    tmp_path = tmp_path_factory.mktemp("served")
    async with MemoryStorage() as storage:
        rbac = Rbac(storage)
        robot = User(name="robot", groups=("system:masters",))
        authentication = Authentication(tokens={TOKEN: robot})
        server = ApiServer(
            storage=storage,
            definitions=Reviews(rbac, authentication).definitions(),
            chain=chain(authorizer=rbac, authentication=authentication),
        )
        async with serve(server, folder=tmp_path, grace=0.1) as served:
            await create_objects(server.registry, server.storage, policy=True)
            yield server, served, tmp_path


@pytest.fixture(scope="module")
async def paths(served):
    """All paths that discovery and OpenAPI tell of, and odd ones near them."""
    server = served[0]
    rng = Random(7)
    catalog = await read_catalog(reader(server.handler))
    paths = dict.fromkeys(catalog.others)
    for one in catalog.resources:
        paths |= dict.fromkeys([one.path(""), one.path("default"), one.path("default", "a")])
        paths |= dict.fromkeys(one.path("default", "a", each) for each in one.subresources)
    for template in catalog.templates:
        filled = template.replace("{namespace}", "default").replace("{name}", "a").replace("{path}", "x")
        paths |= dict.fromkeys([filled, f"{filled}/", filled.replace("/", "//", 1)])
        paths[f"{filled}/{rng.choice(strange.STRANGE_SEGMENTS)}".replace(" ", "")] = None
    paths |= dict.fromkeys(f"{path}/{part}" for path in OPEN for part in ("x", "..", "%2e%2e", "..;", "ping", "%2f"))
    paths |= dict.fromkeys(
        [f"{path}%00" for path in OPEN] + [path.upper() for path in OPEN] + ["/metrics", "/debug/pprof"]
    )
    return [path for path in paths if path not in OPEN]


async def test_no_path_is_answered_without_credentials(served, paths):
    _, where, folder = served
    assert len(paths) > 600
    rng = Random(1)
    async with Port(where.port, context_for(folder)) as anonymous:
        for path in paths:
            for method in ("GET", rng.choice(["POST", "PUT", "PATCH", "DELETE"]), rng.choice(METHODS[5:])):
                query = (("watch", "1"),) if rng.random() < 0.1 else ()
                status, _, body = await anonymous.send(
                    HttpRequest(method, path, query, (), b"{}" if method == "POST" else None)
                )
                # What is no HTTP is not answered by the server at all.
                assert status in {401, 400}, (method, path, status)
                assert status == 400 or method == "HEAD" or json.loads(body) == UNAUTHORIZED, (method, path)
        for path in OPEN:
            assert (await anonymous.send(HttpRequest("GET", path)))[0] == 200
            for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
                assert (await anonymous.send(HttpRequest(method, path)))[0] == 401


BAD = {
    "a wrong token": (("Authorization", "Bearer wrong"),),
    "a token that is too long": (("Authorization", f"Bearer {TOKEN}x"),),
    "a token in another case": (("Authorization", f"Bearer {TOKEN.upper()}"),),
    "no token": (("Authorization", "Bearer "),),
    "no scheme": (("Authorization", TOKEN),),
    "basic": (("Authorization", "Basic cm9ib3Q6czNjcmV0"),),
    "another scheme": (("Authorization", f"Token {TOKEN}"),),
    "a tab": (("Authorization", f"Bearer\t{TOKEN}"),),
    "a proxy's token": (("Proxy-Authorization", f"Bearer {TOKEN}"),),
    "a cookie": (("Cookie", f"token={TOKEN}"),),
    "a front proxy's user": (("X-Remote-User", "robot"), ("X-Remote-Group", "system:masters")),
    "another user": (("Impersonate-User", "robot"), ("Impersonate-Group", "system:masters")),
    "a forwarded address": (("X-Forwarded-For", "127.0.0.1"), ("X-Real-Ip", "127.0.0.1")),
    "half a token": (("Authorization", "Bearer \udcff"),),
}


@pytest.mark.parametrize("headers", BAD.values(), ids=BAD)
async def test_bad_credentials_are_none(served, paths, headers):
    _, where, folder = served
    rng = Random(2)
    some = rng.sample([path for path in paths if path.isascii()], 20)
    async with Port(where.port, context_for(folder)) as port:
        for path in ["/api/v1/secrets", *some]:
            status, _, body = await port.send(HttpRequest("GET", path, (), headers))
            assert (status, json.loads(body)) == (401, UNAUTHORIZED), path
        for name in ("access_token", "token", "authorization", "user"):
            assert (await port.send(HttpRequest("GET", "/api/v1/secrets", ((name, TOKEN),), headers)))[0] == 401


async def test_a_wrong_token_is_refused_where_none_is_needed(served):
    _, where, folder = served
    async with Port(where.port, context_for(folder)) as port:
        for path in OPEN:
            assert (await port.send(HttpRequest("GET", path, (), (("Authorization", "Bearer wrong"),))))[0] == 401


async def test_a_good_token_is_good_in_any_case_of_its_scheme_and_impersonates_only_by_right(served):
    _, where, folder = served
    async with Port(where.port, context_for(folder)) as port:
        for scheme in ("Bearer", "bearer", "BEARER"):
            headers = (("Authorization", f"{scheme} {TOKEN}"),)
            assert (await port.send(HttpRequest("GET", "/api/v1/secrets", (), headers)))[0] == 200
    async with Port(where.port, context_for(folder, user="lee")) as port:
        for headers in (
            (),
            (("Impersonate-User", "robot"),),
            (("Impersonate-User", "lee"), ("Impersonate-Group", "system:masters")),
        ):
            assert (await port.send(HttpRequest("GET", "/api/v1/secrets", (), headers)))[0] == 403
        status, _, body = await port.send(HttpRequest("GET", "/api/v1/secrets", (), (("Impersonate-Uid", "1"),)))
        assert (status, b"without impersonating a user" in body) == (400, True)


def certificate(authority, *, days=(-1, 1), usage=ExtendedKeyUsageOID.CLIENT_AUTH, self_signed=False):
    """A client certificate that is not quite right, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = serialization.load_pem_private_key(authority._issuer.key, None)
    name = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters"), x509.NameAttribute(NameOID.COMMON_NAME, "x")]
    )
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(aio.utc_now() + timedelta(days=days[0]))
        .not_valid_after(aio.utc_now() + timedelta(days=days[1]))
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .sign(key if self_signed else issuer_key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


async def secrets_by(port, context):
    talk = await Talk.open(port, context)
    try:
        talk.writer.write(b"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n")
        return await talk.answer()
    finally:
        await talk.close()


async def test_certificates_that_are_not_quite_right_are_refused(served):
    _, where, folder = served
    authority, stranger = Authority(folder), Authority(folder / "elsewhere")
    bad = {
        "expired": certificate(authority, days=(-9, -1)),
        "not yet": certificate(authority, days=(1, 9)),
        "foreign": certificate(stranger),
        "self-signed": certificate(authority, self_signed=True),
        "a server's": certificate(authority, usage=ExtendedKeyUsageOID.SERVER_AUTH),
    }
    for name, pem in bad.items():
        file = folder / "bad.pem"
        file.write_bytes(pem)
        context = context_for(folder)
        context.load_cert_chain(file)
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await secrets_by(where.port, context)
        assert name
    file.write_bytes(certificate(authority))
    context = context_for(folder)
    context.load_cert_chain(file)
    async with Port(where.port, context) as port:
        assert (await port.send(HttpRequest("GET", "/api/v1/secrets")))[0] == 200


async def test_a_certificate_ends_on_an_open_connection(served):
    """TLS checks the time once; a client with a pool of connections would stay in for hours."""
    _, where, folder = served
    file = folder / "short.pem"
    file.write_bytes(certificate(Authority(folder), days=(-1, 3 / 86_400)))
    context = context_for(folder)
    context.load_cert_chain(file)
    request = b"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n"
    with_token = request[:-2] + f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
    talk = await Talk.open(where.port, context)
    try:
        talk.writer.write(request)
        assert (await talk.answer())[0] == 200
        await asyncio.sleep(3.5)
        for sent, status in ((request, 401), (with_token, 200)):
            talk.writer.write(sent)
            assert (await talk.answer())[0] == status
    finally:
        await talk.close()


async def test_a_stranger_cannot_make_the_server_read_a_long_body(served):
    _, where, folder = served
    for target in ("/api/v1/namespaces/default/secrets", "/healthz"):
        talk = await Talk.open(where.port, context_for(folder))
        talk.writer.write(f"GET {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n".encode())
        async with asyncio.timeout(60):
            status, headers, body = await talk.answer()
        assert (status, json.loads(body)) == (401, UNAUTHORIZED)
        assert ("Connection", "close") in headers
        await talk.close()


async def test_a_port_without_authentication_serves_no_request_unless_allowed(caplog):
    listed = HttpRequest("GET", "/api/v1/namespaces")
    as_masters = (("Impersonate-User", "x"), ("Impersonate-Group", "system:masters"))
    # The whole chain without authentication.
    half = [handler for handler in chain() if not isinstance(handler, Authentication)]
    for handlers in ([], half):
        async with ApiServer(kinds=["v1"], chain=handlers) as server, HttpListener(server.handler) as listener:
            port = Port(listener.port, None)
            assert (await server.handler(listed)).status == 200
            assert (await port.send(listed))[0] == 401
            assert (await port.send(HttpRequest("GET", "/api/v1/namespaces", (), as_masters)))[0] == 401
            await port.close()
        assert "no handler of the chain authenticates them" in caplog.text
        caplog.clear()
    async with ApiServer(kinds=["v1"], chain=[single_user()]) as server, HttpListener(server.handler) as listener:
        port = Port(listener.port, None)
        assert (await port.send(listed))[0] == 200
        await port.close()
    assert not caplog.records
