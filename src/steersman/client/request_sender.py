"""Sends requests: credentials, retries, limits, errors and warnings.

Guarantees
- Every failure is an `ApiError` that names the operation, in bounded time. Only the body of a successfully opened
  stream may take forever.
- A write that may have happened raises `OutcomeUnknown`: never a plain failure, never a silent retry.
- A rejected credential (401) is renewed once, then reported.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from steersman.client.bindings import VerbCall, holds_object, is_gone
from steersman.client.configuration.secrecy import HiddenHeaders
from steersman.client.credentials.credentials import Credentials, Headers
from steersman.client.results import ServerWarning
from steersman.client.retries import RateLimit, RetryPolicy
from steersman.client.shard_support import ShardSupport
from steersman.client.unserved_kinds import ServedAlternatives, kind_not_served
from steersman.errors import (
    ApiError,
    ConnectionFailed,
    DeadlineExceeded,
    DecodeError,
    GatewayTimeout,
    KindNotServed,
    NotFound,
    OutcomeUnknown,
    ProtocolError,
    ServiceUnavailable,
    StatusError,
    Unauthorized,
)
from steersman.objects import AnyObject, GroupVersionKind
from steersman.transport import Response, Transport, separated
from steersman.wire import (
    AGGREGATED_DISCOVERY,
    HttpRequest,
    error_from_response,
    parse_warnings,
    raise_for_failure,
)

_log = logging.getLogger("steersman.client")

T = TypeVar("T")

#: The longest error body that is read; for a longer one the status code must do.
_REFUSAL_MAX = 16 * 1024 * 1024
#: The limit of reports that are remembered, so that they are made once.
_WARNED_MAX = 10_000


def log_warning(warning: ServerWarning) -> None:
    """Log a server warning; the default of ``on_warning``."""
    _log.warning("%s", warning)


class _Redirected(ProtocolError):
    """The server redirects: it did not process the request."""


class Answer(NamedTuple):
    """A successful response, read to its end."""

    code: int
    body: bytes


class RequestObserver(Protocol):
    """Called with retries and rate-limit delays of requests, for metrics. Its methods must not block."""

    def repeated(self, request: HttpRequest, code: int | None) -> None:
        """The request failed with this code, or without a response (None), and is sent again."""
        ...

    def limited(self, request: HttpRequest, seconds: float) -> None:
        """The client's own rate limit delayed the request for this many seconds."""
        ...


class SenderOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How requests are sent."""

    headers: Headers
    retry: RetryPolicy
    rate_limit: RateLimit | None
    #: Seconds for each attempt of a request, and for the head of a stream.
    timeout: float
    #: The server's address, for messages.
    server: str
    on_warning: Callable[[ServerWarning], None]
    #: Whether the server selects shards; shared by all senders of a client.
    shard_support: ShardSupport
    observer: RequestObserver | None = None
    #: Shared by all senders of a client.
    alternatives: ServedAlternatives = msgspec.field(default_factory=ServedAlternatives)
    #: Called with each kind that the server turns out not to serve; also shared.
    on_unserved: list[Callable[[GroupVersionKind], None]] = msgspec.field(
        default_factory=list[Callable[[GroupVersionKind], None]]
    )
    #: What was warned of once; also shared.
    warned: dict[tuple[str, ...], None] = msgspec.field(default_factory=dict[tuple[str, ...], None])


class RequestSender:
    """Sends requests over a transport as one user."""

    def __init__(self, transport: Transport, credentials: Credentials, options: SenderOptions) -> None:
        self.transport = transport
        self._credentials = credentials
        self._options = options

    @property
    def server(self) -> str:
        """The server's address; empty for one in this process."""
        return self._options.server

    @property
    def shard_support(self) -> ShardSupport:
        """Whether the server selects shards."""
        return self._options.shard_support

    def on_unserved(self, notify: Callable[[GroupVersionKind], None]) -> None:
        """Call a function with each kind that the server turns out not to serve, whichever sender of the client learns it."""
        self._options.on_unserved.append(notify)

    def warn(self, text: str, tried: VerbCall) -> None:
        """Report a write that is allowed but probably a mistake."""
        self._options.on_warning(ServerWarning(text, str(tried)))

    def warn_once(self, about: tuple[str, ...], text: str, tried: VerbCall) -> None:
        """The same, unless this client has recently reported the same about the same."""
        warned = self._options.warned
        if about in warned:
            return
        warned[about] = None
        if len(warned) > _WARNED_MAX:
            del warned[next(iter(warned))]
        self.warn(text, tried)

    def with_transport(self, transport: Transport, *, observer: RequestObserver | None = None) -> RequestSender:
        """The same user and limits over another transport; ``observer`` replaces the current one if given."""
        options = replace(self._options, observer=observer) if observer is not None else self._options
        return RequestSender(transport, self._credentials, options)

    def dedicated(self) -> RequestSender:
        """The same user with its own connections, without the rate limit."""
        return RequestSender(separated(self.transport), self._credentials, replace(self._options, rate_limit=None))

    def asking_once(self) -> RequestSender:
        """The same user and limits, without retries."""
        return self._retrying(RetryPolicy(attempts=1))

    def not_waiting(self) -> RequestSender:
        """The same user and limits; raises instead of waiting for a Retry-After."""
        return self._retrying(replace(self._options.retry, maximum_retry_after=0.0))

    def _retrying(self, retry: RetryPolicy) -> RequestSender:
        return RequestSender(self.transport, self._credentials, replace(self._options, retry=retry))

    async def answer(self, request: HttpRequest, *, tried: VerbCall) -> Answer:
        """Send and return a successful response."""
        return await self._repeat(self._whole, request, tried)

    async def send(self, request: HttpRequest, *, tried: VerbCall) -> bytes:
        """Send and return the body of a successful response."""
        return (await self.answer(request, tried=tried)).body

    async def fetch(
        self, request: HttpRequest, decode: Callable[[bytes], AnyObject], *, tried: VerbCall, reads: str = ""
    ) -> AnyObject:
        """Send and return the object in a successful response; ``reads`` is its expected kind, empty for any."""
        answer = await self.answer(request, tried=tried)
        return self.read(answer, decode, request=request, tried=tried, reads=reads)

    def read(
        self,
        answer: Answer,
        decode: Callable[[bytes], AnyObject],
        *,
        request: HttpRequest,
        tried: VerbCall,
        reads: str = "",
    ) -> AnyObject:
        """The object in the response to a request."""
        body = answer.body
        try:
            obj = decode(body)
        except DecodeError as error:
            if holds_object(body, reads):
                raise DecodeError(f"{tried}: {error}") from error
        else:
            if not reads or obj.kind == reads:
                return obj
        raise self._strange(body, request, tried, what=reads)

    async def delete(
        self, request: HttpRequest, decode: Callable[[bytes], AnyObject], *, tried: VerbCall, reads: str = ""
    ) -> AnyObject | None:
        """Send a deletion; return the object if it is only marked for deletion, None if it is gone."""
        answer = await self.answer(request, tried=tried)
        return self.read_deleted(answer, decode, request=request, tried=tried, reads=reads)

    def read_deleted(
        self,
        answer: Answer,
        decode: Callable[[bytes], AnyObject],
        *,
        request: HttpRequest,
        tried: VerbCall,
        reads: str = "",
    ) -> AnyObject | None:
        """The result of a deletion: see `delete`."""
        if not holds_object(answer.body):
            raise self._strange(answer.body, request, tried)
        if is_gone(answer.body):
            return None
        return self.read(answer, decode, request=request, tried=tried, reads=reads)

    async def delete_many(self, request: HttpRequest, *, tried: VerbCall, namespace: str = "") -> bytes:
        """Delete a collection, in one ``namespace`` or in all; return the objects as they were before, or a Status."""
        del namespace  # the path contains it; `ObservedSender` uses it
        body = await self.send(request, tried=tried)
        if not holds_object(body):
            raise self._strange(body, request, tried)
        return body

    @staticmethod
    def _strange(body: bytes, request: HttpRequest, tried: VerbCall, *, what: str = "") -> ApiError:
        # the body is not shown: it may be a Secret
        error = ProtocolError(
            f"{tried}: the server's response of {len(body)} bytes is not a {what or 'Kubernetes object'}:"
            " a proxy or another service may be answering"
        )
        return error if request.method == "GET" else _outcome_unknown(tried, error)

    async def stream(self, request: HttpRequest, *, tried: VerbCall) -> Response:
        """Send and return a response whose body is streamed; the caller closes it."""
        return await self._repeat(self._begin_stream, request, tried)

    async def _repeat(
        self, once: Callable[[HttpRequest, VerbCall], Awaitable[T]], request: HttpRequest, tried: VerbCall
    ) -> T:
        attempt = 0
        renewed = False
        while True:
            attempt += 1
            if self._options.rate_limit is not None:
                await self._within_limit(self._options.rate_limit, request)
            credentials = HiddenHeaders(await self._credentials.headers())
            outgoing = HttpRequest(
                method=request.method,
                path=request.path,
                query=request.query,
                headers=(*self._options.headers, *credentials, *request.headers),
                body=request.body,
            )
            try:
                return await once(outgoing, tried)
            except Unauthorized:
                if renewed or not await self._renew(credentials):
                    raise
                renewed = True
                self._repeated(request, 401)
            except ApiError as error:
                forget_context(error)
                delay = self._options.retry.delay_before_retry(error, attempt, read=request.method == "GET")
                if delay is None:
                    if request.method != "GET" and _may_have_happened(error):
                        raise _outcome_unknown(tried, error) from error
                    raise
                _log.debug("%s: %s; retrying in %.2f s", tried, error, delay)
                await asyncio.sleep(delay)
                self._repeated(request, error.code if isinstance(error, StatusError) else None)

    async def _within_limit(self, limit: RateLimit, request: HttpRequest) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await limit.acquire()
        if self._options.observer is not None:
            self._options.observer.limited(request, loop.time() - began)

    def _repeated(self, request: HttpRequest, code: int | None) -> None:
        if self._options.observer is not None:
            self._options.observer.repeated(request, code)

    async def _renew(self, rejected: Headers) -> bool:
        """Renew the rejected credentials; return whether others are available."""
        certificate = await self._credentials.client_certificate()
        self._credentials.invalidate(rejected)
        return (
            await self._credentials.headers() != rejected or await self._credentials.client_certificate() != certificate
        )

    async def _whole(self, request: HttpRequest, tried: VerbCall) -> Answer:
        response = await self._begin(request, tried, stream=False)
        body = await response.read()
        if b'"Status"' in body[:160]:  # cheap and rare; raise_for_failure checks properly
            try:
                raise_for_failure(body, tried=str(tried))
            except StatusError as error:
                from steersman.client.redaction import redacted  # noqa: PLC0415 - few requests need it

                raise redacted(error, request) from None
        return Answer(response.status, body)

    async def _begin_stream(self, request: HttpRequest, tried: VerbCall) -> Response:
        return await self._begin(request, tried, stream=True)

    async def _begin(self, request: HttpRequest, tried: VerbCall, *, stream: bool) -> Response:
        """Send once; return a response with a success code or raise."""
        response = await self.transport.send(request, stream=stream, timeout=self._options.timeout)
        refusal: ApiError | None = None
        try:
            if warnings := response.headers.getall("Warning", ()):
                from steersman.client.redaction import redacted_text  # noqa: PLC0415 - few requests need it

                for text in parse_warnings(warnings):
                    self.warn(redacted_text(text, request), tried)
            if not 200 <= response.status < 300:
                from steersman.client.redaction import redacted  # noqa: PLC0415 - few requests need it

                refusal = redacted(await self._refusal(response, tried), request)
        except BaseException:
            await response.close()
            raise
        if refusal is None:
            return response
        await response.close()
        raise refusal

    async def _refusal(self, response: Response, tried: VerbCall) -> ApiError:
        if response.status < 200:
            return ProtocolError(f"{tried}: the server switches to another protocol ({response.status})")
        try:
            # for a stream, the transport bounds only the head
            async with asyncio.timeout(self._options.timeout):
                body = await response.read(_REFUSAL_MAX)
        except (ApiError, TimeoutError):
            body = b""
        error = error_from_response(response.status, response.headers, body, tried=str(tried))
        if isinstance(error, ProtocolError):
            return _Redirected(str(error))
        if tried.kind is not None and isinstance(error, NotFound) and error.is_unknown_path:
            return await self.unserved(tried.kind, verb=tried.verb)
        return error

    async def unserved(self, kind: GroupVersionKind, *, verb: str = "find") -> KindNotServed:
        """The error for a kind that the server does not serve; it names other versions, or kinds of similar names."""
        for notify in self._options.on_unserved:
            notify(kind)
        instead = await self._options.alternatives.of(kind, self._discovered)
        return kind_not_served(kind, self.server, verb=verb, instead=instead)

    async def _discovered(self) -> list[bytes]:
        headers, once = (("Accept", AGGREGATED_DISCOVERY),), self.asking_once()
        return [
            await once.send(HttpRequest(method="GET", path=path, headers=headers), tried=VerbCall(f"discover {path}"))
            for path in ("/api", "/apis")
        ]


def forget_context(error: ApiError) -> None:
    """Drop the context of a transport failure: it may hold the request's headers."""
    error.__context__ = None


def _may_have_happened(error: ApiError) -> bool:
    """Whether a request that failed with this error may have been processed."""
    match error:
        case ConnectionFailed() | DeadlineExceeded():
            return error.sent
        case ServiceUnavailable():
            # a gateway that lost the server answers without a Status; a server that did not try sends one
            return not error.reason
        case StatusError():
            return isinstance(error, GatewayTimeout) or error.code == 502
        case _:
            return isinstance(error, ProtocolError) and not isinstance(error, _Redirected)


def _outcome_unknown(tried: VerbCall, error: ApiError) -> OutcomeUnknown:
    """The error of a write that failed after sending."""
    unknown = OutcomeUnknown(f"{tried}: the write may or may not have happened: {error}; read the object to find out")
    unknown.__cause__ = error
    return unknown
