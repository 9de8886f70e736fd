"""One server function, served in three ways; and proof that nothing is left behind."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from steersman.transport import Handler, HttpListener, HttpTransport, InProcessTransport, Transport
from steersman.wire import HttpRequest, parse_query

Connect = Callable[..., Awaitable[Transport]]


def open_files() -> set[str]:
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"{entry.name} {entry.readlink()}")
        except OSError:
            # the descriptor that lists the folder is gone by now
            continue
    return found


@pytest.fixture
def open_sockets() -> Callable[[], int]:
    """Counts the sockets of this process, those of servers in it included."""
    return lambda: sum("socket:" in entry for entry in open_files())


def other_tasks() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


@pytest.fixture(autouse=True)
async def nothing_is_left() -> AsyncIterator[None]:
    """Every test ends with the tasks and sockets it began with."""
    tasks, files = other_tasks(), open_files()
    yield
    deadline = asyncio.get_running_loop().time() + 30
    # closing takes a few turns of the loop on either side, and no event tells when both are done
    while (other_tasks() - tasks or open_files() - files) and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert other_tasks() - tasks == set()
    assert open_files() - files == set()


async def start_server(handler: Handler, **options: object) -> tuple[str, web.ServerRunner]:
    """Serve a handler on a free port of the loopback interface."""

    async def answer(incoming: web.BaseRequest) -> web.StreamResponse:
        path, _, query = incoming.raw_path.partition("?")
        body = await incoming.content.read()
        request = HttpRequest(incoming.method, path, parse_query(query), tuple(incoming.headers.items()), body or None)
        reply = await handler(request)
        outgoing = web.StreamResponse(status=reply.status)
        for name, value in reply.headers:
            outgoing.headers.add(name, value)
        if isinstance(reply.body, bytes):
            outgoing.content_length = len(reply.body)
            await outgoing.prepare(incoming)
            await outgoing.write(reply.body)
        else:
            outgoing.enable_chunked_encoding()
            await outgoing.prepare(incoming)
            try:
                async for piece in reply.body:
                    await outgoing.write(piece)
            finally:
                await reply.body.aclose()
        await outgoing.write_eof()
        return outgoing

    runner = web.ServerRunner(web.Server(answer, handler_cancellation=True), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, **options)
    await site.start()
    port = runner.addresses[0][1]
    scheme = "https" if options else "http"
    return f"{scheme}://127.0.0.1:{port}", runner


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Awaitable[str]]]:
    """Serve a handler over HTTP and give back its address."""
    async with AsyncExitStack() as stack:

        async def start(handler: Handler, **options: object) -> str:
            address, runner = await start_server(handler, **options)
            stack.push_async_callback(runner.cleanup)
            return address

        yield start


@pytest.fixture
async def http(serve) -> AsyncIterator[Connect]:
    """Connect to a handler over HTTP."""
    async with AsyncExitStack() as stack:

        async def connect(handler: Handler, **options: object) -> Transport:
            return await stack.enter_async_context(HttpTransport(await serve(handler), **options))

        yield connect


@pytest.fixture
async def inprocess() -> AsyncIterator[Connect]:
    """Connect to a handler in this process."""
    async with AsyncExitStack() as stack:

        async def connect(handler: Handler, **options: object) -> Transport:
            return await stack.enter_async_context(InProcessTransport(handler, **options))

        yield connect


@pytest.fixture
async def listener() -> AsyncIterator[Connect]:
    """Connect to a handler over HTTP, served by our own listener."""
    async with AsyncExitStack() as stack:

        async def connect(handler: Handler, **options: object) -> Transport:
            server = await stack.enter_async_context(HttpListener(handler, grace=0.1))
            return await stack.enter_async_context(HttpTransport(server.address, **options))

        yield connect


@pytest.fixture(params=["http", "inprocess", "listener"])
def connect(request: pytest.FixtureRequest) -> Connect:
    """Connect to a handler in every way: what a test says holds for all."""
    return request.getfixturevalue(request.param)


class RawServer:
    """A TCP server that does what a test tells it to, byte by byte."""

    def __init__(self, talk) -> None:
        self._talk = talk
        self.connections = 0
        self.received: list[bytes] = []
        self.closed = asyncio.Event()
        self._arrival = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._tasks.add(asyncio.current_task())
        try:
            await self._talk(self, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self._tasks.discard(asyncio.current_task())

    async def head(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        self.received.append(head)
        self._arrival.set()
        return head

    async def arrived(self, count: int) -> None:
        """Wait until so many requests have arrived."""
        while len(self.received) < count:
            self._arrival.clear()
            await asyncio.wait_for(self._arrival.wait(), 60)

    async def see_close(self, reader: asyncio.StreamReader) -> None:
        """Wait until the client has closed the connection."""
        try:
            while await reader.read(65536):
                pass
        except ConnectionError:
            pass
        self.closed.set()

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()


@pytest.fixture
async def raw() -> AsyncIterator[Callable[..., Awaitable[tuple[RawServer, str]]]]:
    """Start a server that speaks raw bytes: ``server, address = await raw(talk)``."""
    async with AsyncExitStack() as stack:

        async def start(talk, **options) -> tuple[RawServer, str]:
            server = RawServer(talk)
            listener = await asyncio.start_server(server, "127.0.0.1", 0, **options)

            async def stop() -> None:
                listener.close()
                server.stop()
                await listener.wait_closed()

            stack.push_async_callback(stop)
            scheme = "https" if options.get("ssl") else "http"
            return server, f"{scheme}://127.0.0.1:{listener.sockets[0].getsockname()[1]}"

        yield start


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Pair:
    """A certificate and its key, as PEM."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)
        self.key = self.key_pem(key)
        self._key = key

    @staticmethod
    def key_pem(key: ec.EllipticCurvePrivateKey, password: bytes | None = None) -> bytes:
        encryption = (
            serialization.BestAvailableEncryption(password) if password is not None else serialization.NoEncryption()
        )
        return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)

    @property
    def encrypted_key(self) -> bytes:
        return self.key_pem(self._key, b"password")

    def write(self, folder: Path, name: str) -> tuple[str, str]:
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_bytes(self.certificate)
        key.write_bytes(self.key)
        return str(certificate), str(key)


class Authority:
    """A certificate authority."""

    def __init__(self, name: str = "test-ca") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self._certificate = self._sign(self._name, self._key, authority=True)
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        names: tuple[x509.GeneralName, ...] = (),
        authority: bool = False,
        expired: bool = False,
    ) -> x509.Certificate:
        start = datetime(2020, 1, 1, tzinfo=UTC)
        end = datetime(2021 if expired else 2120, 1, 1, tzinfo=UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        if not authority:
            usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def issue(self, common_name: str, *hosts: str, expired: bool = False) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = []
        for host in hosts:
            try:
                names.append(x509.IPAddress(ipaddress.ip_address(host)))
            except ValueError:
                names.append(x509.DNSName(host))
        return Pair(self._sign(_name(common_name), key, names=tuple(names), expired=expired), key)

    def server_context(self, folder: Path, *hosts: str, clients: bool = False, expired: bool = False) -> ssl.SSLContext:
        """A server's side of TLS; with `clients` it asks for client certificates of this authority."""
        certificate, key = self.issue("server", *hosts, expired=expired).write(folder, "server")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self.pem.decode())
        return context


@pytest.fixture
def new_authority() -> type[Authority]:
    """Makes certificate authorities: ``new_authority("name")``."""
    return Authority
