"""The connections under the HTTP transport.

aiohttp resends idempotent requests, including PUT and DELETE, after a lost connection. For a write that is wrong: the
first may have happened. `keep_first_failure` ends the request with the first failure. If aiohttp still asks for a
second connection, it gets none.

Guarantees
- A request gets a connection once.
- `Exchange.sent` is false exactly as long as nothing of the request can have been written.
- `before_send` is called with the first byte ready to be written: aiohttp writes a body in its own task, and other
  tasks may run for any time between getting a connection and writing.
- A silently lost peer is noticed within about a minute, even on an idle connection.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

#: Seconds until the first probe of a silent connection, between probes, and how many may fail.
_PROBES = (30, 10, 3)


class Exchange:
    """State shared by a request's connection and its caller."""

    __slots__ = ("_holders", "before_send", "held", "refusal", "response", "sent", "transport")

    def __init__(self, before_send: Callable[[], None] | None) -> None:
        self.before_send = before_send
        self.sent = False
        #: Whether it has, or had, a connection.
        self.held = False
        #: The exception of `before_send`.
        self.refusal: BaseException | None = None
        self._holders: set[Exchange] | None = None
        self.transport: asyncio.Transport | None = None
        self.response: aiohttp.ClientResponse | None = None

    def hold(self, connection: Connection, holders: set[Exchange]) -> None:
        """Take a connection: from here on the server may see the request, unless `before_send` must allow it first."""
        self.held = True
        self.transport = connection.transport
        if self.before_send is None:
            self.sent = True
        elif connection.protocol is not None and self.transport is not None:
            gate: Any = _Gate(connection.protocol, self.transport, self)
            connection.protocol.transport = gate
        self._holders = holders
        holders.add(self)
        connection.add_callback(self._released)

    def ask(self) -> None:
        """Call `before_send` before the first byte."""
        assert self.before_send is not None
        try:
            self.before_send()
        except BaseException as refusal:
            self.refusal = refusal
            raise
        self.sent = True

    def _released(self) -> None:
        if self._holders is not None:
            self._holders.discard(self)

    def abort(self) -> None:
        """Close the connection immediately: an orderly close would wait for a peer that may never read again."""
        if self.transport is not None:
            self.transport.abort()
        if self.response is not None:
            # wakes the reader of the body
            self.response.close()


class _Gate:
    """Stands in for a connection's transport until the first byte of a request, and then calls `before_send`."""

    __slots__ = ("_exchange", "_protocol", "_transport")

    def __init__(self, protocol: Any, transport: asyncio.Transport, exchange: Exchange) -> None:
        self._protocol = protocol
        self._transport = transport
        self._exchange = exchange

    def write(self, data: bytes) -> None:
        """Write, if `before_send` allows it."""
        self._open()
        self._transport.write(data)

    def writelines(self, pieces: Iterable[bytes]) -> None:
        """Write, if `before_send` allows it."""
        self._open()
        self._transport.writelines(pieces)

    def _open(self) -> None:
        self._protocol.transport = self._transport
        self._exchange.ask()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


#: The exchange of the current task's request.
current_exchange: ContextVar[Exchange] = ContextVar("current_exchange")


class BrokenExchangeError(aiohttp.ClientConnectionError):
    """A failure after the request may have been sent, of a type for which aiohttp does not retry."""

    def __init__(self, failure: BaseException | None) -> None:
        super().__init__(failure)
        self.failure = failure


async def keep_first_failure(request: ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Session middleware: a request that fails on a connection is not sent again."""
    try:
        return await handler(request)
    except (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError):
        # no connection: nothing was sent, and aiohttp does not retry either
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as failure:
        raise BrokenExchangeError(failure) from None


class OnceMixin(aiohttp.BaseConnector):
    """Gives each request one connection, and tracks the exchanges that hold one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._held: set[Exchange] = set()

    def abort_held(self) -> None:
        """End every exchange that holds a connection: closing the pool alone would leave its readers waiting."""
        for exchange in tuple(self._held):
            exchange.abort()

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout) -> Connection:  # noqa: ASYNC109 - aiohttp's
        """Get a connection for the exchange of the current task, once."""
        exchange = current_exchange.get()
        if exchange.held:
            raise BrokenExchangeError(None)
        connection = await super().connect(req, traces, timeout)
        exchange.hold(connection, self._held)
        return connection


class TcpConnector(OnceMixin, aiohttp.TCPConnector):
    """Connections over TCP, with or without TLS."""


class UnixConnector(OnceMixin, aiohttp.UnixConnector):
    """Connections over a Unix socket."""


def make_connector(*, limit: int, keepalive: float, unix_socket: str | None) -> OnceMixin:
    """Make a pool of at most `limit` connections (0: unlimited); idle ones are kept for `keepalive` seconds."""
    if unix_socket is not None:
        return UnixConnector(unix_socket, limit=limit, keepalive_timeout=keepalive)
    return TcpConnector(limit=limit, keepalive_timeout=keepalive, socket_factory=_make_socket)


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
