"""What a server in the same process offers beyond every transport: whole answers in one task, and forwarded streams."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from samples.streams import Stream
from steersman.aio import Supervisor
from steersman.errors import ConnectionFailed, DeadlineExceeded
from steersman.transport import InProcessTransport, ServerResponse
from steersman.wire import HttpRequest

GET = HttpRequest("GET", "/")
PIECE = 64 * 1024


# whole answers


async def test_an_answer_has_the_whole_body():
    async def handle(request: HttpRequest) -> ServerResponse:
        return ServerResponse(status=201, headers=(("X-Path", request.path),), body=b"all")

    async with InProcessTransport(handle) as transport:
        response = await transport.answer(HttpRequest("GET", "/x"))
    assert (response.status, response.headers["x-path"], await response.read()) == (201, "/x", b"all")


async def test_an_answer_joins_a_streamed_body():
    stream = Stream()
    stream.put(b"one ", b"two", b"")
    async with InProcessTransport(stream.handle) as transport:
        assert await (await transport.answer(GET)).read() == b"one two"
    assert stream.ended.is_set()


async def test_an_answer_runs_in_the_task_of_its_caller():
    """Otherwise it would cost a second task, which is what it saves."""
    tasks: list[asyncio.Task[None] | None] = []

    async def handle(request: HttpRequest) -> ServerResponse:
        del request
        tasks.append(asyncio.current_task())
        return ServerResponse(status=200)

    async with InProcessTransport(handle) as transport:
        await transport.answer(GET)
    assert tasks == [asyncio.current_task()]


async def test_an_answer_that_fails_is_a_lost_connection(caplog):
    async def handle(request: HttpRequest) -> ServerResponse:
        del request
        raise TimeoutError("of the server's own")

    async with InProcessTransport(handle) as transport:
        with pytest.raises(ConnectionFailed, match="without a response") as caught:
            await transport.answer(GET)
    assert caught.value.sent
    assert "the server failed to GET /" in caplog.text


async def test_a_late_answer_is_cancelled():
    cancelled = asyncio.Event()

    async def handle(request: HttpRequest) -> ServerResponse:
        del request
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    async with InProcessTransport(handle) as transport:
        with pytest.raises(DeadlineExceeded):
            await transport.answer(GET, timeout=0.01)
    assert cancelled.is_set()


async def test_closing_ends_an_answer():
    began = asyncio.Event()

    async def handle(request: HttpRequest) -> ServerResponse:
        del request
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    failures: list[ConnectionFailed] = []

    async def ask(transport: InProcessTransport) -> None:
        try:
            await transport.answer(GET)
        except ConnectionFailed as error:
            failures.append(error)

    transport = InProcessTransport(handle)
    async with asyncio.timeout(60), Supervisor() as tasks:
        tasks.start(ask(transport), name="ask")
        await began.wait()
        await transport.close()
        assert len(failures) == 1
    with pytest.raises(ConnectionFailed, match="is closed"):
        await transport.answer(GET)


# bodies


async def test_a_whole_body_comes_in_bounded_pieces():
    body = bytes(range(256)) * 1024

    async def handle(request: HttpRequest) -> ServerResponse:
        del request
        return ServerResponse(status=200, body=body)

    async with InProcessTransport(handle) as transport:
        async with await transport.send(GET) as response:
            pieces = [piece async for piece in response.chunks()]
        assert (b"".join(pieces), {len(piece) for piece in pieces}) == (body, {PIECE})
        async with await transport.send(GET) as response:
            first = await anext(aiter(response.chunks()))
            assert first + await response.read() == body


async def test_pushed_pieces_stand_between_yielded_ones():
    stream = Stream()
    stream.put(b"one ")
    async with InProcessTransport(stream.handle) as transport, await transport.send(GET, stream=True) as response:
        await stream.waits.wait()
        assert stream.push is not None
        assert stream.push(b"two ")
        stream.put(b"three", b"")
        assert await response.read() == b"one two three"


async def test_nothing_is_pushed_to_a_client_that_does_not_read():
    stream = Stream()
    async with InProcessTransport(stream.handle) as transport, await transport.send(GET, stream=True) as response:
        await stream.waits.wait()
        assert stream.push is not None
        assert not stream.push(b"x" * (PIECE + 1))
        taken = 0
        while stream.push(b"x"):
            taken += 1
            assert taken < 100
        stream.put(b"y", b"")
        assert await response.read() == b"x" * taken + b"y"


# forwarded streams


async def test_a_stream_is_forwarded_in_order_with_what_was_held():
    stream, got = Stream(), []
    stream.put(*(b"%d " % number for number in range(7)))
    async with InProcessTransport(stream.handle) as transport, await transport.send(GET, stream=True) as response:
        while stream.pieces.qsize() > 2:  # noqa: ASYNC110 - nothing announces that the server waits for room
            await asyncio.sleep(0)
        response.forward(got.append)
        stream.waits.clear()
        await stream.waits.wait()
        assert stream.push is not None
        assert stream.push(b"pushed ")
        stream.put(b"last", b"")
        await stream.ended.wait()
        await asyncio.sleep(0)
    assert got == [b"0 ", b"1 ", b"2 ", b"3 ", b"4 ", b"5 ", b"6 ", b"pushed ", b"last", b""]


async def test_a_whole_body_is_forwarded_at_once():
    async def handle(request: HttpRequest) -> ServerResponse:
        del request
        return ServerResponse(status=200, body=b"all")

    got: list[object] = []
    async with InProcessTransport(handle) as transport, await transport.send(GET, stream=True) as response:
        response.forward(got.append)
    assert got == [b"all", b""]


async def test_a_broken_stream_is_forwarded_with_its_error():
    stream, got = Stream(), []
    async with InProcessTransport(stream.handle) as transport, await transport.send(GET, stream=True) as response:
        response.forward(got.append)
        stream.put(b"one", ValueError("broken"))
        await stream.ended.wait()
        await asyncio.sleep(0)
    assert got[0] == b"one"
    assert isinstance(got[1], ConnectionFailed)
    assert len(got) == 2


async def test_a_receiver_that_fails_ends_its_own_stream_alone(caplog):
    """The task that used the transport first is not cancelled, other streams continue, and new ones begin."""
    failing, other = Stream(), Stream()

    async def handle(request: HttpRequest) -> ServerResponse:
        return await (failing if request.path == "/failing" else other).handle(request)

    def fail(piece: object) -> None:
        raise ValueError(f"cannot take {piece!r}")

    async with InProcessTransport(handle) as transport:
        async with await transport.send(HttpRequest("GET", "/failing"), stream=True) as response:
            response.forward(fail)
            async with await transport.send(GET, stream=True) as beside:
                failing.put(b"")
                await failing.ended.wait()
                for _ in range(10):
                    await asyncio.sleep(0)
                other.put(b"goes on", b"")
                assert await beside.read() == b"goes on"
        other.put(b"begins", b"")
        async with await transport.send(GET, stream=True) as later:
            assert await later.read() == b"begins"
    assert "cannot take b''" in caplog.text


# abandoned exchanges


async def test_an_abandoned_exchange_cancels_no_task(caplog):
    """The garbage collector ends the server's task."""
    abandoned = await _abandon_exchange()
    gc.collect()
    for _ in range(10):
        await asyncio.sleep(0)
    assert abandoned() is None
    assert "Task was destroyed but it is pending" in caplog.text


async def _abandon_exchange() -> weakref.ref[InProcessTransport]:
    """Leave a response whose body is longer than a transport holds, without closing it or the transport."""
    stream = Stream()
    stream.put(*(b"piece" for _ in range(10)))
    transport = InProcessTransport(stream.handle)
    await transport.send(GET, stream=True)
    while stream.pieces.qsize() > 5:  # noqa: ASYNC110 - nothing announces that the server waits for room
        await asyncio.sleep(0)
    return weakref.ref(transport)
