"""Questions to peers: each is answered once, whatever the peer does, and leaves no socket behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from steersman.transport import HttpStatus, Reachability, Unreachable


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@asynccontextmanager
async def server(pieces: Sequence[bytes], *, pause: float = 0.0, host: str = "127.0.0.1") -> AsyncIterator[int]:
    """A port that answers each request with these pieces, each after a pause, and closes; none: it never answers."""
    tasks: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        try:
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                await asyncio.sleep(pause)
                writer.write(piece)
            if not pieces:
                await asyncio.sleep(60)
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, host, 0)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def ask(asker: Reachability, url: str, *, seconds: float = 30.0) -> HttpStatus | Unreachable | None:
    answer: asyncio.Future[HttpStatus | Unreachable | None] = asyncio.get_running_loop().create_future()
    asker.ask_http(url, (), seconds, answer.set_result)
    assert not answer.done(), "a report comes in a later turn"
    async with asyncio.timeout(60):
        return await answer


@pytest.mark.parametrize("pause", [0.0, 0.02])
async def test_an_answer_may_come_late_and_in_pieces(pause) -> None:
    async with server([b"HTTP/1.1 20", b"4 Nothing", b" here\r\n\r\n"], pause=pause) as port, Reachability() as asker:
        assert await ask(asker, f"http://127.0.0.1:{port}/") == HttpStatus(204, "Nothing here")


async def test_localhost_is_also_the_address_of_ipv6() -> None:
    async with server([b"HTTP/1.1 200 OK\r\n\r\n"], host="::1") as port, Reachability() as asker:
        assert await ask(asker, f"http://localhost:{port}/") == HttpStatus(200, "OK")
        connected: asyncio.Future[HttpStatus | Unreachable | None] = asyncio.get_running_loop().create_future()
        asker.ask_tcp("localhost", port, 10, connected.set_result)
        assert await connected == HttpStatus(0)


async def test_a_name_is_looked_up() -> None:
    connected: asyncio.Future[HttpStatus | Unreachable | None] = asyncio.get_running_loop().create_future()
    async with server([]) as port, Reachability() as asker:
        asker.ask_tcp("LOCALHOST", port, 10, connected.set_result)
        assert await connected == HttpStatus(0)
        found = await ask(asker, f"http://nowhere.invalid:{port}/")
        assert isinstance(found, Unreachable)
        assert str(found).endswith(": nowhere.invalid")


@pytest.mark.parametrize(
    "url",
    [
        *("http://a..b/", "https://a..b/", "https://.x/", f"https://{'a' * 70}.x/"),
        *("http://a\0b/", "https://a\0b/", "http://[::1/", "https://[::1/", "http://x:99999/"),
    ],
)
async def test_a_host_that_cannot_be_one_is_unreachable(url) -> None:
    """It ends neither the question without an answer, nor the program that asks."""
    async with Reachability() as asker:
        assert isinstance(await ask(asker, url), Unreachable)


async def test_the_time_of_a_question_is_bounded() -> None:
    async with server([]) as port, Reachability() as asker:
        assert await ask(asker, f"http://127.0.0.1:{port}/", seconds=0.05) is None
        assert await ask(asker, f"https://127.0.0.1:{port}/", seconds=0.05) is None


async def test_a_port_without_tls_is_no_answer_over_tls() -> None:
    async with Reachability() as asker:
        async with server([b"HTTP/1.1 200 OK\r\n\r\n"]) as port:
            pass
        found = await ask(asker, f"https://127.0.0.1:{port}/")
        assert isinstance(found, Unreachable)
        assert str(found).endswith(f": 127.0.0.1:{port}")


async def test_questions_leave_no_socket_behind() -> None:
    """Neither those that were answered, nor those that were cancelled, nor those that are open at the end."""
    reports: list[HttpStatus | Unreachable | None] = []
    async with server([]) as silent, server([b"HTTP/1.1 200 OK\r\n\r\n"]) as port:
        before = descriptors()
        async with Reachability() as asker:
            url = f"http://127.0.0.1:{silent}/"
            early = asker.ask_http(url, (), 10, reports.append)
            early.cancel()
            late = asker.ask_http(url, (), 10, reports.append)
            asker.ask_http(url, (), 10, reports.append)
            asker.ask_http("https" + url[4:], (), 10, reports.append)
            assert await ask(asker, f"http://127.0.0.1:{port}/") == HttpStatus(200, "OK")
            await asyncio.sleep(0.05)
            late.cancel()
            late.cancel()
        assert reports == []
    await asyncio.sleep(0.05)
    assert descriptors() <= before
