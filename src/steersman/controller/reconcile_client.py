"""The client of one reconcile: all verbs of `Client`, every write told to observers.

Guarantees
- Every verb that writes tells its observers before it returns, or raises (see `steersman.controller.write_log`).
- **Never older than yourself.** With a cache, what this client wrote is what it reads; so do all clients of the cache.
- It owns nothing: closing connections is the business of the client it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, Protocol, TypeAlias, cast

import msgspec

from steersman.client import Attempt, Client, ListOf, Outcome
from steersman.client.bindings import AnyObject, holds_object, resource_version_of
from steersman.client.reads import AnyKind, KeyLike, Labels, ListSelection
from steersman.client.saves import Saver
from steersman.client.session import Session
from steersman.controller.explaining import explains, made_by
from steersman.controller.write_log import Write, WriteObserver
from steersman.objects import GroupVersionKind, Key, Object, Unstructured, raw_of
from steersman.objects.errors import OutcomeUnknown
from steersman.objects.status import Status
from steersman.transport import Response
from steersman.wire import Request, parse_path

#: The bytes of an object as a reader could see it now; None if it is not there or not known.
Before: TypeAlias = Callable[[GroupVersionKind, Key], bytes | None]


_status_decoder = msgspec.json.Decoder(Status)


def nothing_before(kind: GroupVersionKind, key: Key) -> bytes | None:
    """What is known without a cache."""
    del kind, key


class CachedReads(Protocol):
    """The reading verbs as a cache answers them."""

    async def get(self, kind: Any, key: Key | str | tuple[str, str], /) -> Any:
        """One object."""
        ...

    async def list(self, kind: Any, /, *, namespace: str | None, labels: Labels | None) -> ListOf[Any]:
        """All objects of a kind, in all namespaces or in one, that a selector selects."""
        ...


class ReconcileClient(Saver):
    """Reads and writes objects of any kind, as `Client` does, in the name of one reconcile.

    `get` and `list` are answered by the cache, never older than what was written through this client; asking for a
    certain resource version, for fields, or through `live` asks the server.
    """

    def __init__(
        self,
        client: Client,
        observers: Iterable[WriteObserver] = (),
        *,
        reads: CachedReads | None = None,
        before: Before = nothing_before,
    ) -> None:
        session = _ObservedSession(client._session, tuple(observers), before, client._field_manager)  # noqa: SLF001
        super().__init__(session, client.discovery, namespace=client.namespace)
        self._client = client
        self._reads = reads
        self.metadata = client.metadata
        self._field_manager = client._field_manager  # noqa: SLF001 - one client with two doors
        self._field_validation = client._field_validation  # noqa: SLF001
        self._validate = client._validate  # noqa: SLF001
        # Bindings are made once a kind, not once a reconcile.
        self._bindings = client._bindings  # noqa: SLF001

    @property
    def live(self) -> ReconcileClient:
        """The same client, reading from the server."""
        if self._reads is None:
            return self
        live = copy(self)
        live._reads = None  # noqa: SLF001 - it is ourselves
        return live

    async def _get(self, kind: AnyKind, key: KeyLike, resource_version: str | None) -> Any:
        if self._reads is None or resource_version is not None:
            return await super()._get(kind, key, resource_version)
        binding = self._bindings.get(kind) or await self._bind(kind)
        return await self._reads.get(kind, self._key(binding, key))

    async def _list(self, kind: AnyKind, selection: ListSelection) -> ListOf[Any]:
        if self._reads is None or selection.keys() - {"namespace", "labels", "limit"}:
            return await super()._list(kind, selection)
        return await self._reads.list(kind, namespace=selection.get("namespace"), labels=selection.get("labels"))

    async def _create_or_write(
        self, obj: AnyObject, mutate: Callable[[AnyObject], None], write: Callable[[AnyObject], Any]
    ) -> Outcome[AnyObject]:
        # Whether to create cannot be asked of a cache: another writer's object may be on its way here.
        if self._reads is None:
            return await super()._create_or_write(obj, mutate, write)
        return await self.live._create_or_write(obj, mutate, write)  # noqa: SLF001 - it is ourselves


class _ObservedSession(Session):
    """A session that lends its requests to another one and tells what was written."""

    def __init__(self, session: Session, observers: tuple[WriteObserver, ...], before: Before, manager: str) -> None:
        # Not initialised as a session of its own: every request goes through the one it was made from.
        self.transport = session.transport
        self.server = session.server
        self._session = session
        self._observers = observers
        self._before = before
        self._manager = manager

    async def send(self, request: Request, *, tried: Attempt) -> bytes:
        with _Unknown(self._observers, request, tried):
            body = await self._session.send(request, tried=tried)
        self._touched(request, tried)
        return body

    async def perform(self, request: Request, *, tried: Attempt) -> None:
        with _Unknown(self._observers, request, tried):
            body = await self._session.send(request, tried=tried)
            if not holds_object(body):
                raise self._strange(body, request, tried)
        uid = _deleted_uid(body) if request.method == "DELETE" and isinstance(tried.key, Key) else ""
        if not uid or tried.kind is None or not isinstance(tried.key, Key):
            self._touched(request, tried)
        elif _writes(request):
            for observer in self._observers:
                observer.deleted(tried.kind, tried.key, uid)

    async def stream(self, request: Request, *, tried: Attempt) -> Response:
        return await self._session.stream(request, tried=tried)

    async def fetch(
        self, request: Request, decode: Callable[[bytes], AnyObject], *, tried: Attempt, reads: str = ""
    ) -> AnyObject:
        if not _writes(request):
            return await self._session.fetch(request, decode, tried=tried, reads=reads)
        key = tried.key if isinstance(tried.key, Key) else None
        before = self._before(tried.kind, key) if tried.kind and key else None
        with _Unknown(self._observers, request, tried):
            obj = await self._session.fetch(request, decode, tried=tried, reads=reads)
        version = resource_version_of(obj)
        if tried.kind is None or not version or obj.kind != tried.kind.kind:
            self._touched(request, tried)
            return obj
        write = Write(
            tried.kind,
            obj.key,
            version,
            _subresource(request),
            request.method == "POST" or self._is_certain(request, before, obj),
        )
        for observer in self._observers:
            observer.written(write, obj)
        return obj

    def _is_certain(self, request: Request, before: bytes | None, obj: Object | Unstructured) -> bool:
        raw = obj.raw if isinstance(obj, Unstructured) else raw_of(obj)
        if raw is None:
            return False
        after: dict[str, Any] = msgspec.json.decode(raw)
        sent = _sent(request)
        metadata: dict[str, Any] = sent.get("metadata") or {}
        locked: str | None = metadata.get("resourceVersion")
        if locked:
            # The server wrote on top of exactly this version; the same version again means that nothing changed.
            return locked != _version(after)
        if before is None:
            return made_by(self._manager, after)
        known: dict[str, Any] = msgspec.json.decode(before)
        # An answer at the version that was known already: this write made no event, so none is its echo.
        return _version(known) != _version(after) and explains(known, sent, after)

    def _touched(self, request: Request, tried: Attempt) -> None:
        if _writes(request) and tried.kind is not None:
            for observer in self._observers:
                observer.touched(tried.kind, tried.key if isinstance(tried.key, Key) else None)


class _Unknown:
    """Tells observers of a write that may or may not have happened; that of a cancelled one is not known either."""

    def __init__(self, observers: tuple[WriteObserver, ...], request: Request, tried: Attempt) -> None:
        self._observers = observers
        self._request = request
        self._tried = tried

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        unsure = isinstance(error, OutcomeUnknown) or (error is not None and not isinstance(error, Exception))
        if unsure and _writes(self._request) and self._tried.kind is not None:
            key = self._tried.key if isinstance(self._tried.key, Key) else None
            for observer in self._observers:
                observer.unknown(self._tried.kind, key)


def _writes(request: Request) -> bool:
    if request.method == "GET" or ("dryRun", "All") in request.query:
        return False
    # A deletion says in its body that it is none.
    return request.method != "DELETE" or b'"dryRun":["All"]' not in (request.body or b"")


def _deleted_uid(body: bytes) -> str:
    """The uid of an object that is gone; empty if the answer is the object itself, which is only marked so far."""
    try:
        status = _status_decoder.decode(body)
    except msgspec.DecodeError:
        return ""
    gone = status.kind == "Status" and status.status == "Success" and status.details is not None
    return status.details.uid if gone and status.details else ""


def _version(tree: dict[str, Any]) -> str:
    metadata: dict[str, Any] = tree.get("metadata") or {}
    return metadata.get("resourceVersion") or ""


def _subresource(request: Request) -> str:
    path = parse_path(request.path)
    return (path.subresource if path else None) or ""


def _sent(request: Request) -> dict[str, Any]:
    """The tree that a request sends; empty for a JSON patch, which is a list of operations."""
    tree: Any = msgspec.json.decode(request.body) if request.body else {}
    return cast("dict[str, Any]", tree) if isinstance(tree, dict) else {}
