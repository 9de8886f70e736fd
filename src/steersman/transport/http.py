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
import io
import os
import re
from collections.abc import AsyncIterator, Callable
from functools import lru_cache
from typing import Any, Self

import aiohttp
from multidict import CIMultiDictProxy
from yarl import URL

from steersman.aio import Closable
from steersman.errors import ApiError, ConfigError, ConnectionFailed, DeadlineExceeded, ProtocolError
from steersman.transport.connector import Exchange, OnceMixin, current_exchange, keep_first_failure, make_connector
from steersman.transport.failures import explain
from steersman.transport.gate import pass_gates
from steersman.transport.protocol import DEFAULT_TIMEOUT, MAX_BODY
from steersman.transport.proxies import proxy_from_environment, split_proxy
from steersman.transport.tls import TlsContexts, TlsMaterial
from steersman.wire import Request, describe_request

#: aiohttp warns about larger bodies given as bytes: it would write them at once.
_WRITE_AT_ONCE_MAX = 1 << 20

# the characters allowed in a request line: no space, no control character, no fragment
_TARGET = re.compile(r"/[!\"$-~]*")

# Most writes of a controller use methods that aiohttp never resends; skipping the middleware makes them cheaper.
_NOT_REPEATED = frozenset({"PATCH", "POST"})
_UNREPEATED: tuple[aiohttp.ClientMiddlewareType, ...] = ()
_REPEATED: tuple[aiohttp.ClientMiddlewareType, ...] = (keep_first_failure,)

_FAILURES = (aiohttp.ClientError, asyncio.TimeoutError, OSError, aiohttp.http.HttpProcessingError)


@lru_cache(maxsize=64)
def _timeout(total: float | None, connect: float) -> aiohttp.ClientTimeout:
    # "connect" would include the wait for a free connection in the pool, which says nothing about the server
    return aiohttp.ClientTimeout(total=total, sock_connect=connect)


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
        self._proxy, self._proxy_headers = split_proxy(proxy) if proxy else (None, None)
        self._unix_socket = unix_socket
        # aiohttp would add its own; setting them here is cheaper than making it skip them
        self._headers = {"Accept-Encoding": "gzip" if compression else "identity", "User-Agent": "steersman"}
        self._max_connections = max_connections
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._requests: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None
        self._closed = False

    async def send(
        self,
        request: Request,
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
        session = self._session(stream, request)
        exchange = Exchange(before_send)
        token = current_exchange.set(exchange)
        try:
            coroutine = session.request(
                request.method,
                # the URL's query is never used, and parsing a whole URL takes three times as long
                self._url.with_path(self._prefix + target, encoded=True),
                headers=request.headers,
                data=_data(request),
                ssl=self._contexts.current() if self._contexts is not None else True,
                server_hostname=self._server_name,
                timeout=_timeout(None if stream else timeout, self._connect_timeout),
                proxy=self._proxy,
                proxy_headers=self._proxy_headers,
                allow_redirects=False,
                middlewares=_UNREPEATED if request.method in _NOT_REPEATED else _REPEATED,
            )
            if stream:
                async with asyncio.timeout(timeout):
                    response = await coroutine
            else:
                response = await coroutine
            exchange.response = response
            return HttpResponse(response, request, self)
        except _FAILURES as error:
            exchange.abort()
            failure = exchange.refusal or self._explain(error, request, sent=exchange.sent)
        except asyncio.CancelledError:
            exchange.abort()
            # closing the pool cancels tasks that wait for a connection, without them being cancelled by anyone else
            task = asyncio.current_task()
            if self._closed and task is not None and not task.cancelling():
                raise self._gone(request, sent=exchange.sent) from None
            raise
        except BaseException:
            exchange.abort()
            raise
        finally:
            current_exchange.reset(token)
        # raised outside of the handler: the handled error shows the headers of the request
        raise failure

    async def close(self) -> None:
        """Close every connection; exchanges in progress fail."""
        self._closed = True
        sessions, self._requests, self._streams = (self._requests, self._streams), None, None
        for session in sessions:
            if session is None:
                continue
            connector = session.connector
            assert isinstance(connector, OnceMixin)
            connector.abort_held()
            # a lost connection propagates through TLS and HTTP to the request: one turn of the loop each
            for _ in range(3):
                await asyncio.sleep(0)
            await session.close()

    def separate(self) -> Self:
        """Return a transport to the same server with its own connections; see `Separable`."""
        other = copy.copy(self)
        other._requests = other._streams = None  # noqa: SLF001 - it is ourselves
        other._closed = False  # noqa: SLF001
        return other

    def __repr__(self) -> str:
        return f"<HttpTransport {self._name}>"

    def _session(self, stream: bool, request: Request) -> aiohttp.ClientSession:  # noqa: FBT001 - two kinds of session
        session = self._streams if stream else self._requests
        if session is not None:
            return session
        if self._closed:
            raise self._gone(request, sent=False)
        connector = make_connector(
            limit=0 if stream else self._max_connections, keepalive=60.0, unix_socket=self._unix_socket
        )
        session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        if stream:
            self._streams = session
        else:
            self._requests = session
        return session

    def _gone(self, request: Request, *, sent: bool) -> ConnectionFailed:
        return ConnectionFailed(f"{describe_request(request)}: the transport to {self._name} is closed", sent=sent)

    def _explain(self, error: BaseException, request: Request, *, sent: bool) -> ApiError:
        if self._closed and not isinstance(error, asyncio.TimeoutError):
            return self._gone(request, sent=sent)
        return explain(error, tried=describe_request(request), server=self._name, sent=sent)


def _data(request: Request) -> Any:
    """The body for aiohttp; not a local of `send`, whose frame a traceback with locals would print."""
    body = request.body
    return io.BytesIO(body) if body is not None and len(body) > _WRITE_AT_ONCE_MAX else body


class HttpResponse(Closable):
    """A response over HTTP; see `Response`."""

    __slots__ = ("_request", "_response", "_transport", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse, request: Request, transport: HttpTransport) -> None:
        self._response = response
        self._request = request
        self._transport = transport
        self.status: int = response.status
        self.headers: CIMultiDictProxy[str] = response.headers

    async def read(self, limit: int = MAX_BODY) -> bytes:
        """Read the whole body; raise ProtocolError if it is longer than `limit` bytes."""
        response = self._response
        length = response.content_length
        try:
            if length is not None and length <= limit and "Content-Encoding" not in self.headers:
                return await response.read()
            if length is None or length <= limit:
                body = await self._read_bounded(limit)
                if body is not None:
                    return body
        except _FAILURES as error:
            failure = self._explain(error)
        except BaseException:
            self._abort()
            raise
        else:
            failure = ProtocolError(
                f"{describe_request(self._request)}: the response is longer than {limit} bytes; request less at a time"
            )
        self._abort()
        # raised outside of the handler: the handled error shows the headers of the request
        raise failure

    async def _read_bounded(self, limit: int) -> bytes | None:
        pieces: list[bytes] = []
        size = 0
        content = self._response.content
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
        self._abort()

    def _explain(self, error: BaseException) -> ApiError:
        return self._transport._explain(error, self._request, sent=True)  # noqa: SLF001 - the two are one thing

    def _abort(self) -> None:
        connection = self._response.connection
        # a fully read response has returned its connection, which may now serve another request
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.close()

    def __repr__(self) -> str:
        return f"<HttpResponse {self.status} to {self._request.method} {self._request.path}>"


class _Chunks:
    """The body of a response, piece by piece. One timer covers all waits: one timer per piece would cost more."""

    __slots__ = ("_content", "_expired", "_idle_timeout", "_loop", "_response", "_timer", "_waiting_since")

    def __init__(self, response: HttpResponse, idle_timeout: float | None) -> None:
        self._response = response
        self._content = response._response.content  # noqa: SLF001 - the two are one thing
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
            piece = await self._content.readany()
        except (*_FAILURES, RuntimeError) as error:
            failure = self._failed(error)
        except BaseException:
            self._stop()
            self._response._abort()  # noqa: SLF001 - the two are one thing
            raise
        else:
            self._waiting_since = None
            if piece:
                return piece
            failure = StopAsyncIteration()
        self._stop()
        # raised outside of the handler: the handled error shows the headers of the request
        raise failure

    def _failed(self, error: BaseException) -> ApiError:
        self._response._abort()  # noqa: SLF001 - the two are one thing
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
        self._response._abort()  # noqa: SLF001 - wakes the reader

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
