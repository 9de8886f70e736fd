"""The real proxy: connections wait, are balanced, and pass through as they are; its ports end with the control plane."""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import signal
import socket
import struct
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from samples.eventually import eventually
from samples.ports import free_port
from steersman.workloads.proxies import CannotListen, Forwarding, ProxyState, RelayProxy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="services are proxied on Linux alone")

LOCAL = ("127.0.0.1",)
PATIENCE = 60


@asynccontextmanager
async def endpoint(handle=None, *, name: bytes = b"", address: str = "127.0.0.1", port: int = 0):
    """A server that echoes, after its name; gives its address and port."""

    async def echo(reader, writer):
        writer.write(name)
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    async def serve(reader, writer):
        with suppress(ConnectionError, asyncio.CancelledError):
            await (handle or echo)(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, address, port, limit=1 << 24)
    try:
        yield server.sockets[0].getsockname()[:2]
    finally:
        server.close()


@asynccontextmanager
async def client(port: int, address: str = "127.0.0.1"):
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(address, port)
        try:
            yield reader, writer
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


async def ask(port: int, text: bytes = b"hello", address: str = "127.0.0.1") -> bytes:
    """Send a text, end the sending side, and read the answer to its end."""
    async with client(port, address) as (reader, writer):
        writer.write(text)
        writer.write_eof()
        return await reader.read()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_early_connections_wait_for_an_endpoint():
    """Rule: a service listens before any endpoint exists, and parks connections with what they send."""
    port = free_port()
    async with RelayProxy() as proxy, endpoint() as place:
        await proxy.keep("web", Forwarding(LOCAL, port))
        asked = [asyncio.get_running_loop().create_task(ask(port, b"%d" % number)) for number in range(5)]
        await eventually(lambda: proxy.state("web").parked == 5)
        await proxy.keep("web", Forwarding(LOCAL, port, (place,)))
        assert await asyncio.gather(*asked) == [b"%d" % number for number in range(5)]
        await eventually(lambda: proxy.state("web") == ProxyState())


async def test_twenty_connections_are_parked_with_a_megabyte_each_and_the_rest_wait_in_the_kernel():
    """Rule: the proxy parks up to 20 connections, 1 MB each. More of them lose nothing."""
    port = free_port()
    body = hashlib.shake_128().digest(1 << 20)
    async with RelayProxy() as proxy, endpoint() as place:
        await proxy.keep("web", Forwarding(LOCAL, port))
        asked = [asyncio.get_running_loop().create_task(ask(port, body)) for _ in range(30)]
        await eventually(lambda: proxy.state("web").parked == 20)
        await proxy.keep("web", Forwarding(LOCAL, port, (place,)))
        assert all(answer == body for answer in await asyncio.gather(*asked))


async def test_a_client_that_gave_up_is_no_longer_parked():
    port = free_port()
    async with RelayProxy() as proxy:
        await proxy.keep("web", Forwarding(LOCAL, port))
        async with client(port):
            await eventually(lambda: proxy.state("web").parked == 1)
        await eventually(lambda: proxy.state("web").parked == 0)


async def test_connections_go_to_the_endpoints_in_turn():
    """Rule: a service balances over its endpoints."""
    port = free_port()
    async with RelayProxy() as proxy, endpoint(name=b"a") as first, endpoint(name=b"b") as second:
        await proxy.keep("web", Forwarding(LOCAL, port, (first, second)))
        assert [await ask(port, b"") for _ in range(4)] == [b"a", b"b", b"a", b"b"]


async def test_an_endpoint_that_refuses_is_passed_over():
    """Rule: if an endpoint refuses, the next one gets the connection."""
    port = free_port()
    async with RelayProxy() as proxy, endpoint() as place:
        await proxy.keep("web", Forwarding(LOCAL, port, (("127.0.0.1", free_port()), place)))
        assert [await ask(port) for _ in range(4)] == [b"hello"] * 4


async def test_a_connection_waits_while_its_only_endpoint_starts():
    """Rule: a backend restart loses only the connections that were open to it."""
    port, behind = free_port(), free_port()
    async with RelayProxy() as proxy:
        await proxy.keep("web", Forwarding(LOCAL, port, (("127.0.0.1", behind),)))
        asked = asyncio.get_running_loop().create_task(ask(port))
        refusal = f"nothing listens at 127.0.0.1:{behind}"
        await eventually(lambda: proxy.state("web") == ProxyState(1, refusal))
        async with endpoint(port=behind):
            assert await asked == b"hello"
            await eventually(lambda: proxy.state("web") == ProxyState())


async def test_a_refusing_endpoint_parks_a_bounded_number():
    """A crowd of clients before an endpoint that refuses: the kernel holds most of them, over many attempts."""
    port, behind = free_port(), free_port()
    most = 0
    async with RelayProxy() as proxy, asyncio.TaskGroup() as tasks:

        def note(_: str) -> None:
            nonlocal most
            most = max(most, proxy.state("web").parked)

        proxy.watch(note)
        await proxy.keep("web", Forwarding(LOCAL, port, (("127.0.0.1", behind),)))
        asked = [tasks.create_task(ask(port, b"%d" % number)) for number in range(150)]
        await eventually(lambda: most >= 16)
        await asyncio.sleep(0.5)  # several attempts
        assert most <= 40
        async with endpoint(port=behind):
            assert [await each for each in asked] == [b"%d" % number for number in range(150)]


async def test_an_endpoint_that_leaves_keeps_its_open_connections():
    port = free_port()
    async with RelayProxy() as proxy, endpoint(name=b"a") as first, endpoint(name=b"b") as second:
        await proxy.keep("web", Forwarding(LOCAL, port, (first,)))
        async with client(port) as (reader, writer):
            assert await reader.readexactly(1) == b"a"
            await proxy.keep("web", Forwarding(LOCAL, port, (second,)))
            assert await ask(port, b"") == b"b"
            writer.write(b"still there")
            assert await reader.readexactly(11) == b"still there"


@pytest.mark.parametrize("sends", ["client", "endpoint"])
async def test_a_large_transfer_to_a_slow_reader_arrives_whole_and_holds_little(sends):
    """A slow reader slows the sender: the proxy buffers a bounded amount."""
    port = free_port()
    block = hashlib.shake_128().digest(1 << 20)
    # More than all buffers of the kernel can hold, which grow to 32 MB each, with that of the endpoint's reader.
    size = 192 * len(block)
    pushed = 0
    received = asyncio.get_running_loop().create_future()
    slow = asyncio.Event()

    async def push(writer):
        nonlocal pushed
        for _ in range(size // len(block)):
            writer.write(block)
            await writer.drain()
            pushed += len(block)
        writer.write_eof()

    async def drink(reader):
        await slow.wait()
        digest = hashlib.sha256()
        while data := await reader.read(1 << 16):
            digest.update(data)
        received.set_result(digest.digest())

    async def serve(reader, writer):
        await (drink(reader) if sends == "client" else push(writer))
        await reader.read()

    async with RelayProxy() as proxy, endpoint(serve) as place, client_with_small_window(port) as connect:
        await proxy.keep("web", Forwarding(LOCAL, port, (place,)))
        reader, writer = await connect()
        mine = asyncio.get_running_loop().create_task(push(writer) if sends == "client" else drink(reader))
        last = -1
        while pushed != last:  # until nothing moves any more
            last = pushed
            await asyncio.sleep(0.2)
        assert pushed < size
        slow.set()
        expected = hashlib.sha256()
        for _ in range(size // len(block)):
            expected.update(block)
        assert await asyncio.wait_for(received, PATIENCE) == expected.digest()
        await mine


@asynccontextmanager
async def client_with_small_window(port):
    opened = []

    async def connect():
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        raw.setblocking(False)
        await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", port))
        opened.append(await asyncio.open_connection(sock=raw, limit=1 << 16))
        return opened[0]

    yield connect
    for _, writer in opened:
        writer.close()


async def test_each_side_can_end_its_half():
    """A half-closed connection stays open in the other direction."""
    port = free_port()

    async def serve(reader, writer):
        writer.write(b"greeting")
        writer.write_eof()
        heard.set_result(await reader.read())

    heard = asyncio.get_running_loop().create_future()
    async with RelayProxy() as proxy, endpoint(serve) as place, asyncio.timeout(PATIENCE):
        await proxy.keep("web", Forwarding(LOCAL, port, (place,)))
        async with client(port) as (reader, writer):
            assert await reader.read() == b"greeting"
            writer.write(b"after the end of the other side")
            writer.write_eof()
            assert await heard == b"after the end of the other side"


def abort(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def test_a_reset_passes_through_in_both_directions():
    port = free_port()
    outcome: asyncio.Queue[object] = asyncio.Queue()

    async def serve(reader, writer):
        word = await reader.readexactly(5)
        if word == b"reset":
            abort(writer)
            return
        writer.write(b"ready")
        try:
            outcome.put_nowait(await reader.read())
        except ConnectionResetError as error:
            outcome.put_nowait(type(error))

    async with RelayProxy() as proxy, endpoint(serve) as place, asyncio.timeout(PATIENCE):
        await proxy.keep("web", Forwarding(LOCAL, port, (place,)))
        async with client(port) as (reader, writer):
            writer.write(b"reset")
            with pytest.raises(ConnectionResetError):
                await reader.read()
        async with client(port) as (reader, writer):
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"ready"
            abort(writer)
            assert await outcome.get() is ConnectionResetError


async def test_an_answer_before_the_end_of_the_request_arrives():
    """An endpoint that answers early and closes: the client gets the answer, though its request is cut off."""
    port = free_port()

    async def serve(reader, writer):
        await reader.readexactly(10)
        writer.write(b"413 too large")
        await writer.drain()

    async with RelayProxy() as proxy, endpoint(serve) as place:
        await proxy.keep("web", Forwarding(LOCAL, port, (place,)))
        async with client(port) as (reader, writer):
            writer.write(b"x" * 4096)
            assert await reader.readexactly(13) == b"413 too large"


async def test_urgent_data_does_not_stall_a_connection():
    port = free_port()
    async with RelayProxy() as proxy, endpoint() as place:
        await proxy.keep("web", Forwarding(LOCAL, port, (place,)))
        async with client(port) as (reader, writer):
            raw = writer.get_extra_info("socket")
            for _ in range(20):
                os.write(raw.fileno(), b"before")
                raw._sock.send(b"!", socket.MSG_OOB)
                os.write(raw.fileno(), b"after")
                answer = b""
                while answer.count(b"after") < 1:
                    answer += await reader.read(100)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "127.17.3.9"])
async def test_a_service_listens_at_the_address_it_was_given(address):
    """Rule: IPv4 and IPv6, any loopback address."""
    port = free_port(address)
    async with RelayProxy() as proxy, endpoint(address=address) as place:
        await proxy.keep("web", Forwarding((address,), port, (place,)))
        assert await ask(port, address=address) == b"hello"


async def test_localhost_is_both_loopback_addresses():
    port = free_port("::1")
    async with RelayProxy() as proxy, endpoint() as place:
        await proxy.keep("web", Forwarding(("127.0.0.1", "::1"), port, (place,)))
        assert [await ask(port, address=each) for each in ("127.0.0.1", "::1")] == [b"hello"] * 2


async def test_a_port_in_use_is_reported_and_taken_when_it_is_free():
    """Rule: a bind failure is visible; the service recovers."""
    async with RelayProxy() as proxy, endpoint() as place:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            with pytest.raises(
                CannotListen, match=f"cannot listen at 127.0.0.1:{port}: Address already in use"
            ) as found:
                await proxy.keep("web", Forwarding(LOCAL, port, (place,)))
            assert found.value.in_use
        await proxy.keep("web", Forwarding(LOCAL, port, (place,)))
        assert await ask(port) == b"hello"


async def test_a_service_that_moves_or_goes_frees_its_port():
    old, new = free_port(), free_port()
    async with RelayProxy() as proxy, endpoint() as place:
        await proxy.keep("web", Forwarding(LOCAL, old, (place,)))
        await proxy.keep("web", Forwarding(LOCAL, new, (place,)))
        assert not listens(old)
        assert await ask(new) == b"hello"
        await proxy.remove("web")
        assert not listens(new)


async def test_a_killed_proxy_listens_again_at_the_same_port():
    """kill -9 of the proxy: another one takes over every service."""
    port = free_port()
    changed = asyncio.Event()
    async with RelayProxy() as proxy, endpoint() as place:
        await proxy.keep("web", Forwarding(LOCAL, port, (place,)))
        proxy.watch(lambda _: changed.set())
        async with client(port) as (reader, writer):
            writer.write(b"x")
            assert await reader.readexactly(1) == b"x"
            first = proxy.pid
            assert first is not None
            os.kill(first, signal.SIGKILL)
            with suppress(ConnectionError):
                assert await reader.read() == b""
        await asyncio.wait_for(changed.wait(), PATIENCE)
        assert proxy.pid != first
        assert await ask(port) == b"hello"


async def test_the_proxy_runs_before_others_where_the_user_may_ask_for_it():
    """Processes that start do not delay connections; without the right, the proxy runs as this program does."""
    async with RelayProxy() as proxy:
        await proxy.keep("web", Forwarding(LOCAL, free_port()))
        assert proxy.pid is not None
        assert os.getpriority(os.PRIO_PROCESS, proxy.pid) in {-10, os.getpriority(os.PRIO_PROCESS, 0)}


async def test_no_relay_runs_before_the_first_service():
    """A session without published ports needs none, and it takes several megabytes."""
    async with RelayProxy() as proxy:
        await proxy.remove("none")
        assert proxy.pid is None
        await proxy.keep("web", Forwarding(LOCAL, free_port()))
        assert proxy.pid is not None


async def test_an_order_survives_a_proxy_that_is_killed_meanwhile():
    port = free_port()
    async with RelayProxy() as proxy, endpoint() as place:
        await proxy.keep("other", Forwarding(LOCAL, free_port()))
        pid = proxy.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await asyncio.wait_for(proxy.keep("web", Forwarding(LOCAL, port, (place,))), PATIENCE)
        assert await ask(port) == b"hello"


CONTROL_PLANE = """
import asyncio
from steersman.workloads.proxies import Forwarding, RelayProxy

async def main():
    async with RelayProxy() as proxy:
        await proxy.keep("web", Forwarding(("127.0.0.1",), {port}))
        print(proxy.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("stopped", [False, True])
async def test_kill_9_of_the_control_plane_frees_every_port(stopped):
    """Also if the proxy is stopped at that moment."""
    port = free_port()
    plane = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CONTROL_PLANE.format(port=port), stdout=asyncio.subprocess.PIPE
    )
    assert plane.stdout is not None
    pid = int(await asyncio.wait_for(plane.stdout.readline(), PATIENCE))
    assert listens(port)
    if stopped:
        os.kill(pid, signal.SIGSTOP)
    plane.kill()
    await plane.wait()
    await eventually(lambda: not listens(port), within=30)


async def test_a_thousand_connections_at_once():
    port = free_port()

    async def one(number: int) -> bool:
        async with client(port) as (reader, writer):
            writer.write(b"%06d" % number)
            assert await reader.readexactly(6) == b"%06d" % number
            ready.release()
            await go.wait()
            writer.write(b"%06d" % number)
            return await reader.readexactly(6) == b"%06d" % number

    ready, go = asyncio.Semaphore(0), asyncio.Event()
    async with RelayProxy() as proxy, endpoint() as place, asyncio.TaskGroup() as tasks:
        await proxy.keep("web", Forwarding(LOCAL, port, (place,)))
        all_of_them = [tasks.create_task(one(number)) for number in range(1000)]
        for _ in all_of_them:
            await ready.acquire()
        go.set()
        assert all(await asyncio.gather(*all_of_them))


async def test_without_descriptors_connections_wait_until_others_end():
    """The proxy neither fails nor spins: the kernel holds what it cannot accept."""
    port = free_port()
    async with RelayProxy() as proxy, endpoint() as place:
        await proxy.keep("web", Forwarding(LOCAL, port, (place,)))
        assert proxy.pid is not None
        resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE, (24, 24))
        answers = await asyncio.gather(*(ask(port, b"%d" % number) for number in range(60)))
        assert answers == [b"%d" % number for number in range(60)]


def descriptors(proxy: RelayProxy) -> int:
    return len(list(Path(f"/proc/{proxy.pid}/fd").iterdir()))


async def test_closed_connections_leave_nothing_behind():
    port = free_port()
    async with RelayProxy() as proxy, endpoint() as place:
        await proxy.keep("web", Forwarding(LOCAL, port, (place,)))
        await ask(port, b"x" * 300_000)
        before = descriptors(proxy)
        for _ in range(20):
            await asyncio.gather(*(ask(port, b"x" * 100_000) for _ in range(10)))
        await eventually(lambda: descriptors(proxy) <= before + 20)
