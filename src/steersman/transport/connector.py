"""The connections under the HTTP transport.

aiohttp sends idempotent requests again after a lost connection, PUT and DELETE among them. For a write that is one too
many: the first may have happened. `keep_first_failure` ends the request with the first failure, and should aiohttp come
for a second connection all the same, it gets none.

Guarantees
- A request gets a connection once.
- `Exchange.sent` is false exactly as long as nothing of the request can have been written.
- Whoever wants to be asked before a request is sent is asked with its first byte in hand: aiohttp writes a body in a task
  of its own, and others may run, for as long as they like, between getting a connection and that.
- A peer that vanished without a word is noticed within about a minute, also on a connection where nobody writes.
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

#: Seconds until the first probe of a silent connection, between probes, and how many may stay unanswered.
_PROBES = (30, 10, 3)


class Exchange:
    """What a request's connection and its caller have to tell each other."""

    __slots__ = ("_holders", "before_send", "held", "refusal", "response", "sent", "transport")

    def __init__(self, before_send: Callable[[], None] | None) -> None:
        self.before_send = before_send
        self.sent = False
        #: Whether it has, or had, a connection.
        self.held = False
        #: What `before_send` raised.
        self.refusal: BaseException | None = None
        self._holders: set[Exchange] | None = None
        self.transport: asyncio.Transport | None = None
        self.response: aiohttp.ClientResponse | None = None

    def hold(self, connection: Connection, holders: set[Exchange]) -> None:
        """Take a connection: from here on the server may see the request, unless somebody is to be asked first."""
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
        """Ask whether the first byte may be written."""
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
        """Close the connection now: a polite close would first wait for a peer that may never read again."""
        if self.transport is not None:
            self.transport.abort()
        if self.response is not None:
            # wakes whoever reads the body
            self.response.close()


class _Gate:
    """Stands before a connection until the first byte of a request comes by, and asks then whether it may pass."""

    __slots__ = ("_exchange", "_protocol", "_transport")

    def __init__(self, protocol: Any, transport: asyncio.Transport, exchange: Exchange) -> None:
        self._protocol = protocol
        self._transport = transport
        self._exchange = exchange

    def write(self, data: bytes) -> None:
        """Write if it may be."""
        self._open()
        self._transport.write(data)

    def writelines(self, pieces: Iterable[bytes]) -> None:
        """Write if it may be."""
        self._open()
        self._transport.writelines(pieces)

    def _open(self) -> None:
        self._protocol.transport = self._transport
        self._exchange.ask()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


#: The exchange of the request that the current task sends.
current_exchange: ContextVar[Exchange] = ContextVar("current_exchange")


class BrokenExchangeError(aiohttp.ClientConnectionError):
    """A failure after the request may have been sent, of a type that aiohttp does not answer with a second attempt."""

    def __init__(self, failure: BaseException | None) -> None:
        super().__init__(failure)
        self.failure = failure


async def keep_first_failure(request: ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Middleware of a session: a request that fails on a connection is not sent again."""
    try:
        return await handler(request)
    except (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError):
        # no connection: nothing was sent, and aiohttp does not try again either
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as failure:
        raise BrokenExchangeError(failure) from None


class OnceMixin(aiohttp.BaseConnector):
    """Gives each request one connection, and knows who holds one."""

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
    """Make a pool of at most `limit` connections, 0 for any number; idle ones are kept `keepalive` seconds."""
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
        # not every system has all of them
        if (option := getattr(socket, name, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
