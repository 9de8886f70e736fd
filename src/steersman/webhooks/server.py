"""Answers the reviews of a program's webhooks: takes the path and body of a request, and returns the response body.

Guarantees
- Every review of a registered path gets a response before its deadline, whatever the handlers do.
- A body that is not a review is rejected, and the message contains nothing of the body.
- It needs no socket: a port (`steersman.transport.HttpListener`) and an API server in this process call the same code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from steersman.errors import ApiStatus, BadRequest, NotFound, StatusError, encode_status
from steersman.objects import (
    AdmissionReview,
    ConversionRequest,
    ConversionResponse,
    ConversionReview,
    GroupKind,
    Object,
    parse_duration,
)
from steersman.telemetry import Registry, names
from steersman.transport import ServerResponse
from steersman.webhooks.admission import AnyHandler, HandlerFailed, admit, called, failure, late
from steersman.webhooks.conversion import AnyConverter, Conversions, NotConvertible, VersionConverter
from steersman.webhooks.handler_threads import HandlerThreads
from steersman.webhooks.handlers import AdmissionHandler
from steersman.wire import HttpRequest

#: The path for conversions of all kinds.
CONVERT = "/convert"
#: Seconds that the API server waits for an admission webhook (as registered), and for a conversion webhook (always).
ADMISSION_TIMEOUT, CONVERSION_TIMEOUT = 5.0, 30.0
#: The part of the API server's timeout that a review may take, so that the reason of a failure still arrives.
_SHARE = 0.9
#: Limits for bodies in bytes: two objects of full size, and a page of objects.
_ADMISSION_MAX, _CONVERSION_MAX = 7 * 1024 * 1024, 100 * 1024 * 1024

Hook = AnyHandler | AnyConverter
ReviewT = TypeVar("ReviewT", AdmissionReview, ConversionReview)


def admission_path(kind: type[Object], *, mutates: bool) -> str:
    """The path of a kind's webhook, in controller-runtime's form: ``/validate-web-example-com-v1-site``."""
    gvk = kind.gvk()
    parts = ("mutate" if mutates else "validate", gvk.group.replace(".", "-"), gvk.version, gvk.kind.lower())
    return "/" + "-".join(parts)


class WebhookServer:
    """Answers the reviews of handlers and converters: ``WebhookServer([site_defaults, site_checks, old_sites])``."""

    def __init__(self, hooks: Iterable[Hook] = (), *, registry: Registry | None = None) -> None:
        self._handlers: dict[str, list[AnyHandler]] = {}
        self._converters: list[AnyConverter] = []
        self._conversions = Conversions()
        self._threads = HandlerThreads()
        self._registry = registry or Registry()
        for hook in hooks:
            self.add(hook)

    def add(self, hook: Hook) -> None:
        """Add a handler or a converter. Handlers of one kind run in the order in which they were added."""
        if isinstance(hook, VersionConverter):
            self._conversions = Conversions([*self._converters, hook])
            self._converters.append(hook)
            return
        if not isinstance(hook, AdmissionHandler):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{hook!r} is not a webhook; decorate a function with @mutates(KIND) or @validates(KIND)")
        handlers = self._handlers.setdefault(admission_path(hook.kind, mutates=hook.mutates), [])
        if hook in handlers:
            raise ValueError(f"the handler {hook.name} was already added; add it once")
        handlers.append(hook)

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """All handlers and converters."""
        return (*(handler for handlers in self._handlers.values() for handler in handlers), *self._converters)

    @property
    def kinds(self) -> tuple[type[Object], ...]:
        """The classes of its handlers and converters, each once; each version of a kind has its own class."""
        handled = (handler.kind for handlers in self._handlers.values() for handler in handlers)
        converted = (cls for each in self._converters for cls in (each.hub, each.spoke))
        return tuple(dict.fromkeys((*handled, *converted)))

    def converted_versions(self) -> dict[GroupKind, list[type[Object]]]:
        """The classes of each converted kind, the hub first."""
        return self._conversions.versions()

    @property
    def max_body(self) -> int:
        """The length in bytes of the longest body that it accepts."""
        return _CONVERSION_MAX if self._converters else _ADMISSION_MAX

    def busy(self) -> str:
        """Why a further call would have to wait; empty if it would not. For a readiness check."""
        return "all handler threads are busy; look for handlers that block" if self._threads.all_busy else ""

    async def answer(self, path: str, body: bytes, *, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - of the API server
        """Answer one review. ``timeout`` is how long the API server waits, in seconds.

        Raises `NotFound` for an unknown path, and `BadRequest` for a body that is not a review.
        """
        if path == CONVERT and self._converters:
            request = _decoded(body, ConversionReview, "apiextensions.k8s.io/v1").request
            if request is None:
                raise _bad_request("the ConversionReview has no request")
            converted = await self._convert(request, (timeout or CONVERSION_TIMEOUT) * _SHARE)
            return msgspec.json.encode(ConversionReview(response=converted))
        handlers = self._handlers.get(path)
        if handlers is None:
            message = f"no webhook has the path {path[:200]}"
            raise NotFound(ApiStatus(status="Failure", message=message, reason="NotFound", code=404))
        if len(body) > _ADMISSION_MAX:
            raise _bad_request(f"an AdmissionReview must not exceed {_ADMISSION_MAX} bytes", code=413)
        review = _decoded(body, AdmissionReview, "admission.k8s.io/v1").request
        if review is None:
            raise _bad_request("the AdmissionReview has no request")
        response = await admit(review, handlers, self._threads, (timeout or ADMISSION_TIMEOUT) * _SHARE)
        return msgspec.json.encode(AdmissionReview(response=response))

    async def handle(self, request: HttpRequest) -> ServerResponse:
        """Answer an HTTP request; a port calls this."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        known = request.path in self._handlers or request.path == CONVERT
        try:
            if request.method != "POST":
                raise _bad_request("send a review with POST", code=405)
            body = await self.answer(request.path, request.body or b"", timeout=_timeout_in(request))
            response = ServerResponse(status=200, headers=JSON_HEADERS, body=body)
        except StatusError as error:
            response = ServerResponse(status=error.code, headers=JSON_HEADERS, body=encode_status(error.status))
        if known:
            self._registry.counter(names.WEBHOOK_REQUESTS).labels(request.path, str(response.status)).inc()
            self._registry.histogram(names.WEBHOOK_LATENCY).labels(request.path).observe(loop.time() - began)
        return response

    def close(self) -> None:
        """End its threads."""
        self._threads.close()

    async def _convert(self, request: ConversionRequest, seconds: float) -> ConversionResponse:
        """Convert all objects of a review, or none."""
        place = _Place()
        try:
            async with asyncio.timeout(seconds):
                converted = await called(self._converted, (request, place), "the conversion", self._threads)
            return ConversionResponse(uid=request.uid, converted_objects=converted)
        except HandlerFailed as failed:
            status = failed.status
        except TimeoutError:
            status = late("the conversion", seconds, self._threads)
        return ConversionResponse(
            uid=request.uid, result=msgspec.structs.replace(status, message=f"{place}{status.message}")
        )

    def _converted(self, request: ConversionRequest, place: _Place) -> tuple[msgspec.Raw, ...]:
        converted: list[msgspec.Raw] = []
        for raw in request.objects:
            place.raw = raw
            try:
                converted.append(msgspec.Raw(self._conversions.convert(bytes(raw), request.desired_api_version)))
            except NotConvertible as error:
                raise HandlerFailed(failure(str(error), reason="BadRequest", code=400)) from None
        return tuple(converted)


class _Place:
    """The object that is being converted, for error messages."""

    raw: msgspec.Raw | None = None

    def __str__(self) -> str:
        try:
            head = msgspec.json.decode(self.raw or b"", type=_Head)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return ""
        key = f"{head.metadata.namespace}/{head.metadata.name}".lstrip("/")
        return f"cannot convert {head.kind} {key}: "


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Head(msgspec.Struct):
    kind: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


JSON_HEADERS = (("Content-Type", "application/json"),)


def _decoded(body: bytes, review: type[ReviewT], version: str) -> ReviewT:
    try:
        found = msgspec.json.decode(body, type=review)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = None
    # raised outside of the except block, because a decoding error quotes the body
    if found is None or found.kind != review.__name__ or found.api_version != version:
        raise _bad_request(f"the body is not a {review.__name__} of {version}")
    return found


def _bad_request(message: str, *, code: int = 400) -> BadRequest:
    return BadRequest(ApiStatus(status="Failure", message=message, reason="BadRequest", code=code))


def _timeout_in(request: HttpRequest) -> float | None:
    """The API server's own timeout in seconds, from the query, such as ``timeout=5s``."""
    text = next((value for name, value in request.query if name == "timeout"), "")
    try:
        seconds = parse_duration(text).total_seconds()
    except ValueError:
        return None
    return seconds if 0 < seconds <= CONVERSION_TIMEOUT else None
