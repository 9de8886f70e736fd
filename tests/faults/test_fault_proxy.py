"""The proxy that breaks connections: each fault is what it says, and nothing else."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from steersman import Client
from steersman.kinds.core_v1 import Namespace
from steersman.testing import FaultProxy


class Echo:
    """A server that says what it hears, and counts it."""

    def __init__(self):
        self.heard = b""
        self.url = ""
        self.more = asyncio.Event()

    async def __call__(self, reader, writer):
        try:
            while chunk := await reader.read(1 << 16):
                self.heard += chunk
                self.more.set()
                writer.write(chunk)
                await writer.drain()
        except ConnectionError:
            pass  # the test broke it
        finally:
            writer.close()

    async def until(self, count):
        async with asyncio.timeout(60):
            while len(self.heard) < count:
                self.more.clear()
                await self.more.wait()


@pytest.fixture
async def echo():
    echo = Echo()
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    echo.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield echo
    server.close()


@pytest.fixture
async def proxy(echo):
    async with FaultProxy(echo.url) as proxy:
        yield proxy
    assert proxy.connections == 0


@asynccontextmanager
async def connected(proxy):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
    try:
        yield reader, writer
    finally:
        writer.close()


async def say(stream, text):
    """Say something and hear it back."""
    reader, writer = stream
    writer.write(text)
    async with asyncio.timeout(60):
        return await reader.readexactly(len(text))


async def silent(reader, *, seconds=0.1):
    """Whether nothing comes for a while."""
    try:
        async with asyncio.timeout(seconds):
            await reader.read(1)
    except TimeoutError:
        return True
    return False


async def test_what_passes_is_what_was_said(echo, proxy):
    text = bytes(range(256)) * 4096
    async with connected(proxy) as stream:
        assert await say(stream, b"hello") == b"hello"
        assert await say(stream, text) == text
        assert proxy.connections == 1
        stream[1].write_eof()
        assert await stream[0].read() == b""
    assert echo.heard == b"hello" + text
    assert proxy.delivered == {"requests": len(text) + 5, "answers": len(text) + 5}


async def test_cut_resets_what_is_open_and_accepts_what_is_new(proxy):
    async with connected(proxy) as one, connected(proxy) as two:
        await say(one, b"a")
        await say(two, b"b")
        assert proxy.cut() == 2
        for reader, _ in (one, two):
            with pytest.raises(ConnectionResetError):
                await reader.read()
    async with connected(proxy) as third:
        assert await say(third, b"again") == b"again"
    assert proxy.accepted == 3


async def test_refused_connections_are_refused_on_the_same_port_until_it_heals(proxy):
    url = proxy.url
    async with connected(proxy) as stream:
        await say(stream, b"a")
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            async with connected(proxy):
                pass
        assert await say(stream, b"still here") == b"still here"
        await proxy.heal()
        async with connected(proxy) as other:
            assert await say(other, b"back") == b"back"
    assert proxy.url == url


async def test_a_stall_delivers_nothing_until_it_heals(echo, proxy):
    async with connected(proxy) as stream:
        await say(stream, b"a")
        proxy.stall("answers")
        stream[1].write(b"bc")
        await echo.until(3)
        assert await silent(stream[0])
        proxy.stall()
        stream[1].write(b"d")
        async with connected(proxy) as other:
            other[1].write(b"e")
            assert await silent(other[0])
        assert echo.heard == b"abc"
        await proxy.heal()
        async with asyncio.timeout(60):
            assert await stream[0].readexactly(3) == b"bcd"


async def test_a_stalled_connection_can_be_cut(proxy):
    async with connected(proxy) as stream:
        await say(stream, b"a")
        proxy.stall()
        stream[1].write(b"b")
        assert await silent(stream[0], seconds=0.02)
        assert proxy.cut() == 1
        with pytest.raises(ConnectionResetError):
            await stream[0].read()


async def test_a_frozen_connection_is_silent_and_a_new_one_is_served(echo, proxy):
    async with connected(proxy) as stream:
        await say(stream, b"a")
        assert proxy.freeze() == 1
        stream[1].write(b"b")
        async with connected(proxy) as other:
            assert await say(other, b"c") == b"c"
        assert await silent(stream[0])
        assert echo.heard == b"ac"
        await proxy.heal()
        async with asyncio.timeout(60):
            assert await stream[0].readexactly(1) == b"b"


async def test_a_lost_answer_is_an_answer_to_a_delivered_request(echo, proxy):
    async with connected(proxy) as stream:
        await say(stream, b"a")
        assert proxy.lose_answers() == 1
        stream[1].write(b"request")
        with pytest.raises(ConnectionResetError):
            await stream[0].read()
        await echo.until(8)
        assert echo.heard == b"arequest"
    async with connected(proxy) as stream:
        assert await say(stream, b"new") == b"new"


async def test_a_connection_is_cut_after_so_many_bytes(echo, proxy):
    async with connected(proxy) as stream:
        await say(stream, b"a")
        proxy.cut_after(3, "requests")
        stream[1].write(b"bcdef")
        with pytest.raises(ConnectionResetError):
            await stream[0].read()
        await echo.until(4)
        assert echo.heard == b"abcd"


async def test_delay_and_throttle_take_their_time_and_lose_nothing(proxy):
    loop = asyncio.get_running_loop()
    async with connected(proxy) as stream:
        await say(stream, b"a")
        proxy.delay(0.05, "answers")
        begun = loop.time()
        assert await say(stream, b"bcd") == b"bcd"
        assert loop.time() - begun >= 0.05
        await proxy.heal()
        proxy.throttle(10_000, "requests")
        begun = loop.time()
        assert await say(stream, b"x" * 1000) == b"x" * 1000
        assert loop.time() - begun >= 0.1


async def test_a_server_that_is_away_resets(echo):
    async with FaultProxy("http://127.0.0.1:1") as proxy, connected(proxy) as stream:
        with pytest.raises(ConnectionResetError):
            await stream[0].read()


async def test_an_address_without_a_port_is_refused():
    with pytest.raises(ValueError, match=r"including the port, such as engine\.url"):
        FaultProxy("https://127.0.0.1")


async def test_a_client_reaches_an_engine_through_it(engine):
    """The certificate is the server's own, and good for the proxy's address."""
    async with FaultProxy(engine.url) as proxy, Client.connect(proxy.config(engine.kubeconfig)) as client:
        assert (await client.get(Namespace, "default")).metadata.name == "default"
        assert client.server == proxy.url
        assert proxy.accepted == 1
