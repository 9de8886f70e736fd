"""Attacks by bytes on the port: slow, endless, ambiguous, broken. Each is bounded, and others are answered meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import ssl
from random import Random  # noqa: TID251 - seeded here
from time import perf_counter, process_time  # noqa: TID251 - how long others wait is what is looked at

import pytest
from hostile.growth import held_by
from hostile.playing import new_server
from hostile.port import Port, Talk, context_for

from samples.eventually import eventually
from steersman.aio import Supervisor
from steersman.apiserver import MemoryStorage
from steersman.apiserver.serving import Authority
from steersman.transport import HttpListener, ServerTls
from steersman.wire import HttpRequest

#: Seconds of every time-out of the port here; those of a real one are longer.
SHORT = 0.4
CONNECTIONS = 60


class Target:
    """A server on a port that is short of patience, and what has reached it."""

    def __init__(self, server, listener, folder) -> None:
        self.server = server
        self.listener = listener
        self.admin = context_for(folder, user="admin", groups=("system:masters",))
        self.anonymous = context_for(folder)
        self.seen: list[str] = []

    async def talk(self, sent: bytes, *, context: ssl.SSLContext | None = None) -> bytes:
        """Send bytes and read until the server closes, which it must do."""
        talk = await Talk.open(self.listener.port, context or self.admin)
        try:
            talk.writer.write(sent)
            async with asyncio.timeout(60):
                with contextlib.suppress(ConnectionError):
                    await talk.writer.drain()
                return await talk.reader.read()
        except ConnectionError:
            return b""
        finally:
            await talk.close()


@pytest.fixture(scope="module")
async def shared(tmp_path_factory):
    """The server and its port; that they go on is part of what is tested."""
    tmp_path = tmp_path_factory.mktemp("port")
    async with MemoryStorage() as storage, new_server(storage) as server:
        authority = Authority(tmp_path)
        own = authority.server()
        tls = ServerTls(certificate_data=own.certificate, key_data=own.key, client_ca_data=authority.certificate)

        async def handler(request: HttpRequest):
            target.seen.append(request.target)
            return await server.handler(request)

        listener = HttpListener(
            handler,
            tls=tls,
            read_timeout=SHORT,
            idle_timeout=SHORT,
            stall_timeout=SHORT,
            max_connections=CONNECTIONS,
            grace=0.1,
        )
        async with listener:
            target = Target(server, listener, tmp_path)
            await target.talk(GET + b"Connection: close\r\n\r\n")
            yield target


@pytest.fixture
async def target(shared):
    """The port, and a look at what is left when a test is over."""
    before = held_by(shared.server, collect=False)
    async with others_are_answered(shared):
        yield shared
    await eventually(lambda: not held_by(shared.server, collect=False).more_than(before))
    assert not [path for path in shared.seen if "smuggled" in path]


@contextlib.asynccontextmanager
async def others_are_answered(target):
    """Ask for the server's health all the while: it must be told soon, each time."""
    slowest, count = 0.0, 0

    async def ask() -> None:
        nonlocal slowest, count
        port = Port(target.listener.port, target.admin)
        try:
            while True:
                begin = process_time()
                await port.ready()
                slowest, count = max(slowest, process_time() - begin), count + 1
                await asyncio.sleep(0.01)
        finally:
            await port.close()

    async with Supervisor() as tasks:
        tasks.start(ask(), name="others")
        yield
        tasks.cancel()
    assert count > 0
    assert slowest < 5


GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"

#: What means two things, or nothing: refused, and the connection ends.
UNREADABLE = {
    "length and chunks": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunks and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: 36\r\n\r\n" + SMUGGLED,
    "a list of lengths": POST + b"Content-Length: 0, 36\r\n\r\n" + SMUGGLED,
    "a signed length": POST + b"Content-Length: +0\r\n\r\n" + SMUGGLED,
    "a negative length": POST + b"Content-Length: -1\r\n\r\n" + SMUGGLED,
    "a hexadecimal length": POST + b"Content-Length: 0x0\r\n\r\n" + SMUGGLED,
    "an endless length": POST + b"Content-Length: " + b"9" * 400 + b"\r\n\r\n" + SMUGGLED,
    "an unknown encoding": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "an encoding behind chunks": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "an encoding before chunks": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + SMUGGLED,
    "chunks of HTTP/1.0": POST.replace(b"1.1", b"1.0")
    + b"Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    + SMUGGLED,
    "a space in the host": b"GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n" + SMUGGLED,
    "a path in the host": b"GET /healthz HTTP/1.1\r\nHost: a/b\r\n\r\n" + SMUGGLED,
    "two encodings": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "a folded header": GET + b"X: a\r\n b\r\n\r\n",
    "a space before the colon": GET + b"Content-Length : 5\r\n\r\n",
    "no colon": GET + b"nonsense\r\n\r\n",
    "a nameless header": GET + b": x\r\n\r\n",
    "NUL in a header": GET + b"X: a\0b\r\n\r\n",
    "NUL in a name": GET + b"X\0: a\r\n\r\n",
    "a bare CR": GET + b"X: a\rY: b\r\n\r\n",
    "a long header": GET + b"X: " + b"x" * 100_000 + b"\r\n\r\n",
    "many headers": GET + b"X: y\r\n" * 10_000 + b"\r\n",
    "a long target": b"GET /" + b"x" * 1_000_000 + b" HTTP/1.1\r\n\r\n",
    "NUL in the target": b"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n",
    "a space in the target": b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
    "a huge chunk": POST + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n{}",
    "a negative chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{}",
    "a chunk of 0x": POST + b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
    "a chunk that does not end": POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n" + SMUGGLED,
    "a long chunk extension": POST + b"Transfer-Encoding: chunked\r\n\r\n2;" + b"x" * 200_000 + b"\r\n{}\r\n0\r\n\r\n",
    "an old version": b"GET /smuggled\r\n\r\n",
    "a future version": b"GET / HTTP/3.0\r\nHost: x\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(200),
    "TLS within TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    "rubbish": Random(3).randbytes(2000),
    "nothing but lines": b"\r\n" * 5000,
}


@pytest.mark.parametrize("sent", UNREADABLE.values(), ids=UNREADABLE)
async def test_what_can_be_read_in_two_ways_is_refused(target, sent):
    answer = await target.talk(sent)
    assert re.match(rb"HTTP/[01]\.[019] (4|501)", answer) or not answer, answer[:200]
    assert len(re.findall(rb"HTTP/1\.[01] [0-9]{3} ", answer)) <= 1
    assert b" 500 " not in answer


ODD = {
    "an unknown expectation": (GET + b"Expect: 200-ok\r\n\r\n", 417),
    "an absolute target": (b"GET http://evil/api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "an asterisk": (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "CONNECT": (b"CONNECT evil:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "TRACE": (b"TRACE /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nCookie: secret\r\n\r\n", 405),
    "an unknown method": (b"BREW /api/v1/namespaces HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "two slashes": (b"GET //api/v1/namespaces HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "slashes within": (b"GET /api//v1/namespaces HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "a step up": (b"GET /healthz/../api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "a hidden step up": (b"GET /healthz/%2e%2e/api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "a step up with a semicolon": (b"GET /healthz/..;/api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "a hidden slash": (b"GET /api/v1%2fsecrets HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "NUL": (b"GET /api/v1/secrets%00 HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "half a character": (b"GET /api/v1/namespaces/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "an upgrade": (b"GET /api/v1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 200),
    "an upgrade to HTTP/2": (
        b"GET /api/v1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n",
        200,
    ),
    "half a character in a header": (GET + b"User-Agent: \xff\r\nImpersonate-User: \xfe\r\n\r\n", 403),
    "a half token": (GET + b"Authorization: Bearer \xff\xfe\r\n\r\n", 200),
}


@pytest.mark.parametrize(("sent", "status"), ODD.values(), ids=ODD)
async def test_odd_requests_have_one_answer(target, sent, status):
    talk = await Talk.open(target.listener.port, target.admin)
    try:
        talk.writer.write(sent)
        async with asyncio.timeout(60):
            answer = await talk.answer()
    finally:
        await talk.close()
    assert answer[0] == status, answer
    assert b"Cookie" not in answer[2]


async def test_a_body_behind_an_upgrade_is_a_body(target):
    body = SMUGGLED
    head = b"Connection: Upgrade\r\nUpgrade: x\r\nContent-Length: %d\r\n\r\n" % len(body)
    talk = await Talk.open(target.listener.port, target.admin)
    talk.writer.write(POST + head + body)
    assert (await talk.answer())[0] == 400
    await talk.close()


async def test_an_upgrade_ends_with_its_answer(target):
    """The parser reads nothing more: a request that follows must not wait for ever."""
    for head in (GET, POST + b"Content-Length: 2\r\n"):
        answer = await target.talk(
            head + b"Connection: Upgrade\r\nUpgrade: spdy/3.1\r\n\r\n" + b"{}" * (head != GET) + SMUGGLED
        )
        assert len(re.findall(rb"HTTP/1\.1 [0-9]{3} ", answer)) == 1
        assert b"Connection: close" in answer


async def test_a_client_of_http_1_0_gets_no_interim_answer(target):
    head = POST.replace(b"1.1", b"1.0") + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}"
    answers = re.findall(rb"HTTP/1\.[01] ([0-9]{3}) ", await target.talk(head))
    assert len(answers) == 1
    assert answers != [b"100"]


async def test_requests_in_one_go_are_answered_in_order(target):
    talk = await Talk.open(target.listener.port, target.admin)
    count = 500
    paths = [b"/livez" if number % 3 else b"/version" for number in range(count)]
    for path in paths:
        talk.writer.write(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path)
    async with asyncio.timeout(60):
        for path in paths:
            status, _, body = await talk.answer()
            assert (status, b"major" in body) == (200, path == b"/version")
    await talk.close()


async def slowly(target, head: bytes, endless: bytes) -> tuple[float, bytes]:
    """Send a byte at a time, for as long as the server listens: how long that was, and what it said."""
    talk = await Talk.open(target.listener.port, target.admin)
    begin = perf_counter()
    try:
        talk.writer.write(head)
        for byte in endless:
            if talk.reader._eof or talk.writer.is_closing():  # type: ignore[attr-defined]
                break
            talk.writer.write(bytes([byte]))
            await asyncio.sleep(0.02)
        return perf_counter() - begin, await talk.reader.read()
    except ConnectionError:
        return perf_counter() - begin, b""
    finally:
        await talk.close()


async def test_a_head_or_a_body_a_byte_at_a_time_is_bounded(target):
    # All of it would take a minute.
    late, said = await slowly(target, GET + b"X: ", b"x" * 3000)
    assert (late < 45, said) == (True, b"")
    late, said = await slowly(target, POST + b"Content-Length: 3000\r\n\r\n", b" " * 3000)
    assert late < 45
    assert not said or (said.startswith(b"HTTP/1.1 408 ") and b"did not arrive" in said)
    async with asyncio.timeout(60):
        talk = await Talk.open(target.listener.port, target.admin)
        talk.writer.write(POST + b"Content-Length: 400\r\n\r\n")
        assert (await talk.answer())[0] == 408
        await talk.close()


async def test_idle_connections_end_and_cannot_keep_others_out(target):
    talks = [await Talk.open(target.listener.port, target.anonymous) for _ in range(2 * CONNECTIONS)]
    # The newest is answered although there are too many.
    newest = await Talk.open(target.listener.port, target.admin)
    newest.writer.write(GET + b"\r\n")
    async with asyncio.timeout(60):
        assert (await newest.answer())[0] == 200
        assert await talks[0].reader.read() == b""
        for talk in talks:
            # The rest is closed when its time has come.
            with contextlib.suppress(ConnectionError):
                assert await talk.reader.read() == b""
    for talk in [*talks, newest]:
        await talk.close()


async def test_a_client_that_reads_nothing_is_left(target):
    handler = target.server.handler
    for number in range(12):
        body = json.dumps({"metadata": {"name": f"big-{number}"}, "data": {"a": "x" * 700_000}}).encode()
        made = await handler(
            HttpRequest(
                "POST", "/api/v1/namespaces/default/configmaps", (), (("Content-Type", "application/json"),), body
            )
        )
        assert made.status == 201
    big = b"GET /api/v1/configmaps%s HTTP/1.1\r\nHost: x\r\n\r\n"
    talks = []
    for query in (b"", b"?watch=1", b"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"):
        talk = await Talk.open(target.listener.port, target.admin)
        talk.writer.transport.pause_reading()
        talk.writer.write(big % query)
        talks.append(talk)
    await eventually(lambda: len(target.listener._answering) >= 3)
    await eventually(lambda: len(target.listener._answering) <= 1)
    for talk in talks:
        await talk.close()


async def test_rubbish_in_place_of_a_handshake_is_bounded(target):
    for sent in (
        Random(4).randbytes(3000),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\xff\xff\x01",
        b"\x80\x2e\x01\x00\x02",
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", target.listener.port)
        writer.write(sent)
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(60):
                await reader.read()
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def test_half_a_body_changes_nothing(target):
    body = b'{"metadata":{"name":"half"}}'
    for length in range(0, len(body), 3):
        talk = await Talk.open(target.listener.port, target.admin)
        talk.writer.write(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body[:length])
        await talk.writer.drain()
        await talk.close()
    talk = await Talk.open(target.listener.port, target.admin)
    talk.writer.write(b"GET /api/v1/namespaces/half HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await talk.answer())[0] == 404
    talk.writer.write(POST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
    async with asyncio.timeout(60):
        assert (await talk.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        talk.writer.write(body)
        assert (await talk.answer())[0] == 201
    await talk.close()


@pytest.mark.parametrize("digits", [2_000, 7_000])
async def test_a_timeout_of_thousands_of_digits_is_read_at_once(target, digits):
    """The server reads it before it knows who asks, and answers no one else meanwhile."""
    begin = process_time()
    for _ in range(5):
        talk = await Talk.open(target.listener.port, target.anonymous)
        talk.writer.write(b"GET /version?timeout=%s! HTTP/1.1\r\nHost: x\r\n\r\n" % (b"0" * digits))
        async with asyncio.timeout(60):
            assert (await talk.answer())[0] in {200, 400}
        await talk.close()
    assert process_time() - begin < 5
