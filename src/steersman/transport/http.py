"""HTTP over TCP and TLS, with aiohttp and without its pitfalls.

Guarantees, in addition to those of every transport
- Requests and streams have separate connections: watches never take connections from requests.
- Nothing is sent twice, redirects are not followed, and cookies are not kept.
- Certificates are those on disk at the time of the request.
- The environment's proxy is used as kubectl uses it. An explicit proxy wins; an empty string means none.
"""

from __future__ import annotations

import asyncio
import copy
import os
import re
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Self

import aiohttp
from multidict import CIMultiDictProxy
from yarl import URL

from steersman.aio import Closable
from steersman.errors import ApiError, ConfigError, ConnectionFailed, DeadlineExceeded, ProtocolError
from steersman.transport.connector import Exchange, is_unused, make_connector
from steersman.transport.failures import explain
from steersman.transport.protocol import DEFAULT_TIMEOUT, MAX_BODY
from steersman.transport.proxies import proxy_from_environment, split_proxy
from steersman.transport.request_gate import pass_gates
from steersman.transport.tls import TlsContexts, TlsMaterial
from steersman.wire import HttpRequest, describe_request

if TYPE_CHECKING:
    from aiohttp.connector import Connection
    from aiohttp.http import RawResponseMessage

# the characters allowed in a request line: no space, no control character, no fragment
_TARGET = re.compile(r"/[!\"$-~]*")

# a valid name of a header (RFC 9110)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

# methods whose requests have no Content-Length if they have no body
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS"})

# the length of a body is that of the body
_FRAMING = frozenset({"content-length", "transfer-encoding"})

_FAILURES = (aiohttp.ClientError, asyncio.TimeoutError, OSError, aiohttp.http.HttpProcessingError)


class HttpTransport(Closable):
    """A transport to one API server: `HttpTransport("https://10.0.0.1:6443", tls=TlsMaterial(ca_file="ca.crt"))`."""

    def __init__(
        self,
        server: str,
        *,
        tls: TlsMaterial | None = None,
        proxy: str | None = None,
        unix_socket: str | None = None,
        compression: bool = False,
        max_connections: int = 64,
        timeout: float = DEFAULT_TIMEOUT,
        connect_timeout: float = 15.0,
    ) -> None:
        self._url = _checked(server)
        self._prefix = self._url.raw_path.rstrip("/")
        # the server's name in errors
        self._name = str(self._url.origin())
        tls = tls or TlsMaterial()
        self._server_name = tls.server_name
        self._contexts = TlsContexts(tls) if self._url.scheme == "https" else None
        if proxy is None and unix_socket is None:
            proxy = proxy_from_environment(self._name, os.environ)
        self._proxy, self._proxy_headers = split_proxy(proxy) if proxy else (None, {})
        self._unix_socket = unix_socket
        self._headers = _default_headers(self._url, compression=compression)
        if self._proxy is not None and self._contexts is None:
            # without TLS there is no tunnel: the proxy itself reads and forwards the request
            self._prefix = self._name + self._prefix
            self._headers |= self._proxy_headers
        self._max_connections = max_connections
        self._timeout = timeout
        # "connect" would include the wait for a free connection in the pool, which says nothing about the server
        self._connecting = aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout)
        self._requests: aiohttp.BaseConnector | None = None
        self._streams: aiohttp.BaseConnector | None = None
        self._exchanges: set[Exchange] = set()
        #: The deadlines of the requests that wait for a connection.
        self._connects: set[asyncio.Timeout] = set()
        self._route: aiohttp.ClientRequest | None = None
        self._closed = False

    async def send(
        self,
        request: HttpRequest,
        *,
        stream: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport
        before_send: Callable[[], None] | None = None,
    ) -> HttpResponse:
        """Send a request and wait for the head of its response; see `Transport.send`."""
        pass_gates(request)
        target = request.target
        if not _TARGET.fullmatch(target):
            raise ValueError(f"{target[:200]!r} is not a valid request target: percent-encode it")
        if timeout is None:
            timeout = self._timeout
        exchange: Exchange | None = None
        refusal: BaseException | None = None
        sent = False
        try:
            async with asyncio.timeout(timeout) as limit:
                self._connects.add(limit)
                try:
                    connection = await self._connect(self._pool(request, stream=stream))
                finally:
                    self._connects.discard(limit)
                exchange = Exchange(connection, self._exchanges)
                if before_send is not None:
                    try:
                        before_send()
                    except BaseException as error:
                        refusal = error
                        raise
                sent = True
                await exchange.write(memoryview(self._printed(request, target)), has_body=request.method != "HEAD")
                head = await exchange.read_head()
            return HttpResponse(head, exchange, request, self, deadline=None if stream else limit.when())
        except _FAILURES as error:
            _end(exchange, sent=sent)
            failure = refusal or self._explain(error, request, sent=sent)
        except asyncio.CancelledError:
            _end(exchange, sent=sent)
            # closing the pool cancels tasks that wait for a connection, without them being cancelled by anyone else
            task = asyncio.current_task()
            if self._closed and task is not None and not task.cancelling():
                raise self._gone(request, sent=sent) from None
            raise
        except BaseException:
            _end(exchange, sent=sent)
            raise
        # raised outside of the handler: the handled error shows the headers of the request
        raise failure

    async def close(self) -> None:
        """Close every connection; exchanges in progress fail."""
        self._closed = True
        pools, self._requests, self._streams = (self._requests, self._streams), None, None
        # closing the pool alone would leave readers waiting, and attempts to connect
        moment = asyncio.get_running_loop().time()
        for limit in tuple(self._connects):
            if not limit.expired():
                limit.reschedule(moment)
        for exchange in tuple(self._exchanges):
            exchange.abort()
        # a lost connection propagates through TLS and HTTP to the request: one turn of the loop each
        for _ in range(3):
            await asyncio.sleep(0)
        for pool in pools:
            if pool is not None:
                await pool.close()

    def separate(self) -> Self:
        """Return a transport to the same server with its own connections; see `Separable`."""
        other = copy.copy(self)
        other._requests = other._streams = other._route = None  # noqa: SLF001 - it is ourselves
        other._exchanges = set()  # noqa: SLF001
        other._connects = set()  # noqa: SLF001
        other._closed = False  # noqa: SLF001
        return other

    def __repr__(self) -> str:
        return f"<HttpTransport {self._name}>"

    def _pool(self, request: HttpRequest, *, stream: bool) -> aiohttp.BaseConnector:
        pool = self._streams if stream else self._requests
        if pool is not None:
            return pool
        if self._closed:
            raise self._gone(request, sent=False)
        limit = 0 if stream else self._max_connections
        pool = make_connector(limit=limit, keepalive=60.0, unix_socket=self._unix_socket)
        if stream:
            self._streams = pool
        else:
            self._requests = pool
        return pool

    async def _connect(self, pool: aiohttp.BaseConnector) -> Connection:
        context = self._contexts.current() if self._contexts is not None else True
        route = self._route
        if route is None or route.ssl is not context:
            route = aiohttp.ClientRequest(
                "GET",
                self._url,
                loop=asyncio.get_running_loop(),
                ssl=context,
                server_hostname=self._server_name,
                proxy=URL(self._proxy) if self._proxy is not None else None,
                # aiohttp adds this Host itself; without it here, it would not find its own connections in the pool
                proxy_headers={**self._proxy_headers, "Host": self._headers["Host"]},
            )
            self._route = route
        try:
            for _ in range(self._max_connections + 1):
                connection = await pool.connect(route, [], self._connecting)
                if is_unused(connection):
                    return connection
                connection.close()
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError from error
        raise aiohttp.ClientConnectionError("the server sends data that no request asked for")

    def _printed(self, request: HttpRequest, target: str) -> bytes:
        """The bytes of a request. A separate method, because a traceback with locals would print them in `send`."""
        given = {name.lower() for name, _ in request.headers}
        lines = [f"{request.method} {self._prefix}{target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in self._headers.items() if name.lower() not in given]
        lines += [f"{name}: {value}" for name, value in request.headers]
        body = request.body or b""
        if body or request.method not in _BODILESS:
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join(lines)
        ends = len(lines) - 1
        if (
            head.count("\r") != ends
            or head.count("\n") != ends
            or "\0" in head
            or not all(map(_TOKEN.fullmatch, (request.method, *given)))
            or given & _FRAMING
        ):
            # the message does not contain the value, which may be secret
            raise ValueError(
                f"{describe_request(request)}: a header has an invalid name, has a line break in its value, or sets the length"
            )
        return b"%b\r\n\r\n%b" % (head.encode(), body)

    def _gone(self, request: HttpRequest, *, sent: bool) -> ConnectionFailed:
        return ConnectionFailed(f"{describe_request(request)}: the transport to {self._name} is closed", sent=sent)

    def _explain(self, error: BaseException, request: HttpRequest, *, sent: bool) -> ApiError:
        if self._closed and not (sent and isinstance(error, asyncio.TimeoutError)):
            return self._gone(request, sent=sent)
        return explain(error, tried=describe_request(request), server=self._name, sent=sent)


def _default_headers(server: URL, *, compression: bool) -> dict[str, str]:
    """The headers that every request gets unless it sets them itself."""
    host = server.host_port_subcomponent or ""
    return {"Host": host, "Accept-Encoding": "gzip" if compression else "identity", "User-Agent": "steersman"}


def _end(exchange: Exchange | None, *, sent: bool) -> None:
    """End a failed exchange. If nothing was written, its connection can serve another request."""
    if exchange is not None:
        (exchange.abort if sent else exchange.release)()


class HttpResponse(Closable):
    """A response over HTTP; see `Response`."""

    __slots__ = ("_deadline", "_exchange", "_request", "_transport", "headers", "status")

    def __init__(
        self,
        head: RawResponseMessage,
        exchange: Exchange,
        request: HttpRequest,
        transport: HttpTransport,
        *,
        deadline: float | None,
    ) -> None:
        self._exchange = exchange
        self._request = request
        self._transport = transport
        self._deadline = deadline
        self.status: int = head.code
        self.headers: CIMultiDictProxy[str] = head.headers

    async def read(self, limit: int = MAX_BODY) -> bytes:
        """Read the whole body; raise ProtocolError if it is longer than `limit` bytes."""
        content = self._exchange.content
        try:
            if content.is_eof():
                # The whole body has arrived, as that of most responses: there is nothing to wait for.
                body = content.read_nowait()
                if len(body) <= limit:
                    return body
            elif int(self.headers.get("Content-Length", 0)) <= limit:
                async with asyncio.timeout_at(self._deadline):
                    body = await self._read_bounded(limit)
                if body is not None:
                    return body
        except _FAILURES as error:
            failure = self._explain(error)
        except BaseException:
            self._exchange.abort()
            raise
        else:
            failure = ProtocolError(
                f"{describe_request(self._request)}: the response is longer than {limit} bytes; request less at a time"
            )
        self._exchange.abort()
        # raised outside of the handler: the handled error shows the headers of the request
        raise failure

    async def _read_bounded(self, limit: int) -> bytes | None:
        pieces: list[bytes] = []
        size = 0
        content = self._exchange.content
        while piece := await content.readany():
            size += len(piece)
            if size > limit:
                return None
            pieces.append(piece)
        return b"".join(pieces)

    def chunks(self, *, idle_timeout: float | None = None) -> AsyncIterator[bytes]:
        """Read the body as it arrives; see `Response.chunks`."""
        return _Chunks(self, idle_timeout)

    async def close(self) -> None:
        """End the exchange; if the response was not read to its end, its connection is closed immediately."""
        self._exchange.abort()

    def _explain(self, error: BaseException) -> ApiError:
        return self._transport._explain(error, self._request, sent=True)  # noqa: SLF001 - the two are one thing

    def __repr__(self) -> str:
        return f"<HttpResponse {self.status} to {self._request.method} {self._request.path}>"


class _Chunks:
    """The body of a response, piece by piece. One timer covers all waits: one timer per piece would cost more."""

    __slots__ = ("_exchange", "_expired", "_idle_timeout", "_loop", "_response", "_timer", "_waiting_since")

    def __init__(self, response: HttpResponse, idle_timeout: float | None) -> None:
        self._response = response
        self._exchange = response._exchange  # noqa: SLF001 - the two are one thing
        self._idle_timeout = idle_timeout
        self._loop = asyncio.get_running_loop()
        self._waiting_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._expired = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._idle_timeout is not None:
            self._waiting_since = self._loop.time()
            if self._timer is None:
                self._timer = self._loop.call_at(self._waiting_since + self._idle_timeout, self._check)
        try:
            piece = await self._next()
        except (*_FAILURES, RuntimeError) as error:
            failure = self._failed(error)
        except BaseException:
            self._stop()
            self._exchange.abort()
            raise
        else:
            self._waiting_since = None
            if piece:
                return piece
            failure = StopAsyncIteration()
        self._stop()
        # raised outside of the handler: the handled error shows the headers of the request
        raise failure

    async def _next(self) -> bytes:
        deadline = self._response._deadline  # noqa: SLF001 - the two are one thing
        if deadline is None:
            return await self._exchange.content.readany()
        async with asyncio.timeout_at(deadline):
            return await self._exchange.content.readany()

    def _failed(self, error: BaseException) -> ApiError:
        self._exchange.abort()
        if self._expired:
            tried = describe_request(self._response._request)  # noqa: SLF001
            return DeadlineExceeded(f"{tried}: no data for {self._idle_timeout:g} s; the connection may be dead")
        return self._response._explain(error)  # noqa: SLF001

    def _check(self) -> None:
        self._timer = None
        if self._waiting_since is None or self._idle_timeout is None:
            # idle: the next wait starts the timer again
            return
        due = self._waiting_since + self._idle_timeout
        if self._loop.time() < due:
            self._timer = self._loop.call_at(due, self._check)
            return
        self._expired = True
        self._exchange.abort()  # wakes the reader

    def _stop(self) -> None:
        self._waiting_since = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _checked(server: str) -> URL:
    """Parse the address of a server; its path is a prefix of the API's paths."""
    try:
        url = URL(server)
        usable = url.scheme in {"http", "https"} and bool(url.host) and not (url.query_string or url.fragment)
    except ValueError:
        url, usable = URL(), False
    if not usable or url.user is not None or url.password is not None:
        # not shown: it may contain a password
        raise ConfigError("invalid server address: write https://HOST:PORT, without user and query")
    return url
