"""A server on a port: serves the same kind of handler as `InProcessTransport`, over TCP or TLS.

Guarantees
- Heads and bodies of requests are bounded in size and time; requests beyond that are rejected before the handler.
- A response is produced no faster than its client reads. The handler is cancelled when its client disconnects or stops
  reading.
- The number of connections is bounded, including TLS handshakes. A connection over the limit ends a slow handshake,
  else the connection idle for longest, else one with a late body; if there is none, it is rejected. See `acceptor`.
- With ``privileged``, the last connections are reserved: other requests there get 429, and the connection ends.
- Long bodies are bounded in bytes together, and those of one sender have a share of that. See `body_memory`.
- A request whose end two programs could see in different places is rejected, as in kube-apiserver: one with a transfer
  encoding besides ``chunked``, or with any in HTTP/1.0. Nothing is read as a request after one that asks for an upgrade.
- Every request over a port has a peer, known or not: none can appear to come from within this process.
- A response that fails halfway ends the connection: it never looks complete.
- Closing lets responses in progress end, for a time, then cancels them. No task and no socket is left.
- By default it listens on the loopback interface only.
- Renewed certificates are used by the next connection, without a restart.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from steersman.aio import Closable
from steersman.transport.acceptor import SLOW, Acceptor, affordable
from steersman.transport.addresses import join_host_port
from steersman.transport.body_memory import BodyMemory, BodyMemoryFull
from steersman.transport.connection_ends import abort, unsent_bytes
from steersman.transport.peer import Peer, set_peer
from steersman.transport.protocol import Handler, ServerResponse
from steersman.transport.tls import ServerContexts, ServerTlsSource
from steersman.wire import HttpRequest, Pairs, parse_query

# Importing aiohttp takes a tenth of a second and 10 MB: `_load` does it.
if TYPE_CHECKING:
    from aiohttp import web

_log = logging.getLogger("steersman.transport")

#: The default limit for request bodies: slightly more than an API server accepts.
REQUEST_BODY_MAX = 4 * 1024 * 1024
_HEADER_MAX = 16 * 1024
_HEADERS_MAX = 100
#: Bodies up to this size are read before `before_body` is called.
_SMALL_BODY = 64 * 1024
#: How many connections are reserved at most.
_RESERVED_MAX = 64
#: Seconds that a client has for a TLS handshake.
_HANDSHAKE_TIMEOUT = 5.0
_HTTP_1_0, _HTTP_1_1 = (1, 0), (1, 1)


class HttpListener(Closable):
    """Serves a handler: ``async with HttpListener(handle, port=8080) as listener: ...``.

    Port 0 takes a free one; see `port` and `address`. All times are in seconds: ``grace`` is how long responses may
    take to end when the listener closes, ``read_timeout`` how long a client may take to send a body, ``idle_timeout``
    how long until the head of its next request, and ``stall_timeout`` how long it may read nothing of a response.

    ``before_body`` is called with a request before its long body is read. It returns a response to reject it, or the
    name of the sender, whose long bodies share a bound. By default the sender is the client's address.
    ``privileged`` returns whether a request may use a reserved connection.
    With ``on_demand``, the first connection loads the HTTP server: for a port to which often no client connects.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        tls: ServerTlsSource | None = None,
        max_body: int = REQUEST_BODY_MAX,
        read_timeout: float = 30.0,
        idle_timeout: float = 75.0,
        stall_timeout: float = 60.0,
        max_connections: int = 10_000,
        before_body: Callable[[HttpRequest], ServerResponse | str] | None = None,
        privileged: Callable[[HttpRequest], bool] | None = None,
        grace: float = 5.0,
        on_certificate_read: Callable[[bool], None] | None = None,
        on_demand: bool = False,
    ) -> None:
        self._handler = handler
        self._where = (host, port)
        self._contexts = ServerContexts(tls, on_read=on_certificate_read) if tls is not None else None
        self._max_body = max_body
        self._read_timeout = read_timeout
        self._idle_timeout = idle_timeout
        self._stall_timeout = stall_timeout
        self._max_connections = max_connections
        self._before_body = before_body
        self._privileged = privileged
        most = affordable(max_connections)
        reserved = 0 if privileged is None else max(1, min(_RESERVED_MAX, most // 16))
        #: How many connections there can be that are not reserved.
        self.capacity = max(1, most - reserved)
        self._body_memory = BodyMemory()
        self._grace = grace
        self._on_demand = on_demand
        #: None until it is loaded.
        self._http: web.Server | None = None
        self._acceptor: Acceptor | None = None
        #: The tasks that are responding, in the order they began, and their connections.
        self._answering: dict[asyncio.Task[Any], object] = {}
        #: The connections whose bodies are being read, oldest first, and since when.
        self._reading: dict[web.RequestHandler, float] = {}
        #: Connections with unsent bytes: how many, and since when that number is unchanged.
        self._unsent: dict[asyncio.Transport, tuple[int, float]] = {}
        self._looks: asyncio.TimerHandle | None = None
        self._closed = False

    async def start(self) -> None:
        """Start listening; `OSError` if the port is taken."""
        if self._acceptor is not None or self._closed:
            raise RuntimeError("this listener was started already; make a new one")
        host, port = self._where
        context = self._contexts.listening() if self._contexts is not None else None
        if not self._on_demand:
            _load()
        acceptor = Acceptor(
            self._protocol,
            established=self._established,
            end_idle=self._end_idle,
            limit=self._max_connections,
            context=context,
            handshake_timeout=_HANDSHAKE_TIMEOUT,
        )
        try:
            await acceptor.start(host, port)
        except OSError as error:
            why = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else error.strerror or error
            raise OSError(error.errno, f"cannot listen on {host} port {port}: {why}; choose another port") from None
        self._acceptor = acceptor
        self._look_for_stalled()

    @property
    def port(self) -> int:
        """The port it listens on."""
        port = self._acceptor.port if self._acceptor is not None else None
        if port is None:
            raise RuntimeError("the listener is not listening")
        return port

    @property
    def address(self) -> str:
        """Its address: ``http://127.0.0.1:8080``."""
        scheme = "http" if self._contexts is None else "https"
        return f"{scheme}://{join_host_port(self._where[0], self.port)}"

    async def close(self) -> None:
        """Stop accepting, let responses in progress end, and cancel those that take too long."""
        acceptor, self._closed = self._acceptor, True
        if acceptor is None:
            return
        self._acceptor = None
        if self._looks is not None:
            self._looks.cancel()
        acceptor.stop()
        try:
            if self._http is not None:
                await self._end_connections(self._http)
        finally:
            await acceptor.wait_stopped()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    def __repr__(self) -> str:
        return f"<HttpListener {self.address}>" if self._acceptor is not None else "<HttpListener, not listening>"

    # connections

    async def _protocol(self) -> asyncio.Protocol:
        """The protocol of a new connection."""
        if self._http is None and self._on_demand:
            # In a thread, because the event loop may be busy with other work.
            await asyncio.to_thread(_load)
        if self._http is None:
            self._http = self._server()
        return self._http()

    def _server(self) -> web.Server:
        from aiohttp import web  # noqa: PLC0415 - see above

        return web.Server(
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

    def _established(self) -> int:
        """How many connections are established, without those that are closing."""
        connections = self._http.connections if self._http is not None else []
        if len(connections) < self._max_connections // 2:
            return len(connections)
        return sum(connection.transport is not None for connection in connections)

    def _is_reserved(self, connection: web.RequestHandler) -> bool:
        """Whether a connection is one of the reserved: the first ones are not."""
        connections = self._http.connections if self._http is not None else []
        if len(connections) <= self.capacity:
            return False
        open_ = (each for each in connections if each.transport is not None)  # in the order they were made
        return connection not in islice(open_, self.capacity)

    async def _end_connections(self, http: web.Server) -> None:
        # idle connections end now, the others after their response
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
                # otherwise a client that does not read would delay the end
                if transport is not None:
                    abort(transport)

    def _end_idle(self) -> bool:
        """End the connection idle for longest, or one with a late body; returns whether there was one."""
        connections = self._http.connections if self._http is not None else []
        busy = set(map(id, self._answering.values()))
        for connection in connections:  # in the order they were made
            if id(connection) not in busy and _ended(connection):
                return True
        late = asyncio.get_running_loop().time() - SLOW
        return any(begun < late and _ended(each) for each, begun in list(self._reading.items()))

    def _look_for_stalled(self) -> None:
        """End connections whose clients have read nothing for too long; runs periodically."""
        loop = asyncio.get_running_loop()
        now, before, self._unsent = loop.time(), self._unsent, {}
        connections = self._http.connections if self._http is not None else []
        # a closing connection is no longer listed, but may never get rid of its bytes
        for transport in dict.fromkeys([*(connection.transport for connection in connections), *before]):
            waiting = unsent_bytes(transport) if transport is not None else 0
            if transport is None or not waiting:
                continue
            known, since = before.get(transport, (0, now))
            if known != waiting:
                since = now
            elif now - since >= self._stall_timeout:
                abort(transport)
                continue
            self._unsent[transport] = (waiting, since)
        self._looks = loop.call_later(self._stall_timeout / 4, self._look_for_stalled)

    # one request

    async def _answer(self, incoming: web.BaseRequest) -> web.StreamResponse:
        from steersman.transport.sent_responses import send_response  # noqa: PLC0415 - see above

        task = asyncio.current_task()
        assert task is not None
        self._answering[task] = incoming.protocol
        # each request has its own task, and so its own context
        set_peer(_peer_of(incoming))
        try:
            # The memory of a body is held until the response exists, which may be read slowly.
            async with AsyncExitStack() as held:
                request = await self._read(incoming, held)
                reply = await self._handle(request) if isinstance(request, HttpRequest) else request
                del request
            return await send_response(incoming, reply)
        finally:
            self._answering.pop(task, None)

    async def _read(self, incoming: web.BaseRequest, held: AsyncExitStack) -> HttpRequest | ServerResponse:
        """The whole request, or the response that rejects it; ``held`` gets the memory of its body."""
        path, _, query = _characters(incoming.raw_path).partition("?")
        refusal = self._refusal(incoming, path)
        if refusal is not None:
            return refusal
        request = HttpRequest(incoming.method, path, parse_query(query), _headers(incoming))
        if self._privileged is not None and self._is_reserved(incoming.protocol) and not self._privileged(request):
            return _refuse(429, "too many connections: the last ones are for administrators; try again later", _LATER)
        if not incoming.can_read_body:
            return request
        protocol = incoming.protocol
        self._reading[protocol] = asyncio.get_running_loop().time()
        try:
            whole = await self._read_body(incoming, request, held)
        finally:
            self._reading.pop(protocol, None)
        if isinstance(whole, ServerResponse):
            return whole
        return HttpRequest(request.method, path, request.query, request.headers, whole) if whole else request

    async def _read_body(
        self, incoming: web.BaseRequest, request: HttpRequest, held: AsyncExitStack
    ) -> bytes | ServerResponse:
        """The body of a request, or the response that rejects it."""
        size = incoming.content_length or self._max_body
        if size > _SMALL_BODY:
            sender = self._sender(incoming, request)
            if isinstance(sender, ServerResponse):
                return sender
            try:
                await held.enter_async_context(self._body_memory.taken(sender, size, within=self._read_timeout))
            except BodyMemoryFull:
                return _refuse(429, "this sender has too many long requests in progress; try again later", _LATER)
        if "Expect" in incoming.headers and incoming.version >= _HTTP_1_1 and incoming.transport is not None:
            incoming.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            async with asyncio.timeout(self._read_timeout):
                whole = await _read_bounded(incoming, self._max_body)
        except TimeoutError:
            return _refuse(408, f"the body of the request did not arrive within {self._read_timeout:g} s")
        return self._too_long() if whole is None else whole

    def _refusal(self, incoming: web.BaseRequest, path: str) -> ServerResponse | None:
        """The response that rejects a request by its head; None to accept it."""
        if not path.startswith("/") or incoming.method == "CONNECT":
            # a successful response to CONNECT would have no body, whatever its head says
            return _refuse(400, "the target of a request must be a path that starts with /; this is not a proxy")
        if incoming.version < _HTTP_1_0:
            return _refuse(400, "this HTTP version is not supported")
        if (refusal := _framing_refusal(incoming)) is not None:
            return refusal
        if incoming.headers.get("Expect", "100-continue").lower() != "100-continue":
            return _refuse(417, "only 100-continue can be expected")
        return self._too_long() if (incoming.content_length or 0) > self._max_body else None

    def _sender(self, incoming: web.BaseRequest, request: HttpRequest) -> ServerResponse | str:
        """The sender of a request with a long body, or the response that rejects it."""
        if self._before_body is None:
            return _peer_of(incoming).host
        reply = self._before_body(request)
        if isinstance(reply, ServerResponse):
            reply.headers = (*reply.headers, ("Connection", "close"))
        return reply

    async def _handle(self, request: HttpRequest) -> ServerResponse:
        try:
            return await self._handler(request)
        except Exception:  # noqa: BLE001 - a failure of the handler is a response, not the end of the server
            _log.exception("the handler of %s %s failed", request.method, request.path)
            return ServerResponse(status=500, headers=_TEXT, body=b"internal server error; see the log\n")

    def _too_long(self) -> ServerResponse:
        return _refuse(413, f"the body of a request must not exceed {self._max_body} bytes")


_TEXT = (("Content-Type", "text/plain; charset=utf-8"),)
#: The characters that Go allows in a Host header.
_HOST = re.compile(r"[A-Za-z0-9!$%&'()*+,\-.:;=\[\]_~]*")
_LATER = (("Retry-After", "1"),)


def _refuse(status: int, words: str, more: Pairs = ()) -> ServerResponse:
    """A rejection that closes the connection: the rest of the request would be read as the next one."""
    return ServerResponse(status=status, headers=(*_TEXT, *more, ("Connection", "close")), body=f"{words}\n".encode())


def _load() -> None:
    """Import what answers requests."""
    import_module("steersman.transport.sent_responses")


def _framing_refusal(incoming: web.BaseRequest) -> ServerResponse | None:
    """The response to a request that another program could read differently; None to accept it."""
    encodings = incoming.headers.getall("Transfer-Encoding", ())
    if encodings and incoming.version < _HTTP_1_1:
        return _refuse(400, "a body in HTTP/1.0 needs a Content-Length; it has no transfer encodings")
    if encodings and [encoding.lower() for encoding in encodings] != ["chunked"]:
        return _refuse(501, "the only transfer encoding is chunked")
    return None if _HOST.fullmatch(incoming.headers.get("Host", "")) else _refuse(400, "malformed Host header")


def _ended(connection: web.RequestHandler) -> bool:
    """End a connection; returns whether it was still open."""
    transport = connection.transport
    if transport is None:
        return False
    connection.force_close()
    # a TLS connection would wait for the other end
    abort(transport)
    return True


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
    """The text with invalid bytes replaced: code behind the listener cannot encode surrogates."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _headers(incoming: web.BaseRequest) -> Pairs:
    return tuple([(name, _characters(value)) for name, value in incoming.headers.items()])


def _peer_of(incoming: web.BaseRequest) -> Peer:
    transport = incoming.transport
    name = transport.get_extra_info("peername") if transport is not None else None
    if transport is None or not isinstance(name, tuple):  # the peer is already disconnected
        return Peer(host="", port=0)
    tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    certificate = tls.getpeercert(binary_form=True) if tls is not None else None
    host, port = str(name[0]), int(name[1])  # pyright: ignore[reportUnknownArgumentType] - untyped in asyncio
    return Peer(host=host, port=port, certificate=certificate or b"")


class _UnreadableRequests(logging.Logger):
    """Receives the HTTP parser's complaints at debug level: clients that send garbage must not fill the log."""

    def exception(self, msg: object, *args: object, **_: Any) -> None:
        _log.debug(msg, *args)

    def debug(self, msg: object, *args: object, **_: Any) -> None:
        """Drop it: it is about connections, not about the server."""
