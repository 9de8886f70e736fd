"""A transport that counts, times and traces requests.

Guarantees
- It does not change an exchange: guarantees and exceptions of the inner transport hold. Only a traced request carries
  the additional header ``traceparent``, so that the server's spans join.
- Every request is counted once, by the status of its response; without a response it counts as ``<error>``.
- A request's time ends with its body; a stream's time ends with its head.
- Spans name methods, paths and statuses by OpenTelemetry's conventions for HTTP. They never contain queries, headers or
  bodies, which may contain secrets.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from typing import Self, Unpack
from urllib.parse import urlsplit

from multidict import CIMultiDictProxy

from steersman.telemetry import NO_SPAN, AttributeValue, Count, Registry, Span, begin_span, is_tracing, names
from steersman.transport.protocol import MAX_BODY, Response, SendOptions, Transport, TransportWrapper, separated
from steersman.wire import HttpRequest, parse_path

#: The code of a request without a response, as in client-go.
NO_ANSWER = "<error>"

_WATCH = frozenset({("watch", "true"), ("watch", "1")})


class MeasuredTransport(TransportWrapper):
    """A transport with metrics and traces: ``client.with_transport(lambda inner: MeasuredTransport(inner, registry, host))``.

    ``host`` is the server's name in metrics. Closing this transport closes the inner one.
    """

    def __init__(self, inner: Transport, registry: Registry, host: str) -> None:
        super().__init__(inner)
        self._host = _host_of(host)
        self._requests = registry.counter(names.CLIENT_REQUESTS)
        self._durations = registry.histogram(names.CLIENT_REQUEST_DURATION)
        self._request_sizes = registry.histogram(names.CLIENT_REQUEST_SIZE)
        self._response_sizes = registry.histogram(names.CLIENT_RESPONSE_SIZE)
        self._counts: dict[tuple[int | str, str], Count] = {}

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        # Most programs trace nothing, and describing a request costs more than counting it.
        span = self._begin(request) if is_tracing() else NO_SPAN
        if span is not NO_SPAN and span.is_recording:
            request = request.with_headers(("traceparent", span.traceparent))
        began = asyncio.get_running_loop().time()
        try:
            response = await self._inner.send(request, **options)
        except BaseException as error:
            self._count(NO_ANSWER, request.method)
            self._observe(request, began)
            if span is not NO_SPAN:
                span.set_attribute("error.type", type(error).__name__)
                span.fail(error)
                span.end()
            raise
        self._count(response.status, request.method)
        if span is not NO_SPAN:
            _describe(span, response.status)
        if options.get("stream"):
            self._observe(request, began)
            span.end()
            return response
        return _MeasuredResponse(response, self, request, span, began)

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()

    def separate(self) -> MeasuredTransport:
        """Return a transport with its own connections and the same metrics; see `Separable`."""
        other = copy.copy(self)
        other._inner = separated(self._inner)  # noqa: SLF001 - it is ourselves
        return other

    def __repr__(self) -> str:
        return f"<MeasuredTransport of {self._inner!r}>"

    def _begin(self, request: HttpRequest) -> Span:
        attributes: dict[str, AttributeValue] = {
            "http.request.method": request.method,
            "server.address": self._host,
            "url.path": request.path,
        }
        name = request.method
        path = parse_path(request.path)
        if path is not None:
            name = f"{request.method} {path.rbac_resource}"
            attributes["k8s.resource"] = f"{path.resource}.{path.group}" if path.group else path.resource
            if path.namespace:
                attributes["k8s.namespace.name"] = path.namespace
            if path.name:
                attributes["k8s.object.name"] = path.name
        return begin_span(name, attributes, kind="client")

    def _count(self, code: int | str, method: str) -> None:
        count = self._counts.get((code, method))
        if count is None:
            count = self._counts[code, method] = self._requests.labels(str(code), method, self._host)
        count.value += 1

    def _observe(self, request: HttpRequest, began: float) -> None:
        verb = _verb(request)
        self._durations.labels(verb, self._host).observe(asyncio.get_running_loop().time() - began)
        if request.body is not None:
            self._request_sizes.labels(verb, self._host).observe(len(request.body))

    def _finish(self, request: HttpRequest, began: float, size: int | None) -> None:
        self._observe(request, began)
        if size is not None:
            self._response_sizes.labels(request.method, self._host).observe(size)


class _MeasuredResponse:
    """A response that records its end."""

    __slots__ = ("_began", "_open", "_request", "_response", "_span", "_transport")

    def __init__(
        self, response: Response, transport: MeasuredTransport, request: HttpRequest, span: Span, began: float
    ) -> None:
        self._response = response
        self._transport = transport
        self._request = request
        self._span = span
        self._began = began
        self._open = True

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        return self._response.headers

    async def read(self, limit: int = MAX_BODY) -> bytes:
        try:
            body = await self._response.read(limit)
        except BaseException as error:
            if self._open:
                self._span.fail(error)
            self._end(None)
            raise
        self._end(len(body))
        return body

    async def chunks(self, *, idle_timeout: float | None = None) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self._response.chunks(idle_timeout=idle_timeout):
                size += len(chunk)
                yield chunk
        finally:
            self._end(size)

    async def close(self) -> None:
        self._end(None)
        await self._response.close()

    async def __aenter__(self) -> Self:
        await self._response.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._end(None)
        await self._response.__aexit__(*error)

    def _end(self, size: int | None) -> None:
        if self._open:
            self._open = False
            self._transport._finish(self._request, self._began, size)  # noqa: SLF001 - the two are one thing
            if self._span is not NO_SPAN:
                self._span.end()

    def __repr__(self) -> str:
        return f"<measured {self._response!r}>"


class RequestMeasurements:
    """Counts what no transport sees of a request: retries, and waits for the client's own rate limit.

    Use it as observer with a `MeasuredTransport`: ``client.with_transport(..., observer=RequestMeasurements(registry, host))``.
    """

    def __init__(self, registry: Registry, host: str) -> None:
        self._host = _host_of(host)
        self._retries = registry.counter(names.CLIENT_RETRIES)
        self._waits = registry.histogram(names.CLIENT_RATE_LIMITER_DURATION)

    def repeated(self, request: HttpRequest, code: int | None) -> None:
        """Count a retry, by the status of the failed attempt."""
        answered = NO_ANSWER if code is None else str(code)
        self._retries.labels(answered, _verb(request), self._host).inc()

    def limited(self, request: HttpRequest, seconds: float) -> None:
        """Record how long a request waited before it was sent."""
        self._waits.labels(_verb(request), self._host).observe(seconds)


def _verb(request: HttpRequest) -> str:
    return "WATCH" if not _WATCH.isdisjoint(request.query) else request.method


def _describe(span: Span, status: int) -> None:
    span.set_attribute("http.response.status_code", status)
    if status >= 400:
        span.set_attribute("error.type", str(status))
        span.fail(f"HTTP status {status}")


def _host_of(server: str) -> str:
    """The label for a server: host and port, without scheme, path or user."""
    return urlsplit(server).netloc.rpartition("@")[2] if "://" in server else server
