"""A server on a port: the handler that `InProcessTransport` takes, reached over TCP or TLS.

Guarantees
- Heads and bodies of requests have bounds, in size and in time; what is beyond them is answered and never handed on.
- An answer is pulled no faster than its client reads. A client that goes away cancels the handler; so does one that
  reads nothing for a time.
- There are never more connections than allowed: one too many ends the one that has been idle for longest, and is itself
  turned away where none is idle.
- Whatever comes over a port has a peer, known or not: no request can look as if it came from within this process.
- An answer that fails in the middle ends the connection: it never looks complete.
- Closing lets answers under way end, for a time; then it cancels them. No task is left, and no socket but one in the
  middle of a TLS handshake, for at most thirty seconds (from Python 3.13 on, none).
- Other machines reach it only if that was asked for: it listens on the loopback interface unless told otherwise.
- Renewed certificates are used by the next connection, without a restart.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import ssl
from collections.abc import AsyncIterable, Callable
from contextvars import ContextVar
from functools import lru_cache
from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp import HttpVersion10, HttpVersion11, web

from steersman.transport.protocol import Handler, Push, Pushing, ServerResponse
from steersman.transport.tls import ServerContexts, ServerTls
from steersman.wire import Pairs, Request, parse_query

_log = logging.getLogger("steersman.transport")

#: The longest body of a request, unless the listener is told otherwise: what an API server takes, and some.
REQUEST_BODY_MAX = 4 * 1024 * 1024
_HEADER_MAX = 16 * 1024
_HEADERS_MAX = 100
_PIECE_MAX = 64 * 1024
#: A body of at most so many bytes is read before anybody is asked whether its sender may send one.
_SMALL_BODY = 64 * 1024
#: Files that are kept for other things than connections.
_FILES_ASIDE = 64

# How an answer is framed is our business, not the handler's.
_FRAMING = frozenset({"content-length", "transfer-encoding", "connection", "keep-alive"})


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """Who is at the other end of a connection."""

    host: str
    port: int
    #: The certificate that it showed and that was verified, as DER; empty if it showed none.
    certificate: bytes = b""

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine, or in this Pod."""
        try:
            address = ipaddress.ip_address(self.host.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return (mapped or address).is_loopback


_peer: ContextVar[Peer | None] = ContextVar("steersman_peer", default=None)


def current_peer() -> Peer | None:
    """Who sent the request that is being handled; None if it did not come over a listener."""
    return _peer.get()


class Listener:
    """Serves a handler: ``async with Listener(handle, port=8080) as listener: ...``.

    Port 0 takes a free one; `port` and `address` tell which. ``grace`` is how many seconds answers under way have to
    end when the listener closes, ``read_timeout`` how many a client has to send a body (and for TLS to begin, if that is
    more than five), ``idle_timeout`` how many it has to send the head of its next request, and ``stall_timeout`` how many
    it may read nothing of an answer.
    ``before_body`` sees a request before a long body of it is read, and may answer it right then.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        tls: ServerTls | None = None,
        max_body: int = REQUEST_BODY_MAX,
        read_timeout: float = 30.0,
        idle_timeout: float = 75.0,
        stall_timeout: float = 60.0,
        max_connections: int = 10_000,
        before_body: Callable[[Request], ServerResponse | None] | None = None,
        grace: float = 5.0,
        on_certificate_read: Callable[[bool], None] | None = None,
    ) -> None:
        self._handler = handler
        self._where = (host, port)
        self._contexts = ServerContexts(tls, on_read=on_certificate_read) if tls is not None else None
        self._max_body = max_body
        self._read_timeout = read_timeout
        self._idle_timeout = idle_timeout
        self._stall_timeout = stall_timeout
        self._max_connections = _affordable(max_connections)
        self._before_body = before_body
        self._grace = grace
        self._http: web.Server | None = None
        self._server: asyncio.Server | None = None
        #: The tasks that answer now, in the order in which they began, and the connections that they answer.
        self._answering: dict[asyncio.Task[Any], object] = {}
        #: Connections with bytes that were not taken yet: how many, and since when there are just so many.
        self._unsent: dict[asyncio.Transport, tuple[int, float]] = {}
        self._looks: asyncio.TimerHandle | None = None
        self._closed = False

    async def start(self) -> None:
        """Begin to listen; `OSError` if the port is taken."""
        if self._server is not None or self._closed:
            raise RuntimeError("a listener is used once: make a new one")
        host, port = self._where
        context = self._contexts.listening() if self._contexts is not None else None
        self._http = web.Server(
            self._answer,
            handler_cancellation=True,
            access_log=None,
            logger=_UnreadableRequests("steersman.transport.unreadable"),
            keepalive_timeout=self._idle_timeout,
            max_line_size=_HEADER_MAX,
            max_field_size=_HEADER_MAX,
            max_headers=_HEADERS_MAX,
            auto_decompress=False,
            lingering_time=1.0,
        )
        try:
            self._server = await asyncio.get_running_loop().create_server(
                self._accept,
                host,
                port,
                ssl=context,
                # hundreds may come at once, and wait for a loop that is busy with the others
                backlog=1024,
                ssl_handshake_timeout=max(5.0, self._read_timeout) if context is not None else None,
                ssl_shutdown_timeout=1.0 if context is not None else None,
            )
        except OSError as error:
            # asyncio's own words repeat the address.
            why = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else error.strerror or error
            raise OSError(error.errno, f"cannot listen on {host} port {port}: {why}; choose another port") from None
        self._look_for_stalled()

    @property
    def port(self) -> int:
        """The port it listens on."""
        if self._server is None or not self._server.sockets:
            raise RuntimeError("the listener does not listen")
        return self._server.sockets[0].getsockname()[1]

    @property
    def address(self) -> str:
        """Where it is found: ``http://127.0.0.1:8080``."""
        host = self._where[0]
        shown = f"[{host}]" if ":" in host else host
        return f"{'http' if self._contexts is None else 'https'}://{shown}:{self.port}"

    async def close(self) -> None:
        """Accept nothing more, let answers under way end, and cancel those that take too long."""
        server, http, self._closed = self._server, self._http, True
        if server is None or http is None:
            return
        self._server = None
        if self._looks is not None:
            self._looks.cancel()
        server.close()
        # idle connections end now, the others after their answer
        http.pre_shutdown()
        try:
            if self._answering:
                await asyncio.wait(list(self._answering), timeout=self._grace)
        finally:
            for task in reversed(self._answering):
                task.cancel()
            transports = [connection.transport for connection in http.connections] + list(self._unsent)
            await http.shutdown(0.5)
            for transport in transports:
                # one whose client does not read would wait for it
                if transport is not None:
                    transport.abort()
            # who never finished a handshake is known to the loop alone, which ends it by its own time-out
            if (abort_clients := getattr(server, "abort_clients", None)) is not None:
                abort_clients()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await server.wait_closed()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Listener {self.address}>" if self._server is not None else "<Listener, not listening>"

    # connections

    def _accept(self) -> asyncio.Protocol:
        """The protocol of a new connection."""
        http = self._http
        assert http is not None
        connections = http.connections
        if len(connections) >= self._max_connections:
            busy = set(map(id, self._answering.values()))
            # they are in the order in which they were made
            idle = next((each for each in connections if id(each) not in busy and each.transport is not None), None)
            if idle is None:
                return _TurnedAway()
            idle.force_close()
        return http()

    def _look_for_stalled(self) -> None:
        """End connections whose clients have read nothing for too long; looked at from time to time, as that is free."""
        loop = asyncio.get_running_loop()
        now, before, self._unsent = loop.time(), self._unsent, {}
        connections = self._http.connections if self._http is not None else []
        # one that is being closed is no longer among the connections, but it may never get rid of its bytes
        for transport in dict.fromkeys([*(each.transport for each in connections), *before]):
            waiting = transport.get_write_buffer_size() if transport is not None else 0
            if transport is None or not waiting:
                continue
            known, since = before.get(transport, (0, now))
            if known != waiting:
                since = now
            elif now - since >= self._stall_timeout:
                transport.abort()
                continue
            self._unsent[transport] = (waiting, since)
        self._looks = loop.call_later(self._stall_timeout / 4, self._look_for_stalled)

    # one request

    async def _answer(self, incoming: web.BaseRequest) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._answering[task] = incoming.protocol
        # a request has a task of its own, and so has its context
        _peer.set(_peer_of(incoming))
        try:
            request = await self._read(incoming)
            reply = await self._handle(request) if isinstance(request, Request) else request
            return await _send(incoming, reply)
        finally:
            self._answering.pop(task, None)

    async def _read(self, incoming: web.BaseRequest) -> Request | ServerResponse:
        """The whole request, or the answer to one that cannot be had."""
        path, _, query = _characters(incoming.raw_path).partition("?")
        refusal = self._refusal(incoming, path)
        if refusal is not None:
            return refusal
        request = Request(incoming.method, path, parse_query(query), _headers(incoming))
        if incoming.can_read_body:
            refusal = self._refusal_of_body(incoming, request)
            if refusal is not None:
                return refusal
            if "Expect" in incoming.headers and incoming.transport is not None:
                incoming.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            try:
                async with asyncio.timeout(self._read_timeout):
                    whole = await _read_bounded(incoming, self._max_body)
            except TimeoutError:
                return _refuse(408, f"the body of the request did not come within {self._read_timeout:g} s")
            if whole is None:
                return self._too_long()
            if whole:
                return Request(request.method, path, request.query, request.headers, whole)
        return request

    def _refusal(self, incoming: web.BaseRequest, path: str) -> ServerResponse | None:
        """The answer to a head that is not to be handed on."""
        if not path.startswith("/") or incoming.method == "CONNECT":
            # a good answer to CONNECT would have no body, whatever its head says
            return _refuse(400, "the target of a request is a path, which begins with /, and this is no proxy")
        if incoming.version < HttpVersion10:
            return _refuse(400, "this is no version of HTTP that is spoken here")
        if incoming.headers.get("Expect", "100-continue").lower() != "100-continue":
            return _refuse(417, "nothing can be expected but 100-continue")
        return self._too_long() if (incoming.content_length or 0) > self._max_body else None

    def _refusal_of_body(self, incoming: web.BaseRequest, request: Request) -> ServerResponse | None:
        """The answer to a request whose long body is not to be read."""
        if self._before_body is None or (incoming.content_length or REQUEST_BODY_MAX) <= _SMALL_BODY:
            return None
        reply = self._before_body(request)
        if reply is not None:
            reply.headers = (*reply.headers, ("Connection", "close"))
        return reply

    async def _handle(self, request: Request) -> ServerResponse:
        try:
            return await self._handler(request)
        except Exception:  # noqa: BLE001 - a failure of the handler is an answer, not the end of the server
            _log.exception("the handler of %s %s failed", request.method, request.path)
            return ServerResponse(status=500, headers=_TEXT, body=b"internal server error; the log says more\n")

    def _too_long(self) -> ServerResponse:
        return _refuse(413, f"the body of a request has at most {self._max_body} bytes here")


_TEXT = (("Content-Type", "text/plain; charset=utf-8"),)


def _refuse(status: int, words: str) -> ServerResponse:
    """What is left of the request would be read as the next one: the connection ends."""
    return ServerResponse(status=status, headers=(*_TEXT, ("Connection", "close")), body=f"{words}\n".encode())


async def _read_bounded(incoming: web.BaseRequest, limit: int) -> bytes | None:
    pieces: list[bytes] = []
    size = 0
    while piece := await incoming.content.readany():
        size += len(piece)
        if size > limit:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _characters(text: str) -> str:
    """What was sent, with bytes that are no characters replaced: nothing behind us can be asked to encode halves."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _headers(incoming: web.BaseRequest) -> Pairs:
    return tuple([(name, _characters(value)) for name, value in incoming.headers.items()])


def _affordable(connections: int) -> int:
    """How many of so many connections the system lets this process have."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return connections
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return connections if files == resource.RLIM_INFINITY else max(1, min(connections, files - _FILES_ASIDE))


class _TurnedAway(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


def _peer_of(incoming: web.BaseRequest) -> Peer:
    transport = incoming.transport
    name = transport.get_extra_info("peername") if transport is not None else None
    if transport is None or not isinstance(name, tuple):
        # it is gone already; somebody it was
        return Peer(host="", port=0)
    tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    certificate = tls.getpeercert(binary_form=True) if tls is not None else None
    host, port = str(name[0]), int(name[1])  # pyright: ignore[reportUnknownArgumentType] - untyped in asyncio
    return Peer(host=host, port=port, certificate=certificate or b"")


async def _send(incoming: web.BaseRequest, reply: ServerResponse) -> web.StreamResponse:
    body = reply.body
    # a short answer goes out together with its head
    is_short = isinstance(body, bytes) and len(body) <= _PIECE_MAX
    outgoing = web.Response(status=reply.status, body=body) if is_short else web.StreamResponse(status=reply.status)
    closes = _add_headers(outgoing, reply.headers)
    # what follows a CONNECT is no request, and must not be read as one
    if closes or incoming.method == "CONNECT":
        outgoing.force_close()
    if isinstance(body, bytes) and not is_short:
        outgoing.content_length = len(body)
    whole = False
    pieces = body if isinstance(body, bytes) else aiter(body)
    try:
        await outgoing.prepare(incoming)
        if incoming.method != "HEAD" and not is_short:
            if isinstance(body, Pushing) and incoming.version >= HttpVersion11:
                body.push_to(_pusher(incoming))
            await _send_body(outgoing, pieces)
        await outgoing.write_eof()
        whole = True
    except ConnectionError:
        pass  # the client went away
    except Exception:  # noqa: BLE001 - whatever fails in the middle of an answer must not look like its end
        _log.exception("the answer to %s %s failed in the middle", incoming.method, incoming.path)
    finally:
        if (finish := getattr(pieces, "aclose", None)) is not None:
            # an iterator that is left early keeps what it holds until it is told
            await finish()
        if not whole and incoming.transport is not None:
            incoming.transport.abort()
    return outgoing


def _add_headers(outgoing: web.StreamResponse, headers: Pairs) -> bool:
    """Add the handler's headers; whether it asked to close the connection."""
    closes = False
    for name, value in headers:
        lower = name.lower()
        if lower not in _FRAMING:
            outgoing.headers.add(name, value)
        closes = closes or (lower == "connection" and value.lower() == "close")
    outgoing.headers.setdefault("Server", "steersman")
    return closes


async def _send_body(outgoing: web.StreamResponse, body: bytes | AsyncIterable[bytes]) -> None:
    if isinstance(body, bytes):
        view = memoryview(body)
        for start in range(0, len(body), _PIECE_MAX):
            await outgoing.write(view[start : start + _PIECE_MAX])
        return
    async for piece in body:
        await outgoing.write(piece)


def _pusher(incoming: web.BaseRequest) -> Push:
    """How pieces of a chunked answer are sent past the task that sends the others, which waits meanwhile."""
    protocol, transport = incoming.protocol, incoming.transport

    def push(piece: bytes) -> bool:
        if transport is None or protocol.writing_paused or transport.is_closing():
            return False
        transport.write(_chunk(piece))
        return True

    return push


@lru_cache(maxsize=1)
def _chunk(piece: bytes) -> bytes:
    """A piece as it stands in a chunked body; the same one often goes to many clients."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)


class _UnreadableRequests(logging.Logger):
    """Where the HTTP parser's complaints go: whoever can reach a port can send rubbish, and must not fill our log."""

    def exception(self, msg: object, *args: object, **_: Any) -> None:
        _log.debug(msg, *args)

    def debug(self, msg: object, *args: object, **_: Any) -> None:
        """Say nothing: it is about connections, not about us."""
