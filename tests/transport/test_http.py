"""What only happens on a network: lost connections, garbage, silence, pools."""

from __future__ import annotations

import asyncio
import gzip
import random  # noqa: TID251 - seeded
import socket

import pytest

from steersman.aio import Supervisor
from steersman.errors import ApiError, ConfigError, ConnectionFailed, DeadlineExceeded, ProtocolError
from steersman.transport import HttpTransport, ServerResponse
from steersman.wire import HttpRequest

GZIPPED = gzip.compress(b'{"a":1}' * 50, mtime=0)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def get(transport: HttpTransport, path: str = "/", **options) -> bytes:
    async with await transport.send(HttpRequest("GET", path), **options) as response:
        return await response.read()


async def drain(response) -> None:
    async for _ in response.chunks():
        pass


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST", "PATCH"])
@pytest.mark.parametrize("fresh", [True, False], ids=["new connection", "kept connection"])
async def test_nothing_is_sent_twice(raw, method, fresh):
    """aiohttp by itself repeats GET, PUT and DELETE when a kept connection breaks; a second PUT is one too many."""

    async def talk(server, reader, writer):
        while True:
            head = await server.head(reader)
            if head.startswith(b"GET /first"):
                writer.write(OK)
                continue
            return

    server, address = await raw(talk)
    async with HttpTransport(address) as transport:
        if not fresh:
            assert await get(transport, "/first") == b"ok"
        body = b"{}" if method in {"PUT", "POST", "PATCH"} else None
        with pytest.raises(ConnectionFailed, match="closed the connection without a response") as caught:
            await transport.send(HttpRequest(method, "/second", body=body))
        assert caught.value.sent
    assert [head for head in server.received if b"/second" in head] == server.received[0 if fresh else 1 :]
    assert len(server.received) == (1 if fresh else 2)
    assert server.connections == 1


async def test_a_reset_after_sending_may_have_been_processed(raw):
    async def talk(server, reader, writer):
        await server.head(reader)
        writer.transport.abort()

    _, address = await raw(talk)
    async with HttpTransport(address) as transport:
        with pytest.raises(ConnectionFailed) as caught:
            await transport.send(HttpRequest("POST", "/api/v1/namespaces/a/pods", body=b"{}"))
    assert caught.value.sent
    assert str(caught.value).startswith('create pods in namespace "a": ')


async def test_a_refused_connection_was_certainly_not_processed():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        async with HttpTransport(f"http://127.0.0.1:{port}") as transport:
            with pytest.raises(ConnectionFailed, match="connection refused; is it running") as caught:
                await get(transport)
    assert not caught.value.sent
    assert f"127.0.0.1:{port}" in str(caught.value)


async def test_an_unknown_host_was_certainly_not_processed():
    async with HttpTransport("http://nowhere.invalid") as transport:
        with pytest.raises(ConnectionFailed, match=r"host of http://nowhere\.invalid is unknown") as caught:
            await get(transport)
    assert not caught.value.sent


async def test_a_connection_that_is_never_accepted_ends_in_time():
    """A full backlog looks like a dead host: packets vanish."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(address)
        try:
            async with HttpTransport(f"http://127.0.0.1:{address[1]}", connect_timeout=0.2) as transport:
                with pytest.raises(ConnectionFailed, match="did not accept a connection in time") as caught:
                    await get(transport)
                assert not caught.value.sent
            async with HttpTransport(f"http://127.0.0.1:{address[1]}") as transport:
                for stream in (True, False):
                    with pytest.raises(DeadlineExceeded, match="could not be reached in time") as late:
                        await get(transport, stream=stream, timeout=0.2)
                    assert not late.value.sent
        finally:
            for filler in fillers:
                filler.close()


async def test_cancelling_closes_the_connection(raw):
    """The server must notice at once, not at the end of some time-out."""

    async def talk(server, reader, writer):
        await server.head(reader)
        await server.see_close(reader)

    server, address = await raw(talk)
    async with HttpTransport(address) as transport:
        for stream in (False, True):
            server.closed.clear()
            task = asyncio.get_running_loop().create_task(get(transport, stream=stream))
            await server.arrived(1 + stream)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(server.closed.wait(), 60)


async def test_cancelling_a_large_upload_to_a_stalled_server_closes_the_connection(raw, open_sockets):
    """A polite close would wait for ever until the rest of the body is taken."""
    connected = asyncio.Event()

    async def talk(server, reader, writer):
        writer.transport.pause_reading()
        connected.set()
        await asyncio.Event().wait()

    _, address = await raw(talk)
    async with HttpTransport(address) as transport:
        request = HttpRequest("PUT", "/", body=b"x" * 50_000_000)
        task = asyncio.get_running_loop().create_task(transport.send(request))
        await asyncio.wait_for(connected.wait(), 60)
        # fill the buffers on both sides, so that there is something left to flush
        await asyncio.sleep(0.1)
        both_ends = open_sockets()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert open_sockets() == both_ends - 1


@pytest.mark.parametrize(
    "answer",
    [
        b"\x16\x03\x01\x02\x00\x01garbage" * 10 + b"\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"a" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: a\r\n" % n for n in range(100_000)) + b"\r\n",
    ],
    ids=["tls", "ssh", "status", "length", "long header", "many headers"],
)
async def test_garbage_is_a_protocol_error(raw, answer):
    async def talk(server, reader, writer):
        await server.head(reader)
        writer.write(answer)
        await writer.drain()
        await server.see_close(reader)

    _, address = await raw(talk)
    async with HttpTransport(address) as transport:
        with pytest.raises(ProtocolError, match="did not respond with HTTP"):
            await get(transport, timeout=60)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100\r\nonly this",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n",
    ],
    ids=["length", "inside a chunk", "between chunks"],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_truncated_body_is_never_taken_for_a_whole_one(raw, answer, stream):
    async def talk(server, reader, writer):
        await server.head(reader)
        writer.write(answer)
        await writer.drain()

    _, address = await raw(talk)
    async with HttpTransport(address) as transport:
        response = await transport.send(HttpRequest("GET", "/"), stream=stream)
        reading = drain(response) if stream else response.read()
        with pytest.raises(ConnectionFailed, match="broke during the response") as caught:
            await reading
        assert caught.value.sent


async def test_a_body_longer_than_announced_limits_is_not_even_read(raw):
    async def talk(server, reader, writer):
        await server.head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n")
        await server.see_close(reader)

    server, address = await raw(talk)
    async with HttpTransport(address) as transport:
        with pytest.raises(ProtocolError, match="longer than"):
            await get(transport)
        await asyncio.wait_for(server.closed.wait(), 60)


async def test_connections_are_bounded(serve):
    """Many requests at once use no more connections than allowed, and all are served."""
    active, most = 0, 0

    async def handler(request: HttpRequest) -> ServerResponse:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await asyncio.sleep(0.01)
        active -= 1
        return ServerResponse(status=200, body=b"ok")

    async with HttpTransport(await serve(handler), max_connections=4) as transport:
        await asyncio.gather(*(get(transport) for _ in range(40)))
    assert most == 4


async def test_a_separate_transport_shares_no_connection(serve):
    """What must not wait for others gets through while every place is taken; closing it disturbs nothing."""
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def handler(request):
        if request.path == "/slow":
            arrived.set()
            await go_on.wait()
        return ServerResponse(status=200, body=request.path.encode())

    async with HttpTransport(await serve(handler), max_connections=1) as transport, Supervisor() as tasks:
        slow = tasks.start(transport.send(HttpRequest("GET", "/slow")), name="slow")
        await arrived.wait()
        other = transport.separate()
        async with asyncio.timeout(60):
            assert await (await other.send(HttpRequest("GET", "/quick"))).read() == b"/quick"
        await other.close()
        go_on.set()
        assert await (await slow).read() == b"/slow"
        assert await (await transport.send(HttpRequest("GET", "/again"))).read() == b"/again"


async def test_one_connection_serves_many_requests(raw):
    async def talk(server, reader, writer):
        while True:
            await server.head(reader)
            writer.write(OK)

    server, address = await raw(talk)
    async with HttpTransport(address) as transport:
        for _ in range(10):
            assert await get(transport) == b"ok"
    assert server.connections == 1


async def test_a_refused_request_leaves_its_connection_to_the_next_one(raw):
    """Nothing was written to it."""

    async def talk(server, reader, writer):
        while await server.head(reader):
            writer.write(OK)

    def refuse():
        raise TimeoutError

    server, address = await raw(talk)
    async with HttpTransport(address, max_connections=1) as transport:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await transport.send(HttpRequest("PUT", "/refused", body=b"{}"), before_send=refuse)
            assert await get(transport, "/next") == b"ok"
    assert server.connections == 1
    assert len(server.received) == 3


async def test_interim_responses_are_skipped(raw):
    async def talk(server, reader, writer):
        while await server.head(reader):
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n" + OK)

    server, address = await raw(talk)
    async with HttpTransport(address) as transport:
        assert [await get(transport) for _ in range(2)] == [b"ok", b"ok"]
    assert server.connections == 1


async def test_an_answer_to_a_half_read_upload_is_the_answer(raw):
    """A server may refuse a large body without reading it."""

    async def talk(server, reader, writer):
        await server.head(reader)
        writer.write(b"HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
        await writer.drain()
        await reader.read()

    _, address = await raw(talk)
    async with HttpTransport(address) as transport:
        request = HttpRequest("POST", "/api/v1/namespaces/a/configmaps", body=b"x" * (8 << 20))
        async with await transport.send(request) as response:
            assert (response.status, await response.read()) == (413, b"big")


async def test_a_connection_with_an_unread_upload_is_not_used_again(raw):
    """Its server responds early, and never reads the rest."""

    async def talk(server, reader, writer):
        await server.head(reader)
        writer.write(OK)
        if server.connections == 1:
            await server.see_close(reader)

    server, address = await raw(talk)
    async with HttpTransport(address, timeout=30) as transport:
        async with await transport.send(HttpRequest("POST", "/large", body=b"x" * (32 << 20))) as response:
            assert await response.read() == b"ok"
        assert await get(transport, "/next") == b"ok"
    assert server.connections == 2


async def test_a_response_that_begins_during_the_upload_arrives_whole(raw):
    """Also on a connection that has served another request."""

    async def talk(server, reader, writer):
        await server.head(reader)
        writer.write(OK)
        await server.head(reader)
        writer.write(b"HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 600\r\n\r\n" + b"x" * 300)
        await writer.drain()
        await asyncio.sleep(0.2)
        writer.write(b"x" * 300)
        await writer.drain()
        await reader.read()

    _, address = await raw(talk)
    async with HttpTransport(address, timeout=30) as transport:
        assert await get(transport) == b"ok"
        async with await transport.send(HttpRequest("POST", "/large", body=b"x" * (32 << 20))) as response:
            assert (response.status, await response.read()) == (413, b"x" * 600)


async def test_a_response_without_a_request_is_dropped(raw):
    sent = asyncio.Event()

    async def talk(server, reader, writer):
        await server.head(reader)
        writer.write(OK)
        await writer.drain()
        if server.connections == 1:
            await asyncio.sleep(0.05)
            writer.write(OK.replace(b"ok", b"no"))
            await writer.drain()
            sent.set()
            await reader.read()

    server, address = await raw(talk)
    async with HttpTransport(address) as transport:
        assert await get(transport, "/first") == b"ok"
        await sent.wait()
        await asyncio.sleep(0.05)
        assert await get(transport, "/second") == b"ok"
    assert server.connections == 2


async def test_closing_ends_the_wait_for_a_handshake(raw):
    begun = asyncio.Event()

    async def talk(server, reader, writer):
        await reader.read(1)
        begun.set()
        await server.see_close(reader)

    _, address = await raw(talk)
    transport = HttpTransport(address.replace("http:", "https:"), timeout=600, connect_timeout=600)
    waiter = asyncio.get_running_loop().create_task(transport.send(HttpRequest("GET", "/")))
    await begun.wait()
    await transport.close()
    async with asyncio.timeout(30):
        with pytest.raises(ConnectionFailed, match="closed") as failed:
            await waiter
    assert not failed.value.sent


async def test_waiting_for_a_place_in_the_pool_ends_with_the_deadline_or_the_transport(raw):
    async def talk(server, reader, writer):
        await server.head(reader)
        await server.see_close(reader)

    server, address = await raw(talk)
    async with HttpTransport(address, max_connections=1) as transport:
        loop = asyncio.get_running_loop()
        holder = loop.create_task(get(transport, "/holder"))
        await server.arrived(1)
        with pytest.raises(DeadlineExceeded, match="could not be reached in time") as late:
            await get(transport, "/late", timeout=0.1)
        assert not late.value.sent
        waiter = loop.create_task(get(transport, "/waiter"))
        await asyncio.sleep(0.01)
        await transport.close()
        with pytest.raises(ConnectionFailed, match="closed") as waited:
            await waiter
        assert not waited.value.sent
        with pytest.raises(ConnectionFailed, match="closed") as held:
            await holder
        assert held.value.sent
    assert len(server.received) == 1


async def test_redirects_are_not_followed(serve):
    """A redirect would carry the credentials elsewhere."""
    served = []

    async def handler(request: HttpRequest) -> ServerResponse:
        served.append(request.path)
        return ServerResponse(status=302, headers=(("Location", "/elsewhere"),))

    async with (
        HttpTransport(await serve(handler)) as transport,
        await transport.send(HttpRequest("GET", "/")) as response,
    ):
        assert response.status == 302
    assert served == ["/"]


async def test_the_callers_headers_win(raw):
    async def talk(server, reader, writer):
        while True:
            await server.head(reader)
            writer.write(OK)

    server, address = await raw(talk)
    async with HttpTransport(address) as transport:
        request = HttpRequest("GET", "/", headers=(("user-agent", "mine"), ("accept", "application/json")))
        async with await transport.send(request) as response:
            await response.read()
    lines = sorted(line.lower() for line in server.received[0].split(b"\r\n")[1:] if line)
    assert lines == [
        b"accept-encoding: identity",
        b"accept: application/json",
        b"host: " + address.removeprefix("http://").encode(),
        b"user-agent: mine",
    ]


@pytest.mark.parametrize("target", ["/a b", "/a\r\nX: y", "/a#b", "a", "", "/ü", "/a\x00"])
async def test_a_target_cannot_break_out_of_the_request_line(target):
    async with HttpTransport("http://127.0.0.1:1") as transport:
        with pytest.raises(ValueError, match="request target"):
            await transport.send(HttpRequest("GET", target))


@pytest.mark.parametrize(
    "header",
    [("X", "a\r\nY: b"), ("X\r\nY", "a"), ("X", "a\x00b"), ("Content-Length", "1"), ("transfer-encoding", "chunked")],
)
async def test_a_header_cannot_break_out_of_its_line(raw, header):
    async def talk(server, reader, writer):
        await server.head(reader)
        writer.write(OK)

    server, address = await raw(talk)
    async with HttpTransport(address) as transport:
        with pytest.raises(ValueError, match="header"):
            await transport.send(HttpRequest("GET", "/", headers=(header,)))
    assert server.received == []


async def test_dots_and_escapes_in_a_path_stay_as_they_are(raw):
    async def talk(server, reader, writer):
        while True:
            await server.head(reader)
            writer.write(OK)

    server, address = await raw(talk)
    async with HttpTransport(address + "/prefix/") as transport:
        for path in ("/a/../b", "/a%2Fb%20c", "/a//b", "/system:x@y"):
            await get(transport, path)
    assert [head.split(b" ")[1] for head in server.received] == [
        b"/prefix/a/../b",
        b"/prefix/a%2Fb%20c",
        b"/prefix/a//b",
        b"/prefix/system:x@y",
    ]


async def test_compression_is_off_unless_asked_for(serve):
    asked = []

    async def handler(request: HttpRequest) -> ServerResponse:
        asked.append(request.header("Accept-Encoding"))
        headers = (("Content-Encoding", "gzip"),) if asked[-1] == "gzip" else ()
        body = b"x" * 1_000_000
        return ServerResponse(status=200, headers=headers, body=gzip.compress(body) if headers else body)

    address = await serve(handler)
    for compression in (False, True):
        async with HttpTransport(address, compression=compression) as transport:
            assert await get(transport) == b"x" * 1_000_000
    assert asked == ["identity", "gzip"]


async def test_a_small_compressed_body_cannot_grow_beyond_the_limit(serve):
    """A thousandfold of zeros is a small answer on the wire and a large one in memory."""

    async def handler(request: HttpRequest) -> ServerResponse:
        return ServerResponse(
            status=200, headers=(("Content-Encoding", "gzip"),), body=gzip.compress(bytes(50_000_000))
        )

    async with (
        HttpTransport(await serve(handler), compression=True) as transport,
        await transport.send(HttpRequest("GET", "/")) as response,
    ):
        with pytest.raises(ProtocolError, match="longer than 1000000 bytes"):
            await response.read(1_000_000)


async def test_a_unix_socket_serves_as_well(tmp_path):
    async def talk(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        writer.close()

    path = str(tmp_path / "socket")
    listener = await asyncio.start_unix_server(talk, path)
    async with HttpTransport("http://localhost", unix_socket=path) as transport:
        assert await get(transport) == b"ok"
    listener.close()
    await listener.wait_closed()


@pytest.mark.parametrize(
    "address",
    ["", "10.0.0.1", "ftp://host", "https://", "https://user:s3cret@host", "https://host?x=s3cret", "http://["],
)
def test_an_address_that_cannot_be_used_is_a_config_error(address):
    with pytest.raises(ConfigError, match="https://HOST:PORT") as caught:
        HttpTransport(address)
    assert "s3cret" not in str(caught.value)


WHOLE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (GZIPPED[:10], GZIPPED[10:]))
    + b"0\r\n\r\n"
)


async def answers_to(raw, answers: list[bytes]):
    """Send one request for each answer; give back what became of it."""
    pending = iter(answers)

    async def talk(server, reader, writer):
        await server.head(reader)
        writer.write(next(pending))
        writer.write_eof()
        await server.see_close(reader)

    _, address = await raw(talk)
    outcomes: list[bytes | ApiError] = []
    for stream in [False, True] * (len(answers) // 2):
        async with HttpTransport(address) as transport:
            try:
                response = await transport.send(HttpRequest("GET", "/"), stream=stream, timeout=5)
                outcomes.append(b"".join([piece async for piece in response.chunks(idle_timeout=5)]))
            except ApiError as error:
                outcomes.append(error)
    return outcomes


async def test_an_answer_cut_anywhere_is_an_error(raw):
    cuts = [cut for cut in range(0, len(WHOLE), 3) for _ in range(2)]
    outcomes = await answers_to(raw, [WHOLE[:cut] for cut in cuts])
    assert [cut for cut, outcome in zip(cuts, outcomes, strict=True) if isinstance(outcome, bytes)] == []
    assert await answers_to(raw, [WHOLE, WHOLE]) == [b'{"a":1}' * 50] * 2


async def test_a_garbled_answer_is_an_error_or_an_answer_but_never_a_hang(raw):
    rng = random.Random(3)
    answers = []
    for _ in range(200):
        garbled = bytearray(WHOLE)
        for _ in range(rng.randint(1, 4)):
            garbled[rng.randrange(len(garbled))] = rng.randrange(256)
        answers.append(bytes(garbled))
    outcomes = await answers_to(raw, answers)
    assert len(outcomes) == 200
    assert not [outcome for outcome in outcomes if isinstance(outcome, DeadlineExceeded)]
