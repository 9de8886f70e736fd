"""A network that fails on demand: a TCP proxy between a client and an API server.

Guarantees:

- Bytes pass unchanged; TLS goes through it end to end.
- A fault lasts from its call until `heal`, or happens once, as its docstring says; faults add up.
- Data held back by a stall is bounded by the kernel's buffers, and delivered in order when the stall ends.
- Leaving the block ends every connection and every task.
"""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import struct
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from steersman.aio import Supervisor

if TYPE_CHECKING:
    from steersman.client import Config

#: The direction of bytes: requests to the server, answers back to the client.
Way: TypeAlias = Literal["requests", "answers"]

_BOTH: tuple[Way, ...] = ("requests", "answers")
_CHUNK = 65536
# Closing a connection with this resets it: the peer sees an error instead of an orderly end.
_RESET = struct.pack("ii", 1, 0)


class FaultProxy:
    """A proxy with faults to choose while it runs.

    ```python
    async with FaultProxy(engine.url) as proxy, Client.connect(proxy.config(engine.kubeconfig)) as client:
        ...
        proxy.cut()
    ```
    """

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        if parts.hostname is None or parts.port is None:
            raise ValueError(
                f"a fault proxy needs the address of a server including the port, such as engine.url (got {target!r})"
            )
        self._target = (parts.hostname, parts.port)
        self._scheme = parts.scheme
        self._port = 0
        self._owner = AsyncExitStack()
        self._tasks: Supervisor | None = None
        self._server: asyncio.Server | None = None
        self._links: dict[_Link, None] = {}
        self._stalled: set[Way] = set()
        self._delay: dict[Way, float] = {}
        self._pace: dict[Way, float] = {}
        self._changed = asyncio.Event()
        #: Connections accepted since the start.
        self.accepted = 0
        #: Bytes delivered since the start.
        self.delivered: dict[Way, int] = dict.fromkeys(_BOTH, 0)

    def __repr__(self) -> str:
        return f"<FaultProxy at {self.url}: {len(self._links)} connections>"

    @property
    def url(self) -> str:
        """Where clients connect; the server's certificate must be valid for 127.0.0.1, as an engine's is."""
        return f"{self._scheme}://127.0.0.1:{self._port}"

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._links)

    def config(self, kubeconfig: str | Path, *, context: str | None = None) -> Config:
        """The configuration of a kubeconfig, with this proxy instead of its server."""
        from steersman.client import load_kubeconfig  # noqa: PLC0415 - a proxy without a client does not pay for one

        return dataclasses.replace(load_kubeconfig(kubeconfig, context=context), server=self.url)

    # life

    async def __aenter__(self) -> Self:
        # Bound but not listening: the port stays ours while connections are refused.
        held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._owner.callback(held.close)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        self._port = held.getsockname()[1]
        self._tasks = await self._owner.enter_async_context(Supervisor())
        self._owner.callback(self._end)
        await self.accept()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._owner.__aexit__(*error)

    def _end(self) -> None:
        assert self._tasks is not None
        self._stop_listening()
        self.cut()
        self._tasks.cancel()

    def _stop_listening(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()

    # faults

    def cut(self) -> int:
        """Reset every open connection and return their number. New ones are accepted."""
        links = list(self._links)
        for link in links:
            link.reset()
        return len(links)

    def refuse(self) -> None:
        """Refuse new connections, as a machine without a listener does; open ones stay."""
        self._stop_listening()

    async def accept(self) -> None:
        """Accept new connections again."""
        if self._server is None:
            self._server = await asyncio.start_server(
                self._connected, "127.0.0.1", self._port, reuse_port=True, limit=_CHUNK
            )

    def stall(self, *ways: Way) -> None:
        """Stop delivering, in both directions or one: connections stay open and new ones are accepted, without data."""
        self._stalled.update(ways or _BOTH)

    def freeze(self) -> int:
        """Stop delivering on the open connections, like a router that dropped their state; return their number.

        New connections work: a client that notices the silence and reconnects is served.
        """
        for link in self._links:
            link.frozen = True
        return len(self._links)

    def delay(self, seconds: float, *ways: Way) -> None:
        """Deliver bytes this much later, and at most twice as much."""
        self._delay.update(dict.fromkeys(ways or _BOTH, seconds))

    def throttle(self, bytes_per_second: float, *ways: Way) -> None:
        """Limit each connection to this many bytes per second."""
        if bytes_per_second <= 0:
            raise ValueError(f"throttle() needs a positive rate (got {bytes_per_second}); use stall() to stop delivery")
        self._pace.update(dict.fromkeys(ways or _BOTH, bytes_per_second))

    def cut_after(self, count: int, way: Way = "answers") -> None:
        """Reset each open connection after it has delivered this many more bytes."""
        for link in self._links:
            link.left[way] = count

    def lose_answers(self) -> int:
        """Deliver requests but lose their answers: each open connection is reset when its next answer comes.

        Returns the number of connections. New ones work, so that a client can check what happened to its request.
        """
        self.cut_after(0, "answers")
        return len(self._links)

    async def heal(self) -> None:
        """End all faults, and deliver the data held back."""
        self._stalled.clear()
        self._delay.clear()
        self._pace.clear()
        for link in self._links:
            link.left.clear()
            link.frozen = False
        self._changed.set()
        self._changed = asyncio.Event()
        await self.accept()

    # carrying bytes

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._tasks is not None
        link = _Link(writer)
        if self._server is None:
            # accepted just as the proxy started to refuse
            link.reset()
            return
        self.accepted += 1
        self._links[link] = None
        link.task = self._tasks.start(self._carry(link, reader), name=f"connection {self.accepted} of a fault proxy")
        # not in the task itself: a task cancelled before its first step runs nothing
        link.task.add_done_callback(lambda _: self._ended(link))

    def _ended(self, link: _Link) -> None:
        del self._links[link]
        link.reset()

    async def _carry(self, link: _Link, reader: asyncio.StreamReader) -> None:
        try:
            answers, onwards = await asyncio.open_connection(*self._target, limit=_CHUNK)
            link.add(onwards)
            async with Supervisor() as ways:
                ways.start(self._pump(link, "requests", reader, onwards), name="requests")
                ways.start(self._pump(link, "answers", answers, link.client), name="answers")
            link.close()
        except OSError:
            # the server is down; without the proxy the client would have been refused
            pass

    async def _pump(self, link: _Link, way: Way, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while chunk := await source.read(_CHUNK):
                await self._hold(link, way, len(chunk))
                left = link.left.get(way)
                if left is not None:
                    chunk = chunk[:left]
                    link.left[way] = left - len(chunk)
                sink.write(chunk)
                self.delivered[way] += len(chunk)
                await sink.drain()
                if link.left.get(way) == 0 and left is not None:
                    link.reset()
                    return
            await self._hold(link, way, 0)
            if sink.can_write_eof() and not sink.is_closing():
                sink.write_eof()
        except OSError:
            link.reset()

    async def _hold(self, link: _Link, way: Way, size: int) -> None:
        """Wait as long as the faults require."""
        if delay := self._delay.get(way):
            await asyncio.sleep(delay)
        if pace := self._pace.get(way):
            await asyncio.sleep(size / pace)
        while link.frozen or way in self._stalled:
            await self._changed.wait()


class _Link:
    """One connection of a client, and ours to the server."""

    def __init__(self, client: asyncio.StreamWriter) -> None:
        self.client = client
        self.task: asyncio.Task[None] | None = None
        self._ends = [client]
        self._closed = False
        self.frozen = False
        #: How many more bytes to deliver before resetting the connection.
        self.left: dict[Way, int] = {}

    def add(self, end: asyncio.StreamWriter) -> None:
        """Add the connection to the server."""
        self._ends.append(end)

    def close(self) -> None:
        """Close both connections in order, with everything delivered."""
        self._closed = True
        for end in self._ends:
            end.close()

    def reset(self) -> None:
        """Reset both connections, unless they ended by themselves, and cancel their task."""
        if self._closed:
            return
        self._closed = True
        for end in self._ends:
            held: socket.socket | None = end.get_extra_info("socket")
            if held is not None and held.fileno() >= 0:
                held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            end.transport.abort()
        if self.task is not None:
            self.task.cancel()
