"""Bodies that do not come, and too many that do: neither memory nor connections are one sender's alone."""

from __future__ import annotations

import asyncio

import pytest

from steersman.transport import HttpListener, HttpTransport, ServerResponse
from steersman.transport.body_memory import CROWD, SHARE, BodyMemory, BodyMemoryFull
from steersman.transport.listener import REQUEST_BODY_MAX
from steersman.wire import HttpRequest


async def hello(request: HttpRequest) -> ServerResponse:
    return ServerResponse(status=200, body=b"hello")


def sender_of(request: HttpRequest) -> ServerResponse | str:
    return request.header("X-Sender") or ServerResponse(status=401)


async def begun(
    listener: HttpListener, sender: str, size: int, more: str = ""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Begin a request and send nothing of its body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    head = f"POST / HTTP/1.1\r\nHost: x\r\nX-Sender: {sender}\r\nContent-Length: {size}\r\n{more}\r\n"
    writer.write(head.encode())
    await writer.drain()
    return reader, writer


async def test_bodies_that_do_not_come_do_not_keep_others_out():
    async with HttpListener(hello, max_connections=8) as listener:
        strangers = [await begun(listener, "x", 10, "Expect: 100-continue\r\n") for _ in range(8)]
        for reader, _ in strangers:
            assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
        try:
            async with asyncio.timeout(20):
                while True:
                    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
                    try:
                        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                        answer = await reader.read()
                    except ConnectionError:
                        # until the first of the bodies has been late for a while, there is no room
                        continue
                    finally:
                        writer.transport.abort()
                    if answer:
                        break
            assert answer.endswith(b"hello")
        finally:
            for _, writer in strangers:
                writer.transport.abort()


async def test_long_bodies_of_one_sender_have_a_bound_and_leave_room_to_others():
    async with HttpListener(hello, before_body=sender_of) as listener:
        some = SHARE // REQUEST_BODY_MAX + CROWD
        greedy = [await begun(listener, "greedy", REQUEST_BODY_MAX) for _ in range(some + 1)]
        try:
            async with asyncio.timeout(20):
                lines = [asyncio.ensure_future(reader.readline()) for reader, _ in greedy]  # noqa: TID251 - ended below
                refused, _ = await asyncio.wait(lines, return_when=asyncio.FIRST_COMPLETED)
                assert [task.result().split()[1] for task in refused] == [b"429"]
                async with HttpTransport(listener.address) as client:
                    long = HttpRequest("POST", "/", headers=(("X-Sender", "other"),), body=b"x" * REQUEST_BODY_MAX)
                    async with await client.send(long) as response:
                        assert await response.read() == b"hello"
        finally:
            for _, writer in greedy:
                writer.transport.abort()
            await asyncio.gather(*lines, return_exceptions=True)


async def test_a_body_that_waits_gets_room_when_another_is_answered():
    memory = BodyMemory(total=100, share=60)
    order: list[str] = []

    async def hold(name: str, sender: str, size: int, until: asyncio.Event) -> None:
        async with memory.taken(sender, size, within=20):
            order.append(name)
            await until.wait()

    first, second, third = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(hold("a1", "a", 50, first))
        tasks.create_task(hold("a2", "a", 50, second))
        tasks.create_task(hold("b1", "b", 50, third))
        await asyncio.sleep(0)
        assert order == ["a1", "b1"]
        first.set()
        second.set()
        third.set()
    assert order == ["a1", "b1", "a2"]
    async with memory.taken("c", 100, within=1):
        pass  # all of it is free again


async def test_a_body_that_gives_up_leaves_nothing_behind():
    memory = BodyMemory(total=100, share=60)
    async with memory.taken("a", 60, within=1):
        with pytest.raises(BodyMemoryFull):
            async with memory.taken("a", 10, within=0):
                pass
        waiting = asyncio.ensure_future(memory.taken("a", 10, within=20).__aenter__())  # noqa: TID251 - ended below
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with memory.taken("b", 100, within=0):
        pass


async def test_a_body_that_gives_up_while_room_becomes_free():
    memory = BodyMemory(total=100, share=60)
    first = memory.taken("a", 60, within=1)
    await first.__aenter__()
    waiting = [asyncio.ensure_future(memory.taken("a", 10, within=20).__aenter__()) for _ in range(2)]  # noqa: TID251 - ended below
    await asyncio.sleep(0)
    waiting[0].cancel()  # it learns so only after the room of the first is free
    await first.__aexit__(None, None, None)
    waiting[1].cancel()  # it has its room already, and does not know
    for each in waiting:
        with pytest.raises(asyncio.CancelledError):
            await each
    async with memory.taken("b", 100, within=0):
        pass
