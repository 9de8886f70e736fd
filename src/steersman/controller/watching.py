"""The cache as a controller sees it: kinds to listen to, stores to look things up in, a place to record writes.

Guarantees
- An informer is used for as long as a source listens, and no longer.
- A write is visible to every reader of the cache before the reconcile that made it goes on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Hashable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, assert_never

from steersman.cache import Appeared, Cache, Changed, Informer, Notification, Vanished
from steersman.cache.reader import as_selector
from steersman.client import Client
from steersman.controller.applies import Applies
from steersman.controller.events import KindLike, MergedEvent, ObjectEvent, View
from steersman.controller.mappers import Labels, kind_name
from steersman.controller.reconcile_client import ReconcileClient
from steersman.controller.sources import Registration
from steersman.controller.traces import traces_of
from steersman.controller.write_log import Write, WriteLog
from steersman.objects import GroupVersionKind, Key, Kind, Object, Unstructured


def event_of(notification: Notification) -> ObjectEvent:
    """What an informer tells, as predicates and mappers see it."""
    between = notification.passed
    match notification:
        case Appeared(new) if between:
            return MergedEvent("appeared", new=new, between=between, initial=notification.initial)
        case Changed(old, new) if between:
            return MergedEvent("changed", old=old, new=new, between=between)
        case Vanished(last) if between:
            return MergedEvent("vanished", old=last, between=between)
        case Appeared(new):
            return ObjectEvent("appeared", new=new, initial=notification.initial, unbroken=notification.unbroken)
        case Changed(old, new):
            unbroken = notification.unbroken and not notification.coalesced
            return ObjectEvent("changed", old=old, new=new, resync=notification.resync, unbroken=unbroken)
        case Vanished(last):
            return ObjectEvent("vanished", old=last, unbroken=notification.unbroken)
        case _:
            assert_never(notification)


class CachedKinds:
    """The kinds that one controller watches, out of a cache."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._informers: dict[GroupVersionKind, Informer[Any]] = {}
        #: What needs not be applied again.
        self.applies = Applies(self._informers.get)
        #: Who wrote what, for spans.
        self.traces = traces_of(cache)

    def watched(self, kind: KindLike, *, resync: float | None = None) -> CachedKind:
        """A kind to listen to."""
        return CachedKind(self, kind, resync)

    @asynccontextmanager
    async def _listen(
        self, kind: KindLike, resync: float | None, handler: Callable[[ObjectEvent], None]
    ) -> AsyncGenerator[Registration]:
        async with self._cache.use(kind) as informer:
            self._informers[kind.gvk()] = informer
            registration = informer.add_handler(lambda told: handler(event_of(told)), resync=resync)
            try:
                yield registration
            finally:
                registration.remove()

    # looking things up

    def get(self, kind: KindLike, key: Key) -> View[Any] | None:
        """An object of a watched kind as last seen."""
        informer = self._informer(kind)
        stored = informer.store.get(key)
        return informer.view(stored) if stored else None

    def list(self, kind: KindLike, *, namespace: str = "", labels: Labels | None = None) -> Iterable[View[Any]]:
        """The objects of a watched kind in one namespace, or in all, whose labels match."""
        informer = self._informer(kind)
        found = informer.store.list(namespace=namespace, labels=as_selector(labels))
        return [informer.view(stored) for stored in found]

    def by_index(self, kind: KindLike, name: str, value: Hashable) -> Iterable[View[Any]]:
        """The objects of a watched kind that a declared index has under a value."""
        informer = self._informer(kind)
        return [informer.view(stored) for stored in informer.store.by_index(name, value)]

    def owned_by(self, kind: KindLike, owner: View[Any] | str) -> Iterable[View[Any]]:
        """The objects of a watched kind that name an object, or its uid, among their owners."""
        informer = self._informer(kind)
        uid = owner if isinstance(owner, str) else owner.uid
        return [informer.view(stored) for stored in informer.store.by_owner(uid)]

    def _informer(self, kind: KindLike) -> Informer[Any]:
        informer = self._informers.get(kind.gvk())
        if informer is None:
            name = kind_name(kind)
            raise LookupError(
                f"{name} cannot be looked up: this controller does not watch it; add .watches({name}, map=...)"
            )
        return informer

    # the client of a reconcile

    def client_for(self, client: Client) -> Callable[[WriteLog], ReconcileClient]:
        """Make clients that read from the cache and record what they write, in it and in the reconcile's log."""
        reads, recorder, traces = self._cache.reader(), CacheRecorder(self._cache), self.traces

        def make(log: WriteLog) -> ReconcileClient:
            return ReconcileClient(
                client, (recorder, log, traces), reads=reads, before=self.before, intents=self.applies
            )

        return make

    def before(self, kind: GroupVersionKind, key: Key) -> bytes | None:
        """The bytes of an object as a reader sees it now; None if it is not there or not watched."""
        informer = self._informers.get(kind)
        if informer is None:
            return None
        seen = informer.overlay.visible(key, informer.store.get(key))
        return seen.raw if seen else None


class CachedKind:
    """One kind of a cache, to listen to."""

    def __init__(self, kinds: CachedKinds, kind: KindLike, resync: float | None) -> None:
        self._kinds = kinds
        self._kind = kind
        self._resync = resync

    def listen(self, handler: Callable[[ObjectEvent], None]) -> AbstractAsyncContextManager[Registration]:
        """Call ``handler`` with every event for as long as the block lasts."""
        return self._kinds._listen(self._kind, self._resync, handler)  # noqa: SLF001 - a private name of this module


class CacheRecorder:
    """Records writes in a cache, so that its readers see them."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def written(self, write: Write, obj: Object | Unstructured) -> None:
        """Show the object as the server answered it."""
        self._cache.record_write(obj, kind=_kind(write.kind))

    def deleted(self, kind: GroupVersionKind, key: Key, uid: str) -> None:
        """Hide the object."""
        self._cache.record_delete(_kind(kind), key, uid)

    def touched(self, kind: GroupVersionKind, key: Key | None) -> None:
        """Ask the server at the next read. Nobody knows the key of what was created under a generated name."""
        if key is not None and key.name:
            self._cache.record_unknown(_kind(kind), key)

    def unknown(self, kind: GroupVersionKind, key: Key | None) -> None:
        """Ask the server at the next read; without a key, of everything."""
        if key is None:
            self._cache.record_unknown(_kind(kind), None)
        else:
            self.touched(kind, key)


def _kind(kind: GroupVersionKind) -> Kind:
    return Kind(kind.api_version, kind.kind)
