"""Connections that a stop meets on their way."""

from __future__ import annotations

import asyncio
import socket

from steersman.transport.acceptor import Acceptor


async def test_a_connection_accepted_as_the_listener_stops_is_closed():
    """Python warns of a socket that was left open, and this run takes warnings for errors."""

    def stop_before_the_next_task() -> int:
        asyncio.get_running_loop().call_soon(acceptor.stop)
        stopped.set()
        return 0

    async def protocol() -> asyncio.Protocol:
        return asyncio.Protocol()

    stopped = asyncio.Event()
    acceptor = Acceptor(
        protocol,
        established=stop_before_the_next_task,
        end_idle=lambda: False,
        limit=10,
        context=None,
        handshake_timeout=1.0,
    )
    await acceptor.start("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", acceptor.port or 0), timeout=60) as client:
        async with asyncio.timeout(60):
            await stopped.wait()
            await acceptor.wait_stopped()
        assert client.recv(1) == b""
