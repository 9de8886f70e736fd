"""The cache as a controller sees it: kinds to watch, stores for lookups, and a recorder of writes.

Guarantees
- An informer is used only while a source listens.
- A write is visible to every reader of the cache before the reconcile that made it continues.
- If the cache finds that the server was restored from a backup, the writes of a reconcile that began before have an unknown
  outcome: the server may have sent their answers before the restore.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Hashable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import lru_cache
from typing import Any

from steersman.cache import Cache, IndexName, IndexPending, Informer, ObjectEvent, as_selector
from steersman.client import Client
from steersman.controller.sources.mappers import Labels, Referring
from steersman.controller.sources.source import Registration
from steersman.controller.sources.views import KindLike, View
from steersman.controller.writes.applies import Applies
from steersman.controller.writes.pipeline import reconcile_pipeline
from steersman.controller.writes.reconcile_client import ReconcileClient
from steersman.controller.writes.traces import traces_of
from steersman.controller.writes.write_log import Write, WriteLog, WriteObserver
from steersman.objects import GroupVersionKind, Key, Kind, Object, Unstructured, kind_name

#: An index over more objects is not built in one turn of the event loop.
_SMALL = 10_000


def _require(informer: Informer[Any], index: IndexName | None) -> None:
    """Raise `IndexPending` if a lookup would build a large index in one turn: a mapper cannot wait, its caller can."""
    if index is None or informer.store.has_index(index) or len(informer.store) <= _SMALL:
        return
    raise IndexPending(
        f"by {index.by} {index.name}".rstrip(), lambda: informer.store.indexing(index), lambda: informer.prepare(index)
    )


class CachedKinds:
    """The kinds of a cache that one controller watches."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._informers: dict[GroupVersionKind, Informer[Any]] = {}
        #: Remembers applies, to skip those that would change nothing.
        self.applies = Applies(self._informers.get)
        #: Which span wrote what.
        self.traces = traces_of(cache)

    @property
    def life(self) -> object:
        """The same object as `InternalClient.life` in every reconcile of this assembled controller."""
        return self.applies

    def watched(
        self, kind: KindLike, *, resync: float | None = None, optional: bool = False, mapper: object = None
    ) -> CachedKind:
        """A kind to watch; an optional one has started while the server does not serve it.

        A mapper of references gets them while a source listens.
        """
        return CachedKind(
            self, kind, resync, optional=optional, referring=mapper if isinstance(mapper, Referring) else None
        )

    @asynccontextmanager
    async def _listen(
        self,
        kind: KindLike,
        resync: float | None,
        handler: Callable[[ObjectEvent], None],
        *,
        optional: bool,
        referring: Referring | None,
    ) -> AsyncGenerator[Registration]:
        async with self._cache.use(kind) as informer:
            self._informers[kind.gvk()] = informer
            if referring is not None:
                referring.referrers = self._cache.track(referring.owner, kind, referring.function)
            registration = informer.add_handler(handler, resync=resync)
            try:
                yield _OptionalKind(informer, registration) if optional else registration
            finally:
                registration.remove()
                if referring is not None:
                    self._cache.untrack(referring.owner, kind, referring.function)

    # lookups

    def get(self, kind: KindLike, key: Key) -> View[Any] | None:
        """An object of a watched kind as last seen."""
        informer = self._informer(kind)
        stored = informer.store.get(key)
        if stored is None and informer.names is not None and not informer.has(key):
            raise LookupError(
                f"{kind_name(kind)} {key} cannot be looked up: nothing refers to it, or it is not read yet; only a reconcile"
                " can read it from the server"
            )
        return informer.view(stored) if stored else None

    def list(self, kind: KindLike, *, namespace: str = "", labels: Labels | None = None) -> Iterable[View[Any]]:
        """The objects of a watched kind in one namespace, or in all, whose labels match."""
        informer = self._whole(kind)
        selector = as_selector(labels)
        _require(informer, informer.store.index_for(namespace=namespace, labels=selector))
        objects = informer.store.list(namespace=namespace, labels=selector)
        return [informer.view(stored) for stored in objects]

    def by_index(self, kind: KindLike, name: str, value: Hashable) -> Iterable[View[Any]]:
        """The objects of a watched kind that a declared index holds for a value."""
        informer = self._whole(kind)
        _require(informer, informer.store.index_for(name=name))
        return [informer.view(stored) for stored in informer.store.by_index(name, value)]

    def owned_by(self, kind: KindLike, owner: View[Any] | str) -> Iterable[View[Any]]:
        """The objects of a watched kind with an owner reference to an object or its uid."""
        informer = self._whole(kind)
        uid = owner if isinstance(owner, str) else owner.uid
        _require(informer, informer.store.index_for(owner=uid))
        return [informer.view(stored) for stored in informer.store.by_owner(uid)]

    def _whole(self, kind: KindLike) -> Informer[Any]:
        """The informer of a kind of which all objects are cached."""
        informer = self._informer(kind)
        if informer.names is not None:
            name = kind_name(kind)
            raise LookupError(
                f"{name} cannot be looked up but by key: only objects that others refer to are cached; use"
                f" .watches({name}, map=...) to cache all"
            )
        return informer

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
        """A factory of clients that read from the cache, and record their writes in it and in the reconcile's log."""
        client = client.not_waiting()
        cache, traces = self._cache.reader(), self.traces

        def make(log: WriteLog) -> ReconcileClient:
            for kind, key in log.befores:
                log.befores[kind, key] = self.before(kind, key) or b""
            return ReconcileClient(
                reconcile_pipeline(
                    client,
                    (CacheRecorder(self._cache, log, traces),),
                    cache=cache,
                    before=self.before,
                    memory=self.applies,
                    epoch=self._cache.epoch,
                )
            )

        return make

    def before(self, kind: GroupVersionKind, key: Key) -> bytes | None:
        """The bytes of an object as a reader sees it now; None if it is missing or not watched."""
        informer = self._informers.get(kind)
        if informer is None:
            return None
        seen = informer.overlay.visible(key, informer.store.get(key))
        return seen.raw if seen else None


class CachedKind:
    """One kind of a cache, to watch."""

    def __init__(
        self, kinds: CachedKinds, kind: KindLike, resync: float | None, *, optional: bool, referring: Referring | None
    ) -> None:
        self._kinds = kinds
        self._kind = kind
        self._resync = resync
        self._optional = optional
        self._referring = referring

    def listen(self, handler: Callable[[ObjectEvent], None]) -> AbstractAsyncContextManager[Registration]:
        """Call ``handler`` with every event while the block lasts."""
        return self._kinds._listen(  # noqa: SLF001 - a private name of this module
            self._kind, self._resync, handler, optional=self._optional, referring=self._referring
        )


class _OptionalKind:
    """A handler of a kind that need not be served."""

    def __init__(self, informer: Informer[Any], registration: Registration) -> None:
        self._informer = informer
        self._registration = registration

    async def wait_synced(self) -> None:
        """Wait until the handler was called for every object, or the server says that it does not serve the kind."""
        await self._informer.wait_settled()
        if self._informer.served:
            await self._registration.wait_synced()


class CacheRecorder:
    """Records the writes of one reconcile in a cache, so that its readers see them, then passes them to other observers."""

    __slots__ = ("_cache", "_epoch", "_observers")

    def __init__(self, cache: Cache, *observers: WriteObserver) -> None:
        self._cache = cache
        self._epoch = cache.epoch
        self._observers = observers

    def written(self, write: Write, obj: Object | Unstructured) -> None:
        """Show the object as in the server's answer."""
        if self._cache.epoch != self._epoch:
            self.unknown(write.kind, write.key)
            return
        self._cache.record_write(obj, kind=_kind(write.kind))
        for observer in self._observers:
            observer.written(write, obj)

    def deleted(self, kind: GroupVersionKind, key: Key, uid: str) -> None:
        """Hide the object."""
        if self._cache.epoch != self._epoch:
            self.unknown(kind, key)
            return
        self._cache.record_delete(_kind(kind), key, uid)
        for observer in self._observers:
            observer.deleted(kind, key, uid)

    def touched(self, kind: GroupVersionKind, key: Key | None) -> None:
        """Read from the server next time. The key of an object with a generated name is unknown."""
        self._doubt(kind, key)
        for observer in self._observers:
            observer.touched(kind, key)

    def unknown(self, kind: GroupVersionKind, key: Key | None, *, namespace: str = "") -> None:
        """Read from the server next time; without a key, for every object of the kind, or of one namespace."""
        if key is None:
            self._cache.record_unknown(_kind(kind), None, namespace=namespace)
        else:
            self._doubt(kind, key)
        for observer in self._observers:
            observer.unknown(kind, key, namespace=namespace)

    def _doubt(self, kind: GroupVersionKind, key: Key | None) -> None:
        if key is not None and key.name:
            self._cache.record_unknown(_kind(kind), key)


@lru_cache
def _kind(kind: GroupVersionKind) -> Kind:
    return Kind(kind.api_version, kind.kind)
