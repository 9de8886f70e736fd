"""A session that tells observers what was written (see `steersman.client.observing` for what is promised)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from steersman.client.bindings import AnyObject, Attempt, raw_bytes, resource_version_of
from steersman.client.explaining import explains, explains_deletion
from steersman.client.observing import Before, Write, WriteObserver
from steersman.client.session import Answer, Session
from steersman.objects import GroupVersionKind, Key, Object, Unstructured
from steersman.objects.errors import DecodeError, OutcomeUnknown, ProtocolError, StatusError
from steersman.objects.status import Status
from steersman.transport import Response
from steersman.wire import Request, key_of, split_list

_status_decoder = msgspec.json.Decoder(Status)
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


class ObservedSession(Session):
    """A session that lends its requests to another one and tells what was written."""

    def __init__(self, session: Session, observers: tuple[WriteObserver, ...], before: Before) -> None:
        # Not initialised as a session of its own: every request goes through the one it was made from.
        self.transport = session.transport
        self.server = session.server
        self._session = session
        self._observers = observers
        self._before = before

    def warn(self, text: str, tried: Attempt) -> None:
        """Tell of what is allowed and hardly meant."""
        self._session.warn(text, tried)

    async def answer(self, request: Request, *, tried: Attempt) -> Answer:
        """Send, and tell nobody: every verb that writes has its own way to be told of."""
        return await self._session.answer(request, tried=tried)

    async def stream(self, request: Request, *, tried: Attempt) -> Response:
        """Send and give back an answer whose body is read as it comes."""
        return await self._session.stream(request, tried=tried)

    async def send(self, request: Request, *, tried: Attempt) -> bytes:
        """Send and give back the body; of a write nobody knows what it holds."""
        with _Unknown(self._observers, request, tried):
            body = await self._session.send(request, tried=tried)
        self._touched(request, tried)
        return body

    async def fetch(
        self, request: Request, decode: Callable[[bytes], AnyObject], *, tried: Attempt, reads: str = ""
    ) -> AnyObject:
        """Send and give back the object of the answer, which is what was written."""
        if not _writes(request):
            return await self._session.fetch(request, decode, tried=tried, reads=reads)
        before = self._known(tried)
        with _Unknown(self._observers, request, tried):
            answer = await self._session.answer(request, tried=tried)
            obj = self._session.read(answer, decode, request=request, tried=tried, reads=reads)
        created = request.method == "POST" or answer.code == 201
        self._written(request, tried, obj, certain=lambda: created or _is_certain(request, before, obj))
        return obj

    async def delete(
        self, request: Request, decode: Callable[[bytes], AnyObject], *, tried: Attempt, reads: str = ""
    ) -> AnyObject | None:
        """Send a deletion: what is marked was written, what is gone was deleted."""
        before = self._known(tried)
        with _Unknown(self._observers, request, tried):
            answer = await self._session.answer(request, tried=tried)
            obj = self._session.read_deleted(answer, decode, request=request, tried=tried, reads=reads)
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

    async def delete_many(self, request: Request, *, tried: Attempt) -> bytes:
        """Send a deletion of many: the answer names them, and shows them as they were before."""
        if not _writes(request) or tried.kind is None:
            return await self._session.delete_many(request, tried=tried)
        try:
            body = await self._session.delete_many(request, tried=tried)
        except BaseException:
            # A deletion of many that was refused at one of them has deleted those before it.
            self._unknown(tried.kind)
            raise
        try:
            keys = [key_of(raw) for raw in split_list(body).items]
        except ProtocolError:
            self._unknown(tried.kind)
            return body
        for key in keys:
            for observer in self._observers:
                observer.touched(tried.kind, key)
        return body

    def _known(self, tried: Attempt) -> bytes | None:
        return self._before(tried.kind, tried.key) if tried.kind and isinstance(tried.key, Key) else None

    def _written(
        self, request: Request, tried: Attempt, obj: Object | Unstructured, *, certain: Callable[[], bool]
    ) -> None:
        version = resource_version_of(obj)
        if tried.kind is None or not version or obj.kind != tried.kind.kind:
            self._touched(request, tried)
            return
        write = Write(tried.kind, obj.key, version, tried.subresource, certain())
        for observer in self._observers:
            observer.written(write, obj)

    def _touched(self, request: Request, tried: Attempt) -> None:
        if _writes(request) and tried.kind is not None:
            for observer in self._observers:
                observer.touched(tried.kind, tried.key if isinstance(tried.key, Key) else None)

    def _unknown(self, kind: GroupVersionKind) -> None:
        for observer in self._observers:
            observer.unknown(kind, None)


class _Unknown:
    """Tells observers of a write that may or may not have happened; that of a cancelled one is not known either."""

    def __init__(self, observers: tuple[WriteObserver, ...], request: Request, tried: Attempt) -> None:
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
    """Whether a write that ended so may have happened, as far as a reader of a cache is concerned."""
    if isinstance(error, StatusError):
        # a server whose store did not answer in time says 500, and the store may have written all the same
        return error.code >= 500
    # an answer that our type cannot hold is one all the same; who was cancelled did not wait for the answer
    return isinstance(error, OutcomeUnknown | DecodeError) or not isinstance(error, Exception)


def _is_certain(request: Request, before: bytes | None, obj: Object | Unstructured) -> bool:
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
        # It was there, and nobody here knew how. Its managedFields would not tell: who only removes fields leaves no trace.
        return False
    known, after = _differing(before, raw)
    # An answer at the version that was known already: this write made no event, so none is its echo.
    return _version(known) != _version(after) and explains(known, sent, after)


def _differing(before: bytes, after: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two states of an object without the fields that stand in both byte for byte; the metadata always stays."""
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
    return explains_deletion(msgspec.json.decode(before), msgspec.json.decode(raw))


def _writes(request: Request) -> bool:
    if request.method == "GET" or ("dryRun", "All") in request.query:
        return False
    # A deletion says in its body that it is none.
    return request.method != "DELETE" or b'"dryRun":["All"]' not in (request.body or b"")


class _Identity(msgspec.Struct):
    uid: str = ""


class _Last(msgspec.Struct):
    metadata: _Identity


def _gone(body: bytes) -> str:
    """The uid of an object that is gone, from a Status or from its last state; empty if the answer does not tell."""
    try:
        status = _status_decoder.decode(body)
        if status.kind == "Status":
            return status.details.uid if status.details is not None else ""
        return msgspec.json.decode(body, type=_Last).metadata.uid
    except msgspec.DecodeError:
        return ""


def _version(tree: dict[str, Any]) -> str:
    metadata: dict[str, Any] = tree.get("metadata") or {}
    return metadata.get("resourceVersion") or ""


def _sent(request: Request) -> dict[str, Any]:
    """The tree that a request sends; empty for a JSON patch, which is a list of operations."""
    tree: Any = msgspec.json.decode(request.body) if request.body else {}
    return cast("dict[str, Any]", tree) if isinstance(tree, dict) else {}
