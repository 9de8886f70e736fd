"""A handler on a port: clients that are slow, rude or gone, certificates that change, and an end in order.

What holds for every transport is tested on the listener too, in test_transport.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import os
import resource
import socket
import ssl
import struct
import subprocess
import sys
import tracemalloc

import pytest

from samples.eventually import eventually
from steersman.aio import Supervisor
from steersman.errors import ConfigError, ConnectionFailed
from steersman.transport import HttpListener, HttpTransport, ServerResponse, ServerTls, TlsMaterial, current_peer
from steersman.wire import HttpRequest


async def hello(request: HttpRequest) -> ServerResponse:
    return ServerResponse(status=200, headers=(("Content-Type", "text/plain"),), body=b"hello")


class Slow:
    """A handler that waits, and tells what became of it."""

    def __init__(self) -> None:
        self.entered, self.go, self.cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self, request: HttpRequest) -> ServerResponse:
        self.entered.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return ServerResponse(status=200, body=b"late")


async def talk(listener: HttpListener, sent: bytes) -> bytes:
    """Send bytes and read until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    try:
        writer.write(sent)
        async with asyncio.timeout(60):
            return await reader.read()
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def reset(writer: asyncio.StreamWriter) -> None:
    """Go away as a killed process does: with a reset."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


#: Prints whether HTTP is loaded, the status of two requests that arrive at once, and again whether HTTP is loaded.
ON_DEMAND = """
import asyncio, sys
from steersman.transport import HttpListener, ServerResponse

async def hello(request):
    return ServerResponse(status=200, body=b"hello")

async def status(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.0\\r\\n\\r\\n")
    answer = await reader.read()
    writer.close()
    return answer.split()[1].decode()

async def main():
    async with HttpListener(hello, on_demand=True) as listener:
        print("aiohttp" in sys.modules)
        print(*await asyncio.gather(status(listener.port), status(listener.port)))
    print("aiohttp" in sys.modules)

asyncio.run(main())
"""


async def test_it_listens_on_loopback_alone_and_knows_its_port():
    async with HttpListener(hello) as listener:
        assert listener.address == f"http://127.0.0.1:{listener.port}"
        answer = await talk(listener, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert answer.endswith(b"\r\n\r\nhello")
        assert b"aiohttp" not in answer.lower()
    with pytest.raises(RuntimeError, match="is not listening"):
        _ = listener.port


def test_the_first_connection_loads_the_http_server():
    """A session to which no client connects would hold 10 MB for nothing."""
    done = subprocess.run([sys.executable, "-c", ON_DEMAND], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.split(), done.stderr) == (["False", "200", "200", "True"], "")


async def test_a_listener_without_a_connection_closes():
    listener = HttpListener(hello, on_demand=True)
    await listener.start()
    await listener.close()
    with pytest.raises(RuntimeError, match="is not listening"):
        _ = listener.port


async def test_a_port_that_is_taken_is_named():
    async with HttpListener(hello) as first:
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1 port {first.port}: .*choose another port"):
            await HttpListener(hello, port=first.port).start()


async def test_the_handler_knows_who_asks():
    async def who(request: HttpRequest) -> ServerResponse:
        peer = current_peer()
        return ServerResponse(status=200, body=f"{peer.host} {peer.is_loopback} {peer.certificate!r}".encode())

    async with (
        HttpListener(who) as listener,
        HttpTransport(listener.address) as client,
        await client.send(HttpRequest("GET", "/")) as response,
    ):
        assert await response.read() == b"127.0.0.1 True b''"
    assert current_peer() is None


async def test_old_and_terse_clients_are_served():
    async def stream(request: HttpRequest) -> ServerResponse:
        async def body():
            yield b"one "
            yield b"two"

        return ServerResponse(status=200, headers=(("Content-Length", "99999"),), body=body())

    async with HttpListener(stream) as listener:
        old = await talk(listener, b"GET / HTTP/1.0\r\n\r\n")
        assert old.endswith(b"\r\n\r\none two")
        assert b"chunked" not in old
        head = await talk(listener, b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert head.endswith(b"\r\n\r\n")
        assert b"99999" not in head


async def test_a_client_that_vanishes_ends_the_handler():
    slow = Slow()
    async with HttpListener(slow) as listener:
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.wait_for(slow.entered.wait(), 60)
        reset(writer)
        await asyncio.wait_for(slow.cancelled.wait(), 60)


async def test_half_a_request_reaches_no_handler():
    seen: list[HttpRequest] = []

    async def note(request: HttpRequest) -> ServerResponse:
        seen.append(request)
        return ServerResponse(status=200)

    async with HttpListener(note, read_timeout=0.1, idle_timeout=0.2) as listener:
        late = await talk(listener, b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
        assert late.startswith(b"HTTP/1.1 408 ")
        assert b"did not arrive within 0.1 s" in late
        # half a head: closed after the idle time, without a word
        assert await talk(listener, b"GET / HTTP/1.1\r\nHos") == b""
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(b"POST /y HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
        await writer.drain()
        reset(writer)
        assert (await talk(listener, b"GET /z HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.0 200")
    assert [request.path for request in seen] == ["/z"]


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 1000 + b"\r\n",
        b"\x16\x03\x01 this is no HTTP\r\n\r\n",
    ],
    ids=["target", "field", "fields", "rubbish"],
)
async def test_a_head_beyond_bounds_is_refused(head, caplog):
    async with HttpListener(hello) as listener:
        assert (await talk(listener, head)).startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
    assert caplog.records == []


async def test_a_body_beyond_bounds_is_refused():
    async with HttpListener(hello, max_body=1000) as listener, HttpTransport(listener.address) as client:
        async with await client.send(HttpRequest("POST", "/", body=b"x" * 1000)) as response:
            assert response.status == 200
        announced = await talk(listener, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n")
        assert announced.startswith(b"HTTP/1.1 413 ")
        assert b"must not exceed 1000 bytes" in announced
        chunked = (
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"3e8\r\n%b\r\n" % (b"x" * 1000) * 2
        )
        assert (await talk(listener, chunked)).startswith(b"HTTP/1.1 413 ")


async def test_a_client_that_asks_first_may_go_on():
    async def echo(request: HttpRequest) -> ServerResponse:
        return ServerResponse(status=200, headers=(("Connection", "close"),), body=request.body or b"")

    async with HttpListener(echo) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        async with asyncio.timeout(60):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
            writer.write(b"body")
            assert (await reader.read()).endswith(b"\r\n\r\nbody")
        writer.close()
        await writer.wait_closed()


async def test_a_handler_that_fails_is_an_answer_and_a_line_in_the_log(caplog):
    async def broken(request: HttpRequest) -> ServerResponse:
        raise RuntimeError("the handler has a bug")

    async with (
        HttpListener(broken) as listener,
        HttpTransport(listener.address) as client,
        await client.send(HttpRequest("GET", "/x")) as response,
    ):
        assert response.status == 500
        assert await response.read() == b"internal server error; see the log\n"
    assert "the handler of GET /x failed" in caplog.text
    assert "the handler has a bug" in caplog.text


async def test_an_answer_cannot_smuggle_headers(caplog):
    async def split(request: HttpRequest) -> ServerResponse:
        return ServerResponse(status=200, headers=(("X-A", "b\r\nSet-Cookie: c=d"),), body=b"x")

    async with HttpListener(split) as listener:
        assert b"Set-Cookie" not in await talk(listener, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert "failed halfway" in caplog.text


async def test_many_streams_at_once():
    go = asyncio.Event()

    async def stream(request: HttpRequest) -> ServerResponse:
        async def body():
            yield request.path.encode()
            await go.wait()
            yield b" done"

        return ServerResponse(status=200, body=body())

    async with HttpListener(stream) as listener, HttpTransport(listener.address) as client, asyncio.timeout(60):
        responses = [await client.send(HttpRequest("GET", f"/{number}"), stream=True) for number in range(150)]
        readers = [response.chunks() for response in responses]
        assert [await anext(reader) for reader in readers] == [f"/{number}".encode() for number in range(150)]
        go.set()
        assert {await anext(reader) for reader in readers} == {b" done"}
        for response in responses:
            await response.close()


async def test_closing_lets_answers_end():
    slow = Slow()
    listener = HttpListener(slow, grace=300.0)
    await listener.start()
    address = listener.address
    async with HttpTransport(address) as client, Supervisor() as tasks:
        asking = tasks.start(client.send(HttpRequest("GET", "/")), name="ask")
        await asyncio.wait_for(slow.entered.wait(), 60)
        closing = tasks.start(listener.close(), name="close")
        await asyncio.sleep(0)
        async with HttpTransport(address) as other:
            with pytest.raises(ConnectionFailed):
                await other.send(HttpRequest("GET", "/"))
        slow.go.set()
        async with await asking as response:
            assert await response.read() == b"late"
        await asyncio.wait_for(closing, 60)
    assert not slow.cancelled.is_set()


async def test_closing_does_not_wait_forever_for_a_client_that_does_not_read():
    produced = 0
    ended = asyncio.Event()

    async def endless(request: HttpRequest) -> ServerResponse:
        async def body():
            nonlocal produced
            try:
                while True:
                    produced += 1
                    yield b"x" * 65536
            finally:
                ended.set()

        return ServerResponse(status=200, body=body())

    async with HttpListener(endless, grace=0.1) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        before = -1
        while not produced or before != produced:
            before = produced
            await asyncio.sleep(0.05)
        async with asyncio.timeout(60):
            await listener.close()
    assert ended.is_set()
    # a cut connection, not the end of a chunked body
    assert not (await asyncio.wait_for(reader.read(), 60)).endswith(b"\r\n0\r\n\r\n")
    writer.close()
    await writer.wait_closed()


async def test_closing_ends_idle_connections_at_once():
    async with HttpListener(hello, grace=300.0) as listener, HttpTransport(listener.address) as client:
        async with await client.send(HttpRequest("GET", "/")) as response:
            await response.read()
        await asyncio.wait_for(listener.close(), 60)


# --- TLS -------------------------------------------------------------------------------------------------------------


def trust_in(ca: bytes) -> ssl.SSLContext:
    """Trust an authority without key identifiers, which Python 3.13 refuses by default and clusters have."""
    context = ssl.create_default_context(cadata=ca.decode())
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    return context


def fingerprint(port: int, ca: bytes) -> str:
    with (
        socket.create_connection(("127.0.0.1", port), timeout=60) as plain,
        trust_in(ca).wrap_socket(plain, server_hostname="127.0.0.1") as wrapped,
    ):
        return hashlib.sha256(wrapped.getpeercert(binary_form=True)).hexdigest()


async def test_a_renewed_certificate_is_shown_without_a_restart(new_authority, tmp_path):
    authority = new_authority()
    certificate, key = authority.issue("one", "127.0.0.1").write(tmp_path, "server")
    read: list[bool] = []
    tls = ServerTls(certificate_file=certificate, key_file=key)
    async with HttpListener(hello, tls=tls, on_certificate_read=read.append) as listener:
        first = await asyncio.to_thread(fingerprint, listener.port, authority.pem)
        assert await asyncio.to_thread(fingerprint, listener.port, authority.pem) == first
        assert read == [True]
        renewed = authority.issue("two", "127.0.0.1")
        (tmp_path / "server.crt").write_bytes(renewed.certificate)
        # half written: the key is still the old one
        assert await asyncio.to_thread(fingerprint, listener.port, authority.pem) == first
        (tmp_path / "server.key").write_bytes(renewed.key)
        assert await asyncio.to_thread(fingerprint, listener.port, authority.pem) != first
        assert read == [True, False, True]
        async with (
            HttpTransport(listener.address, tls=TlsMaterial(ca_data=authority.pem)) as client,
            await client.send(HttpRequest("GET", "/")) as response,
        ):
            assert await response.read() == b"hello"


async def test_clients_may_show_a_certificate_or_must(new_authority, tmp_path):
    async def who(request: HttpRequest) -> ServerResponse:
        return ServerResponse(status=200, body=b"%d" % len(current_peer().certificate))

    servers, clients = new_authority("servers"), new_authority("clients")
    server, client, stranger = (
        servers.issue("server", "127.0.0.1"),
        clients.issue("someone"),
        servers.issue("another server"),
    )
    known = TlsMaterial(ca_data=servers.pem, certificate_data=client.certificate, key_data=client.key)
    unknown = TlsMaterial(ca_data=servers.pem, certificate_data=stranger.certificate, key_data=stranger.key)

    async def ask(listener: HttpListener, material: TlsMaterial) -> int:
        async with (
            HttpTransport(listener.address, tls=material) as transport,
            await transport.send(HttpRequest("GET", "/")) as response,
        ):
            return int(await response.read())

    may = ServerTls(certificate_data=server.certificate, key_data=server.key, client_ca_data=clients.pem)
    async with HttpListener(who, tls=may) as listener:
        assert await ask(listener, known) > 100
        assert await ask(listener, TlsMaterial(ca_data=servers.pem)) == 0
        with pytest.raises(ConnectionFailed):
            await ask(listener, unknown)
    must = ServerTls(
        certificate_data=server.certificate, key_data=server.key, client_ca_data=clients.pem, require_client=True
    )
    async with HttpListener(who, tls=must) as listener:
        assert await ask(listener, known) > 100
        with pytest.raises(ConnectionFailed):
            await ask(listener, TlsMaterial(ca_data=servers.pem))


async def test_unfinished_handshakes_count_as_connections(new_authority, tmp_path, open_sockets):
    """Strangers who connect and say nothing cannot take all descriptors, nor keep others out."""
    authority = new_authority()
    certificate, key = authority.issue("server", "127.0.0.1").write(tmp_path, "server")
    tls = ServerTls(certificate_file=certificate, key_file=key)
    material = TlsMaterial(ca_data=authority.pem)
    async with HttpListener(hello, tls=tls, max_connections=8) as listener:
        before = open_sockets()
        silent = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(40)]
        try:
            await eventually(lambda: open_sockets() <= before + len(silent) + 8, within=60)
            async with asyncio.timeout(60), HttpTransport(listener.address, tls=material) as client:
                # until the first of the silent ones has been slow for a while, there is room for none
                while True:
                    try:
                        async with await client.send(HttpRequest("GET", "/")) as response:
                            assert await response.read() == b"hello"
                        break
                    except ConnectionFailed:
                        continue
        finally:
            for _, writer in silent:
                writer.transport.abort()


async def test_a_handshake_ends_after_a_time(new_authority, tmp_path, open_sockets):
    """Whatever time a client has for a body."""
    authority = new_authority()
    certificate, key = authority.issue("server", "127.0.0.1").write(tmp_path, "server")
    tls = ServerTls(certificate_file=certificate, key_file=key)
    async with HttpListener(hello, tls=tls, read_timeout=60) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        # the beginning of a client's first message
        writer.write(b"\x16\x03\x01\x02\x00\x01\x00")
        async with asyncio.timeout(60):
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        writer.transport.abort()


async def test_an_unfinished_handshake_takes_little_memory(new_authority, tmp_path, open_sockets):
    authority = new_authority()
    certificate, key = authority.issue("server", "127.0.0.1").write(tmp_path, "server")
    async with HttpListener(hello, tls=ServerTls(certificate_file=certificate, key_file=key)) as listener:
        before = open_sockets()
        tracemalloc.start()
        try:
            # blocking sockets, which take no memory of this process
            silent = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(100)]
            await eventually(lambda: open_sockets() >= before + 200, within=60)
            gc.collect()
            taken, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        for each in silent:
            each.close()
    # asyncio's own buffer alone would take twice this
    assert taken / len(silent) < 128 * 1024


async def test_closing_ends_handshakes(new_authority, tmp_path, open_sockets):
    authority = new_authority()
    certificate, key = authority.issue("server", "127.0.0.1").write(tmp_path, "server")
    before = open_sockets()
    async with HttpListener(hello, tls=ServerTls(certificate_file=certificate, key_file=key)) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        # the connection's two ends, and the socket that listens
        await eventually(lambda: open_sockets() == before + 3)
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 60) == b""
    writer.transport.abort()


@contextlib.contextmanager
def no_free_descriptors():
    """No file can be opened in the block."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_a_process_without_descriptors_says_so_once_and_recovers(caplog):
    """A burst of connections must not fill the log, and the server must answer when the burst is over."""
    loop = asyncio.get_running_loop()
    async with HttpListener(hello) as listener:
        clients = [socket.socket() for _ in range(20)]
        for client in clients:
            client.setblocking(False)
        with no_free_descriptors():
            for client in clients:
                await loop.sock_connect(client, ("127.0.0.1", listener.port))
                await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            await eventually(lambda: "cannot accept connections: too many open files" in caplog.text)
        async with asyncio.timeout(60):
            for client in clients:
                assert (await loop.sock_recv(client, 1000)).startswith(b"HTTP/1.1 200")
                client.close()
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1
    assert "Traceback" not in caplog.text


async def test_without_descriptors_strangers_go_before_clients(new_authority, tmp_path, open_sockets, caplog):
    """A client with an established connection keeps it, and a handshake makes room for another client."""
    authority = new_authority()
    certificate, key = authority.issue("server", "127.0.0.1").write(tmp_path, "server")
    trust = trust_in(authority.pem)
    get = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    loop = asyncio.get_running_loop()
    async with HttpListener(hello, tls=ServerTls(certificate_file=certificate, key_file=key)) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=trust)
        writer.write(get)
        assert b"200" in await reader.readuntil(b"hello")
        before = open_sockets()
        silent = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(4)]
        await eventually(lambda: open_sockets() == before + 8)
        late = socket.socket()
        late.setblocking(False)
        with no_free_descriptors():
            await loop.sock_connect(late, ("127.0.0.1", listener.port))
            await eventually(lambda: "cannot accept connections" in caplog.text)
            late_reader, late_writer = await asyncio.open_connection(sock=late, ssl=trust, server_hostname="127.0.0.1")
            for each, to in ((reader, writer), (late_reader, late_writer)):
                to.write(get)
                assert b"200" in await asyncio.wait_for(each.readuntil(b"hello"), 60)
        for _, each in [*silent, (reader, writer), (late_reader, late_writer)]:
            each.transport.abort()


async def test_tls_mistakes_are_named(tmp_path):
    with pytest.raises(ValueError, match="a server needs a certificate"):
        ServerTls()
    with pytest.raises(ValueError, match="require_client needs a CA"):
        ServerTls(certificate_file="a", key_file="b", require_client=True)
    missing = ServerTls(certificate_file=str(tmp_path / "a.crt"), key_file=str(tmp_path / "a.key"))
    with pytest.raises(ConfigError, match=r"cannot load the server certificate .*a\.crt with the key"):
        await HttpListener(hello, tls=missing).start()


def told(header: str) -> bytes:
    return f"GET / HTTP/1.1\r\nHost: x\r\nX-User: {header}\r\n\r\n".encode()


async def test_the_last_connections_are_reserved():
    """Clients that take all connections with endless responses get 429 in the last ones; the privileged are answered."""

    async def endless():
        while True:
            yield b"a line\n"
            await asyncio.sleep(0.01)

    async def stream(request: HttpRequest) -> ServerResponse:
        return ServerResponse(status=200, body=endless() if request.header("X-User") == "kim" else b"hello")

    def is_root(request: HttpRequest) -> bool:
        return request.header("X-User") == "root"

    async with HttpListener(stream, max_connections=32, privileged=is_root, grace=0.1) as listener:
        assert listener.capacity == 30
        writers, heads = [], []
        try:
            for _ in range(40):
                reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
                writers.append(writer)
                writer.write(told("kim"))
                async with asyncio.timeout(60):
                    heads.append(await reader.readuntil(b"\r\n\r\n"))
            assert [head.split()[1] for head in heads] == [b"200"] * 30 + [b"429"] * 10
            assert b"Retry-After: 1\r\n" in heads[-1]
            assert b"Connection: close\r\n" in heads[-1]
            for _ in range(3):
                assert b"hello" in await talk(listener, told("root").replace(b"Host", b"Connection: close\r\nHost"))
            reset(writers[0])
            # a connection that ends leaves its place to another
            async with asyncio.timeout(60):
                while b" 200 " not in await talk(listener, told("lee").replace(b"Host", b"Connection: close\r\nHost")):
                    pass
        finally:
            for writer in writers:
                writer.transport.abort()


class Place:
    """Something that a response holds."""

    def __init__(self) -> None:
        self.released = asyncio.Event()

    def release(self) -> None:
        self.released.set()


async def test_a_response_ends_at_its_deadline():
    """A client that reads a little now and then is not stalled, and must not hold a place for ever."""
    place = Place()

    async def handler(request: HttpRequest) -> ServerResponse:
        deadline = asyncio.get_running_loop().time() + 0.2
        return ServerResponse(status=200, body=b"x" * 50_000_000, deadline=deadline, reservation=place)

    async with HttpListener(handler) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(60):
            await reader.readuntil(b"\r\n\r\n")
            await place.released.wait()
            with contextlib.suppress(ConnectionError):
                while await reader.read(1 << 20):
                    pass
        writer.transport.abort()


@pytest.mark.parametrize("path", ["/sent", "/left"])
async def test_a_response_releases_what_it_holds(path: str):
    place = Place()

    async def pieces():
        while True:
            yield b"x" * 10_000

    async def handler(request: HttpRequest) -> ServerResponse:
        return ServerResponse(status=200, body=b"short" if path == "/sent" else pieces(), reservation=place)

    async with HttpListener(handler) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(60):
            await reader.readuntil(b"\r\n\r\n")
            if path == "/left":
                reset(writer)
            await place.released.wait()
        writer.transport.abort()
