"""One admission review: calls the handlers of a request and builds the response.

Guarantees
- The patch is exactly the difference between the object in the request and the one that the last handler returned. Fields
  that the type does not declare pass through.
- If a handler raises, returns a wrong value or exceeds the deadline, the request is denied with its name and the reason.
- The texts of errors about Secrets are neither logged nor returned.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from steersman.errors import ApiStatus, DecodeError, is_exit
from steersman.objects import (
    JSON_PATCH_TYPE,
    AdmissionRequest,
    AdmissionResponse,
    Key,
    Object,
    as_read,
    decode,
    differing_fields,
    origin_of,
    to_json,
)
from steersman.objects.field_problems import FieldProblem, invalid_error
from steersman.patches import JsonPatch, json_patch_between
from steersman.telemetry import user_frames
from steersman.webhooks.handler_threads import THREADS_MAX, HandlerThreads
from steersman.webhooks.handlers import AdmissionHandler, Admitted, Denied, Review

_log = logging.getLogger("steersman.webhooks")

AnyHandler = AdmissionHandler[Any, Any]

_TEXT_MAX = 1024


class HandlerFailed(Exception):
    """A handler failed to decide; the status says why."""

    def __init__(self, status: ApiStatus) -> None:
        super().__init__(status.message)
        self.status = status


def failure(message: str, *, reason: str = "InternalError", code: int = 500) -> ApiStatus:
    """The status of a review that failed."""
    return ApiStatus(status="Failure", message=message, reason=reason, code=code)


async def admit(
    request: AdmissionRequest, handlers: Sequence[AnyHandler], threads: HandlerThreads, seconds: float
) -> AdmissionResponse:
    """Call the handlers of the request's operation in order. All of them together have ``seconds``."""
    asked = [handler for handler in handlers if request.operation in handler.operations]
    review = _OneReview(request, threads)
    current = ""
    try:
        async with asyncio.timeout(seconds):
            for handler in asked:
                current = handler.name
                await review.ask(handler)
        patch = review.patch()
    except Denied as denied:
        return review.denied(denied)
    except HandlerFailed as failed:
        return review.response(status=failed.status)
    except TimeoutError:
        return review.response(status=late(current, seconds, threads))
    except DecodeError as error:
        return review.response(status=failure(str(error), reason="BadRequest", code=400))
    return review.response(patch=patch)


def late(name: str, seconds: float, threads: HandlerThreads) -> ApiStatus:
    """The status of a handler that did not answer in time."""
    busy = f": all {THREADS_MAX} handler threads are busy; look for handlers that block" if threads.all_busy else ""
    _log.error("webhook handler %s did not answer within %g s%s", name, seconds, busy)
    return failure(f"{name} did not answer within {seconds:g} s{busy}", reason="Timeout", code=504)


class _OneReview:
    """The state of one review: the object, and the warnings and annotations so far."""

    def __init__(self, request: AdmissionRequest, threads: HandlerThreads) -> None:
        self._request = request
        self._threads = threads
        self._warnings: list[str] = []
        self._annotations: dict[str, str] = {}
        self._object: Object | None = None
        #: Whether the handlers of this path may change the object.
        self._mutates = False
        self._review: Review[Any] | None = None

    async def ask(self, handler: AnyHandler) -> None:
        self._mutates = handler.mutates
        if self._object is None:
            self._object = self._decoded(handler.kind)
        arguments: tuple[Any, ...] = (self._object,)
        if handler.takes_review:
            if self._review is None:
                self._review = self._circumstances(handler.kind)
            arguments = (self._object, self._review)
        returned = await called(handler.function, arguments, handler.name, self._threads, secret=self._is_secret)
        if isinstance(returned, Admitted):
            given = cast("Admitted[Any]", returned)
            try:
                self.note(given.warnings, given.audit_annotations)
            except Exception as error:  # noqa: BLE001 - the values are the handler's work
                raise HandlerFailed(failed(handler.name, error, secret=self._is_secret)) from None
            returned = given.object
            if returned is None:
                return
        if handler.mutates:
            self._object = _checked(returned, self._object, handler)
        elif returned is not None:
            raise HandlerFailed(
                failure(f"{handler.name} returned a {type(returned).__name__}; it must return None or an Admitted")
            )

    def note(self, warnings: Iterable[str], annotations: Mapping[str, str]) -> None:
        """Keep the warnings and annotations of a handler."""
        texts = [warnings] if isinstance(warnings, str) else warnings
        self._warnings.extend(map(encodable, texts))
        self._annotations.update({encodable(name): encodable(value) for name, value in annotations.items()})

    def denied(self, denied: Denied) -> AdmissionResponse:
        """The response to a refusal; what it says about fields is the handler's work."""
        self.note(denied.warnings, denied.audit_annotations)
        try:
            status = _status_of(denied, self._request)
            msgspec.json.encode(status)
        except Exception:  # noqa: BLE001
            status = failure(encodable(denied), reason="Forbidden", code=403)
        return self.response(status=status)

    def patch(self) -> JsonPatch:
        """The JSON patch from the object in the request to the current object."""
        now = self._object
        if now is None or not self._mutates:
            return JsonPatch()
        try:
            found = differing_fields(now, now)
            before, after = (as_read(now), to_json(now)) if found is None else found
            return json_patch_between(before, after)
        except Exception as error:  # noqa: BLE001 - a handler may have put anything into the object
            raise HandlerFailed(failed("the mutation", error, secret=self._is_secret)) from None

    def response(self, *, patch: JsonPatch | None = None, status: ApiStatus | None = None) -> AdmissionResponse:
        """The response; with a status, it denies the request."""
        changes = patch is not None and bool(patch.operations)
        return AdmissionResponse(
            uid=self._request.uid,
            allowed=status is None,
            status=status,
            patch=patch.encode() if patch is not None and changes else None,
            patch_type=JSON_PATCH_TYPE if changes else None,
            audit_annotations=self._annotations or None,
            warnings=tuple(self._warnings) or None,
        )

    @property
    def _is_secret(self) -> bool:
        return self._request.kind.kind == "Secret"

    def _decoded(self, kind: type[Object]) -> Object:
        request = self._request
        if request.kind != kind.gvk():
            raise HandlerFailed(
                failure(f"this webhook reviews {kind.gvk()}, not {request.kind}", reason="BadRequest", code=400)
            )
        raw = request.old_object if request.operation == "DELETE" else request.object
        return decode(kind, bytes(raw))

    def _circumstances(self, kind: type[Object]) -> Review[Any]:
        request = self._request
        old = bytes(request.old_object)
        return Review(
            operation=request.operation,
            old=None if old == b"null" else decode(kind, old),
            user=request.user_info,
            dry_run=bool(request.dry_run),
            key=Key(request.namespace, request.name),
            subresource=request.sub_resource,
            uid=request.uid,
        )


def _checked(returned: Any, given: Object, handler: AnyHandler) -> Object:
    """The object that a mutating handler returned, if it was made from the given one. Raises `HandlerFailed`."""
    if not isinstance(returned, handler.kind):
        what = "None" if returned is None else f"a {type(returned).__name__}"
        raise HandlerFailed(failure(f"{handler.name} returned {what}; it must return the {handler.kind.__name__}"))
    before, after = origin_of(given), origin_of(returned)
    if before is None or after is None or (after.document, after.ordinal) != (before.document, before.ordinal):
        raise HandlerFailed(
            failure(
                f"{handler.name} returned a new {handler.kind.__name__}, which would lose fields that the type does not declare;"
                " change the given object, or return replace(obj, ...)"
            )
        )
    return returned


async def called(
    function: Any, arguments: tuple[Any, ...], name: str, threads: HandlerThreads, *, secret: bool = False
) -> Any:
    """Call a user's function and return its value. Any error except `Denied` becomes `HandlerFailed`."""
    try:
        if inspect.iscoroutinefunction(function):
            return await threads.wait(function(*arguments))
        returned = await threads.run(function, *arguments)
        return await returned if inspect.isawaitable(returned) else returned
    except (Denied, HandlerFailed):
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # not this review was cancelled, but something that the handler waited for
        raise HandlerFailed(failure(f"{name} failed: {type(error).__name__}: it waited for a cancelled task")) from None
    except BaseException as error:
        if is_exit(error):
            raise
        raise HandlerFailed(failed(name, error, secret=secret)) from None


def failed(name: str, error: BaseException, *, secret: bool = False) -> ApiStatus:
    """Log the error of a handler, and return its status."""
    kind, _, frames = user_frames(error)
    last = traceback.extract_tb(frames)[-1:] if frames is not None else []
    where = "".join(f" ({each.filename.rpartition('/')[2]}:{each.lineno})" for each in last)
    text = "" if secret else encodable(error)[:_TEXT_MAX]
    said = f"{name} failed: {kind.__name__}{': ' if text else ''}{text}{where}"
    _log.error("webhook handler %s", said, exc_info=None if secret else (kind, error, frames))
    return failure(said)


def encodable(value: object) -> str:
    """The text of a handler's value, without what JSON cannot hold."""
    try:
        return str(value).encode("utf-8", "replace").decode()
    except Exception:  # noqa: BLE001 - the class is the user's
        return f"<a {type(value).__name__} without a text>"


def _status_of(denied: Denied, request: AdmissionRequest) -> ApiStatus:
    if not any(isinstance(each, FieldProblem) for each in denied.problems):
        return failure(encodable(denied), reason="Forbidden", code=403)
    problems = [
        problem if isinstance(problem, FieldProblem) else FieldProblem("", problem) for problem in denied.problems
    ]
    name = request.name or _generate_name(request)
    error = invalid_error(problems, group=request.kind.group, kind=request.kind.kind, name=name, tried="")
    return error.status


class _Metadata(msgspec.Struct, rename="camel"):
    generate_name: str = ""


class _Head(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


def _generate_name(request: AdmissionRequest) -> str:
    try:
        return msgspec.json.decode(request.object, type=_Head).metadata.generate_name
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
