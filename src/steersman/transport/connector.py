"""The connections of the HTTP transport. aiohttp opens, pools and reads them; this module writes the requests.

aiohttp's session is not used. After a lost connection, it resends idempotent requests, including PUT and DELETE. That is
wrong for a write, because the server may have executed the first one. The session also takes more CPU time for a
request than everything else in the exchange.

Guarantees
- A request is written once, on one connection.
- A response belongs to its request: data that arrives between two requests closes the connection.
- A silently lost peer is noticed within about a minute, even on an idle connection.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import aiohttp

from steersman.transport.connection_ends import abort, unsent_bytes

if TYPE_CHECKING:
    from aiohttp.connector import Connection
    from aiohttp.http import RawResponseMessage

#: Seconds until the first probe of a silent connection, between probes, and how many may fail.
_PROBES = (30, 10, 3)

#: Bytes to write in one turn of the loop: encrypting a large request takes time.
_WRITE_AT_ONCE = 1 << 20


class Exchange:
    """One request and its response on one connection. The connection returns to the pool after the response."""

    __slots__ = ("_connection", "_exchanges", "content")

    #: The body of the response, after `read_head`.
    content: aiohttp.StreamReader

    def __init__(self, connection: Connection, exchanges: set[Exchange]) -> None:
        self._connection = connection
        self._exchanges = exchanges
        exchanges.add(self)

    async def write(self, request: memoryview, *, has_body: bool) -> None:
        """Write the request; `has_body` says whether its response may have one.

        Does not wait until the peer has read it, because the peer may respond before.
        """
        protocol, transport = self._connection.protocol, self._connection.transport
        if protocol is None or transport is None:
            raise aiohttp.ServerDisconnectedError
        # before the first byte: a part of the response may arrive during a long request
        protocol.set_response_params(skip_payload=not has_body, read_until_eof=True)
        transport.write(request[:_WRITE_AT_ONCE])
        for start in range(_WRITE_AT_ONCE, len(request), _WRITE_AT_ONCE):
            await asyncio.sleep(0)
            transport.write(request[start : start + _WRITE_AT_ONCE])

    async def read_head(self) -> RawResponseMessage:
        """Wait for the head of the response. Skips interim responses."""
        protocol = self._connection.protocol
        if protocol is None:
            raise aiohttp.ServerDisconnectedError
        head, self.content = await protocol.read()
        while head.code < 200 and head.code != 101:  # after 101, the connection no longer speaks HTTP/1.1
            head, self.content = await protocol.read()
        self.content.on_eof(self.release)
        return head

    def release(self) -> None:
        """Return the connection to the pool: after the response, or if nothing was written."""
        self._exchanges.discard(self)
        transport = self._connection.transport
        if transport is not None and unsent_bytes(transport):
            # the peer responded to a part of the request, and may never read the rest
            abort(transport)
            self._connection.close()
        self._connection.release()

    def abort(self) -> None:
        """Close the connection immediately: an orderly close would wait for a peer that may never read again."""
        if self._connection.protocol is None:
            return  # the connection has returned to the pool, and may now serve another request
        self._exchanges.discard(self)
        if (transport := self._connection.transport) is not None:
            abort(transport)
        self._connection.close()
        content = getattr(self, "content", None)
        if content is not None and content.exception() is None:
            # wakes the reader of the body
            content.set_exception(aiohttp.ClientConnectionError("the response was closed"))


def is_unused(connection: Connection) -> bool:
    """Whether the peer sent nothing since the last response: the next request would take it for its own."""
    return connection.protocol is not None and not connection.protocol.should_close


def make_connector(*, limit: int, keepalive: float, unix_socket: str | None) -> aiohttp.BaseConnector:
    """Make a pool of at most `limit` connections (0: unlimited); idle ones are kept for `keepalive` seconds."""
    if unix_socket is not None:
        return aiohttp.UnixConnector(unix_socket, limit=limit, keepalive_timeout=keepalive)
    return aiohttp.TCPConnector(limit=limit, keepalive_timeout=keepalive, socket_factory=_make_socket)


def _make_socket(address: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
    for name, value in zip(names, _PROBES, strict=True):
        # not every system has all of these
        if (option := getattr(socket, name, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
