"""A balancer of TCP connections between replicas, as a Service is one; and a load of requests at a given rate."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import cycle

#: The most requests at the same time: if the server cannot keep up, the load slows down instead of growing.
_AT_ONCE = 50


class Balancer:
    """Relays each new connection to the next replica that accepts it."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._turns = cycle(range(len(ports)))
        self._relays: set[asyncio.Task[None]] = set()
        #: The number of connections to each replica.
        self.connections: Counter[int] = Counter()

    @asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[None]:
        """Accept connections for a block."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        try:
            yield
        finally:
            server.close()
            for each in self._relays:
                each.cancel()
            await asyncio.gather(*self._relays, return_exceptions=True)
            await server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay = asyncio.get_running_loop().create_task(self._relay(reader, writer))
        self._relays.add(relay)
        relay.add_done_callback(self._relays.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            found = await self._connected()
            if found is not None:
                await asyncio.gather(_copied(reader, found[1]), _copied(found[0], writer))
        finally:
            writer.close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        # Each connection tries every replica: `_turns` also moves on for others meanwhile.
        first = next(self._turns)
        for port in (*self._ports[first:], *self._ports[:first]):
            with suppress(OSError):
                connection = await asyncio.open_connection("127.0.0.1", port)
                self.connections[port] += 1
                return connection
        return None


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the reader ends, then close the writer."""
    try:
        with suppress(ConnectionError):
            while data := await reader.read(64 * 1024):
                writer.write(data)
                await writer.drain()
    finally:
        writer.close()


async def paced(count: int, request: Callable[[int], Awaitable[None]], *, per_second: float = 200) -> str:
    """Send requests at a rate. If one raises, so does this. Returns how many there were, and the rate they reached."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    free = asyncio.Semaphore(_AT_ONCE)

    async def send(number: int) -> None:
        try:
            await request(number)
        finally:
            free.release()

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            await asyncio.sleep(max(0.0, began + number / per_second - loop.time()))
            await free.acquire()
            group.create_task(send(number))
    seconds = loop.time() - began
    return f"{count} in {seconds:.1f} s, {count / seconds:.0f} per second"
