"""A stage of sending that notifies observers of writes (see `steersman.client.stages.observers` for the guarantees)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from steersman.client.bindings import VerbCall
from steersman.client.foreign_changes import explains, explains_deletion
from steersman.client.request_sender import RequestSender
from steersman.client.stages.observers import Before, Write, WriteObserver
from steersman.errors import (
    UNREADABLE,
    ApiStatus,
    ConnectionFailed,
    DecodeError,
    Forbidden,
    KindNotServed,
    MethodNotAllowed,
    OutcomeUnknown,
    ProtocolError,
    StatusError,
    Unauthorized,
)
from steersman.objects import AnyObject, GroupVersionKind, Key, Object, Unstructured, raw_bytes, resource_version_of
from steersman.wire import HttpRequest, key_of, split_list

#: The wording of every Kubernetes API server for a request that the authorizer denies.
_REFUSED_VERB = " cannot deletecollection resource "

_status_decoder = msgspec.json.Decoder(ApiStatus)
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


class ObservedSender:
    """Sends writes and notifies observers of them."""

    def __init__(self, sender: RequestSender, observers: tuple[WriteObserver, ...], before: Before) -> None:
        self._sender = sender
        self._observers = observers
        self._before = before

    def warn(self, text: str, tried: VerbCall) -> None:
        """Report a write that is allowed but probably a mistake."""
        self._sender.warn(text, tried)

    def warn_once(self, about: tuple[str, ...], text: str, tried: VerbCall) -> None:
        """See `RequestSender.warn_once`."""
        self._sender.warn_once(about, text, tried)

    async def fetch(
        self, request: HttpRequest, decode: Callable[[bytes], AnyObject], *, tried: VerbCall, reads: str = ""
    ) -> AnyObject:
        """Send and return the object in the response, reporting it as written."""
        if not _writes(request):
            return await self._sender.fetch(request, decode, tried=tried, reads=reads)
        before = self._known(tried)
        with _Unknown(self._observers, request, tried):
            answer = await self._sender.answer(request, tried=tried)
            obj = self._sender.read(answer, decode, request=request, tried=tried, reads=reads)
        created = request.method == "POST" or answer.code == 201
        self._written(request, tried, obj, certain=lambda: created or _is_certain(request, before, obj))
        return obj

    async def delete(
        self, request: HttpRequest, decode: Callable[[bytes], AnyObject], *, tried: VerbCall, reads: str = ""
    ) -> AnyObject | None:
        """Send a deletion: an object marked for deletion is reported as written, one that is gone as deleted."""
        before = self._known(tried)
        with _Unknown(self._observers, request, tried):
            answer = await self._sender.answer(request, tried=tried)
            obj = self._sender.read_deleted(answer, decode, request=request, tried=tried, reads=reads)
        if not _writes(request):
            return obj
        if obj is not None:
            self._written(request, tried, obj, certain=lambda: _deletion_is_certain(before, obj))
            return obj
        uid = _gone(answer.body)
        if not uid or tried.kind is None or not isinstance(tried.key, Key):
            self._touched(request, tried)
        else:
            for observer in self._observers:
                observer.deleted(tried.kind, tried.key, uid)
        return None

    async def delete_many(self, request: HttpRequest, *, tried: VerbCall, namespace: str = "") -> bytes:
        """Send a deletion of a collection: the response lists the objects as they were before."""
        if not _writes(request) or tried.kind is None:
            return await self._sender.delete_many(request, tried=tried)
        try:
            body = await self._sender.delete_many(request, tried=tried)
        except BaseException as error:
            # The server deletes one by one: a failure may follow the deletion of other objects.
            if not _is_refused_before_the_first(error):
                self._unknown(tried.kind, namespace)
            raise
        try:
            keys = [key_of(raw) for raw in split_list(body).items]
        except ProtocolError:
            self._unknown(tried.kind, namespace)
            return body
        for key in keys:
            for observer in self._observers:
                observer.touched(tried.kind, key)
        return body

    def _known(self, tried: VerbCall) -> bytes | None:
        return self._before(tried.kind, tried.key) if tried.kind and isinstance(tried.key, Key) else None

    def _written(
        self, request: HttpRequest, tried: VerbCall, obj: Object | Unstructured, *, certain: Callable[[], bool]
    ) -> None:
        version = resource_version_of(obj)
        if tried.kind is None or not version or obj.kind != tried.kind.kind:
            self._touched(request, tried)
            return
        write = Write(tried.kind, obj.key, version, tried.subresource, certain())
        for observer in self._observers:
            observer.written(write, obj)

    def _touched(self, request: HttpRequest, tried: VerbCall) -> None:
        if _writes(request) and tried.kind is not None:
            for observer in self._observers:
                observer.touched(tried.kind, tried.key if isinstance(tried.key, Key) else None)

    def _unknown(self, kind: GroupVersionKind, namespace: str) -> None:
        for observer in self._observers:
            observer.unknown(kind, None, namespace=namespace)


class _Unknown:
    """Reports a write with an unknown outcome to the observers; cancellation counts as unknown."""

    def __init__(self, observers: tuple[WriteObserver, ...], request: HttpRequest, tried: VerbCall) -> None:
        self._observers = observers
        self._request = request
        self._tried = tried

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None and _may_have_happened(error) and _writes(self._request) and self._tried.kind is not None:
            key = self._tried.key if isinstance(self._tried.key, Key) else None
            for observer in self._observers:
                observer.unknown(self._tried.kind, key)


def _may_have_happened(error: BaseException) -> bool:
    """Whether a write that failed with this error may have happened, from the view of a cache's reader."""
    if isinstance(error, StatusError):
        # a server answers 500 if its store timed out, and the store may still have written
        return error.code >= 500
        # an undecodable response is still a response; a cancelled caller did not wait for one
    return isinstance(error, OutcomeUnknown | DecodeError) or not isinstance(error, Exception)


def _is_refused_before_the_first(error: BaseException) -> bool:
    """Whether the deletion of a collection failed before the server deleted anything."""
    if isinstance(error, ConnectionFailed):
        return not error.sent
    if isinstance(error, Unauthorized | MethodNotAllowed | KindNotServed):
        return True
        # Authorization precedes the first object. Admission also answers 403, but decides one object at a time.
    return isinstance(error, Forbidden) and _REFUSED_VERB in error.status.message


def _is_certain(request: HttpRequest, before: bytes | None, obj: Object | Unstructured) -> bool:
    raw = raw_bytes(obj)
    if raw is None:
        return False
    sent = _sent(request)
    metadata: dict[str, Any] = sent.get("metadata") or {}
    locked: str | None = metadata.get("resourceVersion")
    if locked:
        # The server wrote on top of exactly this version; the same version again means that nothing changed.
        return locked != resource_version_of(obj)
    if before is None:
        # The state before is unknown. managedFields would not tell: removing fields leaves no trace there.
        return False
    known, after = _differing(before, raw)
    # The response has the version known before: this write made no event, so no event is its echo.
    return _version(known) != _version(after) and explains(known, sent, after)


def _differing(before: bytes, after: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two states of an object without fields that are byte-equal in both; metadata always stays."""
    one, other = _fields_decoder.decode(before), _fields_decoder.decode(after)
    return _without(one, other), _without(other, one)


def _without(fields: dict[str, msgspec.Raw], others: dict[str, msgspec.Raw]) -> dict[str, Any]:
    return {
        name: msgspec.json.decode(value)
        for name, value in fields.items()
        if name == "metadata" or others.get(name) != value
    }


def _deletion_is_certain(before: bytes | None, obj: Object | Unstructured) -> bool:
    raw = raw_bytes(obj)
    if before is None or raw is None:
        return False
    return explains_deletion(*_differing(before, raw))


def _writes(request: HttpRequest) -> bool:
    if request.method == "GET" or ("dryRun", "All") in request.query:
        return False
    # A deletion carries dryRun in its body.
    return request.method != "DELETE" or b'"dryRun":["All"]' not in (request.body or b"")


class _Identity(msgspec.Struct):
    uid: str = ""


class _Last(msgspec.Struct):
    metadata: _Identity


def _gone(body: bytes) -> str:
    """The uid of a deleted object, from a Status or its last state; empty if the response does not contain it."""
    try:
        status = _status_decoder.decode(body)
        if status.kind == "Status":
            return status.details.uid if status.details is not None else ""
        return msgspec.json.decode(body, type=_Last).metadata.uid
    except UNREADABLE:
        return ""


def _version(tree: dict[str, Any]) -> str:
    metadata: dict[str, Any] = tree.get("metadata") or {}
    return metadata.get("resourceVersion") or ""


def _sent(request: HttpRequest) -> dict[str, Any]:
    """The tree that a request sends; empty for a JSON patch, which is a list of operations."""
    tree: Any = msgspec.json.decode(request.body) if request.body else {}
    return cast("dict[str, Any]", tree) if isinstance(tree, dict) else {}
