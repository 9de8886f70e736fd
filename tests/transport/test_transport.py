"""What holds for every transport: the same tests run over HTTP and within the process."""

from __future__ import annotations

import asyncio
import random  # noqa: TID251 - seeded

import pytest

from steersman.errors import ApiError, ConnectionFailed, DeadlineExceeded, ProtocolError
from steersman.transport import ServerResponse
from steersman.wire import FrameSplitter, HttpRequest, decode_frame, encode_frame


async def echo(request: HttpRequest) -> ServerResponse:
    return ServerResponse(
        status=200,
        headers=(("X-Method", request.method), ("X-Target", request.target)),
        body=request.body or b"",
    )


async def test_a_request_arrives_as_it_was_built(connect):
    transport = await connect(echo)
    request = HttpRequest(
        "PATCH",
        "/api/v1/namespaces/a%20b/pods/system:x",
        (("labelSelector", "app in (a, b),x!=y&z"), ("empty", "")),
        (("Content-Type", "application/merge-patch+json"),),
        b'{"a":1}',
    )
    async with await transport.send(request) as response:
        assert response.status == 200
        assert response.headers["x-method"] == "PATCH"
        assert response.headers["X-TARGET"] == request.target
        assert await response.read() == b'{"a":1}'


async def test_headers_arrive_both_ways_and_may_repeat(connect):
    seen = []

    async def handler(request: HttpRequest) -> ServerResponse:
        seen.append({name.lower(): value for name, value in request.headers})
        return ServerResponse(status=201, headers=(("Warning", '299 - "a"'), ("Warning", '299 - "b"')))

    transport = await connect(handler)
    async with await transport.send(HttpRequest("GET", "/", headers=(("Authorization", "Bearer x"),))) as response:
        assert response.headers.getall("warning") == ['299 - "a"', '299 - "b"']
        assert await response.read() == b""
    assert seen[0]["authorization"] == "Bearer x"


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 3_000_000])
async def test_bodies_of_any_size_arrive_whole(connect, size):
    """Three megabytes are more than any buffer on the way."""
    transport = await connect(echo)
    body = random.Random(size).randbytes(size)
    async with await transport.send(HttpRequest("POST", "/", body=body or None)) as response:
        assert await response.read() == body


async def test_frames_arrive_whole_however_they_are_cut(connect):
    rng = random.Random(7)
    sent = [b'{"n":%d,"data":"%s"}' % (n, b"x" * rng.choice([0, 10, 5000, 1_000_000])) for n in range(40)]
    stream = b"".join(encode_frame("ADDED", obj) for obj in sent)

    async def handler(request: HttpRequest) -> ServerResponse:
        async def body():
            position = 0
            while position < len(stream):
                size = rng.choice([1, 2, 7, 100, 4096, 70_000, 300_000])
                yield stream[position : position + size]
                position += size

        return ServerResponse(status=200, body=body())

    transport = await connect(handler)
    splitter = FrameSplitter()
    got = []
    async with await transport.send(HttpRequest("GET", "/"), stream=True) as response:
        async for chunk in response.chunks():
            assert chunk
            got += [decode_frame(frame).object for frame in splitter.feed(chunk)]
    assert got == sent
    assert splitter.finish() == []


async def test_each_piece_of_a_stream_arrives_when_it_is_sent(connect):
    """An event must not wait for the next one."""
    steps: asyncio.Queue[bytes] = asyncio.Queue()

    async def handler(request: HttpRequest) -> ServerResponse:
        async def body():
            while piece := await steps.get():
                yield piece

        return ServerResponse(status=200, body=body())

    transport = await connect(handler)
    async with await transport.send(HttpRequest("GET", "/"), stream=True) as response:
        chunks = response.chunks(idle_timeout=5)
        for piece in (b"one", b"two"):
            steps.put_nowait(piece)
            assert await anext(chunks) == piece
        steps.put_nowait(b"")
        with pytest.raises(StopAsyncIteration):
            await anext(chunks)


def endless(produced: list[int], ended: asyncio.Event):
    async def handler(request: HttpRequest) -> ServerResponse:
        async def body():
            try:
                while True:
                    produced.append(65536)
                    yield b"x" * 65536
            finally:
                ended.set()

        return ServerResponse(status=200, body=body())

    return handler


async def test_a_fast_server_waits_for_a_slow_client(connect):
    """Without back-pressure a slow watcher would fill the memory of its server."""
    produced: list[int] = []
    transport = await connect(endless(produced, asyncio.Event()))
    async with await transport.send(HttpRequest("GET", "/"), stream=True) as response:
        await anext(response.chunks())
        before = -1
        while before != len(produced):
            before = len(produced)
            await asyncio.sleep(0.05)
        assert sum(produced) < 32 * 1024 * 1024


async def test_closing_the_response_ends_the_servers_work(connect):
    ended = asyncio.Event()
    transport = await connect(endless([], ended))
    response = await transport.send(HttpRequest("GET", "/"), stream=True)
    await anext(response.chunks())
    await response.close()
    await response.close()
    await asyncio.wait_for(ended.wait(), 60)


async def test_cancelling_the_reader_ends_the_servers_work(connect):
    ended = asyncio.Event()
    waiting = asyncio.Event()

    async def handler(request: HttpRequest) -> ServerResponse:
        async def body():
            try:
                yield b"first"
                waiting.set()
                await asyncio.Event().wait()
            finally:
                ended.set()

        return ServerResponse(status=200, body=body())

    transport = await connect(handler)
    response = await transport.send(HttpRequest("GET", "/"), stream=True)

    reading = asyncio.Event()

    async def read() -> None:
        async for _ in response.chunks(idle_timeout=60):
            reading.set()

    task = asyncio.get_running_loop().create_task(read())
    await asyncio.wait_for(waiting.wait(), 60)
    await asyncio.wait_for(reading.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), 60)


async def test_cancelling_a_send_ends_the_servers_work(connect):
    started, ended = asyncio.Event(), asyncio.Event()

    async def handler(request: HttpRequest) -> ServerResponse:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    transport = await connect(handler)
    task = asyncio.get_running_loop().create_task(transport.send(HttpRequest("GET", "/")))
    await asyncio.wait_for(started.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), 60)


async def test_a_server_that_fails_in_the_middle_is_a_lost_connection(connect):
    """The end of a broken stream must not look like the end of a stream."""

    async def handler(request: HttpRequest) -> ServerResponse:
        async def body():
            yield b"first"
            raise RuntimeError("the server has a bug")

        return ServerResponse(status=200, body=body())

    transport = await connect(handler)
    async with await transport.send(HttpRequest("GET", "/"), stream=True) as response:
        chunks = response.chunks()
        assert await anext(chunks) == b"first"
        with pytest.raises(ConnectionFailed) as caught:
            await anext(chunks)
    assert caught.value.sent


async def test_a_body_beyond_the_limit_is_refused(connect):
    transport = await connect(echo)
    request = HttpRequest("POST", "/api/v1/pods", body=b"x" * 1000)
    async with await transport.send(request) as response:
        assert len(await response.read(1000)) == 1000
    async with await transport.send(request) as response:
        with pytest.raises(ProtocolError, match="create pods: the response is longer than 999 bytes"):
            await response.read(999)


async def test_an_endless_body_is_refused_in_bounded_memory(connect):
    ended = asyncio.Event()
    transport = await connect(endless([], ended))
    async with await transport.send(HttpRequest("GET", "/")) as response:
        with pytest.raises(ProtocolError, match="longer than"):
            await response.read(1_000_000)
    await asyncio.wait_for(ended.wait(), 60)


async def test_no_answer_in_time_is_a_deadline(connect):
    ended = asyncio.Event()

    async def handler(request: HttpRequest) -> ServerResponse:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    transport = await connect(handler)
    for stream in (False, True):
        ended.clear()
        with pytest.raises(DeadlineExceeded, match="list pods: ") as caught:
            await transport.send(HttpRequest("GET", "/api/v1/pods"), stream=stream, timeout=0.1)
        assert caught.value.sent
        await asyncio.wait_for(ended.wait(), 60)


async def test_the_deadline_of_a_request_covers_its_body(connect):
    """A server that sends its head and then stops must not hold a request for ever."""
    ended = asyncio.Event()

    async def handler(request: HttpRequest) -> ServerResponse:
        async def body():
            try:
                yield b"first"
                await asyncio.Event().wait()
            finally:
                ended.set()

        return ServerResponse(status=200, body=body())

    transport = await connect(handler)
    async with await transport.send(HttpRequest("GET", "/"), timeout=2.0) as response:
        with pytest.raises(DeadlineExceeded):
            await response.read()
    await asyncio.wait_for(ended.wait(), 60)


async def test_a_stream_outlives_the_deadline_of_its_head(connect):
    go = asyncio.Event()

    async def handler(request: HttpRequest) -> ServerResponse:
        async def body():
            yield b"first"
            await go.wait()
            yield b"second"

        return ServerResponse(status=200, body=body())

    transport = await connect(handler)
    async with await transport.send(HttpRequest("GET", "/"), stream=True, timeout=2.0) as response:
        chunks = response.chunks()
        assert await anext(chunks) == b"first"
        asyncio.get_running_loop().call_later(2.2, go.set)
        assert await anext(chunks) == b"second"


async def test_silence_can_be_noticed(connect):
    """A watch on a dead connection is silent for ever; the reader may say how long is too long."""
    ended = asyncio.Event()

    async def handler(request: HttpRequest) -> ServerResponse:
        async def body():
            try:
                yield b"first"
                await asyncio.Event().wait()
            finally:
                ended.set()

        return ServerResponse(status=200, body=body())

    transport = await connect(handler)
    request = HttpRequest("GET", "/api/v1/pods", (("watch", "true"),))
    async with await transport.send(request, stream=True) as response:
        chunks = response.chunks(idle_timeout=0.2)
        assert await anext(chunks) == b"first"
        with pytest.raises(DeadlineExceeded, match=r"watch pods: no data for 0\.2 s"):
            await anext(chunks)
    await asyncio.wait_for(ended.wait(), 60)


async def test_a_slow_reader_is_not_a_silent_server(connect):
    """Time between pieces that the reader itself spends does not count."""

    async def handler(request: HttpRequest) -> ServerResponse:
        async def body():
            for piece in (b"a", b"b", b"c"):
                yield piece * 100_000

        return ServerResponse(status=200, body=body())

    transport = await connect(handler)
    size = 0
    async with await transport.send(HttpRequest("GET", "/"), stream=True) as response:
        async for piece in response.chunks(idle_timeout=0.15):
            size += len(piece)
            await asyncio.sleep(0.2 if size < 150_000 else 0)
    assert size == 300_000


async def test_many_requests_at_once(connect):
    transport = await connect(echo)

    async def one(n: int) -> bytes:
        async with await transport.send(HttpRequest("POST", "/", body=b"%d" % n)) as response:
            return await response.read()

    assert await asyncio.gather(*(one(n) for n in range(200))) == [b"%d" % n for n in range(200)]


async def test_streams_leave_room_for_requests(connect):
    """Hundreds of watches must not block a single write."""
    stop = asyncio.Event()

    async def handler(request: HttpRequest) -> ServerResponse:
        async def body():
            yield b"first"
            await stop.wait()

        return ServerResponse(status=200, body=body()) if request.path == "/watch" else await echo(request)

    transport = await connect(handler)
    responses = [await transport.send(HttpRequest("GET", "/watch"), stream=True) for _ in range(150)]
    for response in responses:
        await anext(response.chunks())
    async with await transport.send(HttpRequest("PUT", "/", body=b"write"), timeout=60) as response:
        assert await response.read() == b"write"
    stop.set()
    for response in responses:
        await response.close()


async def test_before_send_is_asked_once_and_may_refuse(connect):
    """A leader whose term has ended must be able to stop a write at the last moment."""
    served = []

    async def handler(request: HttpRequest) -> ServerResponse:
        served.append(request.path)
        return ServerResponse(status=200)

    class Deposed(ApiError):
        pass

    def refuse() -> None:
        raise Deposed("not the leader any more")

    asked = []
    transport = await connect(handler)
    with pytest.raises(Deposed):
        await transport.send(HttpRequest("PUT", "/refused"), before_send=refuse)
    async with await transport.send(HttpRequest("PUT", "/allowed"), before_send=lambda: asked.append(1)) as response:
        await response.read()
    assert served == ["/allowed"]
    assert asked == [1]


async def test_a_closed_transport_sends_nothing(connect):
    served = []

    async def handler(request: HttpRequest) -> ServerResponse:
        served.append(request.path)
        return ServerResponse(status=200)

    transport = await connect(handler)
    async with await transport.send(HttpRequest("GET", "/")) as response:
        await response.read()
    await transport.close()
    await transport.close()
    with pytest.raises(ConnectionFailed, match="closed") as caught:
        await transport.send(HttpRequest("GET", "/again"))
    assert not caught.value.sent
    assert served == ["/"]


async def test_closing_the_transport_fails_what_is_under_way(connect):
    started = asyncio.Event()

    async def handler(request: HttpRequest) -> ServerResponse:
        async def body():
            yield b"first"
            await asyncio.Event().wait()

        if request.path == "/stream":
            return ServerResponse(status=200, body=body())
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    transport = await connect(handler)
    stream = await transport.send(HttpRequest("GET", "/stream"), stream=True)
    chunks = stream.chunks()
    assert await anext(chunks) == b"first"
    reading = asyncio.get_running_loop().create_task(anext(chunks))
    sending = asyncio.get_running_loop().create_task(transport.send(HttpRequest("GET", "/request")))
    await asyncio.wait_for(started.wait(), 60)
    await asyncio.sleep(0)
    await transport.close()
    for task in (reading, sending):
        with pytest.raises(ConnectionFailed) as caught:
            await asyncio.wait_for(task, 60)
        assert caught.value.sent
    await stream.close()


async def test_errors_show_no_secret(connect):
    async def handler(request: HttpRequest) -> ServerResponse:
        await asyncio.Event().wait()
        raise AssertionError

    transport = await connect(handler)
    request = HttpRequest(
        "POST", "/api/v1/secrets", (("x", "q-s3cret"),), (("Authorization", "Bearer h-s3cret"),), b"b-s3cret"
    )
    with pytest.raises(DeadlineExceeded) as caught:
        await transport.send(request, timeout=0.05)
    error: BaseException | None = caught.value
    while error is not None:
        assert "s3cret" not in repr(error)
        assert "s3cret" not in str(error)
        error = error.__cause__
    assert "s3cret" not in repr(transport)
