"""Bodies that are pushed: pieces go out as they happen, in order, and only to clients that read them."""

from __future__ import annotations

import asyncio

from samples.streams import Stream
from steersman.transport import HttpListener, HttpTransport
from steersman.wire import HttpRequest


async def test_what_is_pushed_stands_between_what_is_yielded():
    body = Stream()
    body.pieces.put_nowait(b"one ")
    async with HttpListener(body.handle) as listener, HttpTransport(listener.address) as client:
        async with await client.send(HttpRequest("GET", "/"), stream=True) as response, asyncio.timeout(60):
            await body.waits.wait()
            assert body.push is not None
            assert body.push(b"two ")
            assert body.push(b"two ")
            body.pieces.put_nowait(b"three")
            body.pieces.put_nowait(b"")
            assert await response.read() == b"one two two three"
        # the connection is as good as before
        body.pieces.put_nowait(b"")
        async with await client.send(HttpRequest("GET", "/")) as response:
            assert await response.read() == b""


async def test_nothing_is_pushed_to_a_client_that_does_not_read():
    body = Stream()
    async with HttpListener(body.handle) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(60):
            await body.waits.wait()
        assert body.push is not None
        piece = b"x" * 65536
        taken = next(count for count in range(1000) if not body.push(piece))
        assert 0 < taken < 1000
        # one that is gone gets nothing either
        writer.transport.abort()
        async with asyncio.timeout(60):
            await body.ended.wait()
        assert not body.push(b"more")
        del reader


async def test_a_client_that_knows_no_chunks_gets_all_by_turns():
    body = Stream()
    async with HttpListener(body.handle) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        async with asyncio.timeout(60):
            await body.waits.wait()
            assert body.push is None
            body.pieces.put_nowait(b"all of it")
            body.pieces.put_nowait(b"")
            assert (await reader.read()).endswith(b"\r\n\r\nall of it")
        writer.close()
