"""A program's informers: one per kind, shared, running while it has users.

Guarantees
- An informer starts with its first use and stops with its last.
- One ``async with`` owns every task; no task outlives the block. After it, reads raise: the contents would be old.
- The program's own writes, once recorded, are visible to every reader of this cache.
- **A restored server is noticed once for all kinds.** As soon as one kind shows that the server was restored from a backup,
  every kind is listed again, and reads wait for their list. A write until then has an unknown outcome: its version is not
  comparable with those of the store, and the list may be older.
- **Kinds recover together.** As soon as the watch of one kind recovers after a failure of the server, the other kinds retry
  at once, and their reads wait for it for up to 5 seconds. Otherwise a reconcile would see that a child is gone, and not
  that its owner is, for as long as the backoff of the owner's watch lasts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from steersman.aio import Supervisor
from steersman.cache.delivery import HandlerRegistration
from steersman.cache.indexes import IndexFunction
from steersman.cache.informer import Informer, InformerStatistics
from steersman.cache.intake import KindOptions, shows_removal
from steersman.cache.reads.reader import CacheReader
from steersman.cache.reflector import Settings
from steersman.cache.store import UnknownIndex
from steersman.client import Client, KindScope
from steersman.objects import (
    GroupVersionKind,
    Key,
    Kind,
    Object,
    Unstructured,
    is_partial,
    kind_name,
    raw_bytes,
    uid_of,
)
from steersman.wire import ShardSelector

if TYPE_CHECKING:
    from steersman.cache.reads.referrers import ReferenceFunction, Referrers

T = TypeVar("T")
ObjectT = TypeVar("ObjectT", bound=Object)


class _Shared:
    """An informer and its use count."""

    def __init__(self, informer: Informer[Any]) -> None:
        self.informer = informer
        self.uses = 0
        self.stop = asyncio.Event()

    async def run(self) -> None:
        async with self.informer:
            await self.stop.wait()


class _Tracked:
    """The references of one kind to another, and how many use them."""

    def __init__(
        self, referrers: Referrers, registration: HandlerRegistration, shared: tuple[_Shared, _Shared]
    ) -> None:
        self.referrers = referrers
        self.registration = registration
        self.shared = shared
        self.uses = 0


class Use(Generic[T]):
    """Keeps a shared informer running for the length of a block: ``async with cache.use(Site) as informer:``."""

    def __init__(self, cache: Cache, kind: type[Any] | Kind) -> None:
        self._cache = cache
        self._kind = kind
        self._shared: _Shared | None = None

    async def __aenter__(self) -> Informer[T]:
        if self._shared is not None:
            raise RuntimeError("this use was entered already; call cache.use() again")
        self._shared = self._cache._acquire(self._kind)  # noqa: SLF001 - a private name of the same module
        return self._shared.informer

    async def __aexit__(self, *_: object) -> None:
        assert self._shared is not None
        self._cache._release(self._kind, self._shared)  # noqa: SLF001 - a private name of the same module


class Cache:
    """A local copy of a server's objects: ``async with Cache(client) as cache: site = await cache.reader().get(Site, key)``.

    ``kinds`` limits what is cached of a kind; the default is everything. Kinds in ``uncached`` are always read from the
    server.
    """

    def __init__(
        self,
        client: Client,
        *,
        kinds: Mapping[type[Any] | Kind, KindOptions] | None = None,
        uncached: Iterable[type[Any] | Kind] = (),
        settings: Settings | None = None,
    ) -> None:
        self.client = client
        self._options = dict(kinds or {})
        #: The options that the program gave. A class and a `Kind` may both stand for a kind: those of one hold for both.
        self._given_options = {kind.gvk(): options for kind, options in self._options.items()}
        self._uncached = frozenset(kind.gvk() for kind in uncached)
        self._settings = settings
        self._indexes: dict[type[Any] | Kind, dict[str, IndexFunction]] = {}
        self._shared: dict[type[Any] | Kind, _Shared] = {}
        self._pinned: dict[type[Any] | Kind, _Shared] = {}
        #: By owner, kind and function.
        self._tracked: dict[tuple[type[Any] | Kind, type[Any] | Kind, ReferenceFunction], _Tracked] = {}
        #: The informers of each kind: computed on first use, cleared when an informer starts or stops.
        self._informers_by_gvk: dict[GroupVersionKind, list[Informer[Any]]] = {}
        self._tasks: Supervisor | None = None
        #: How often the server was seen to be restored from a backup. Generations and versions of different epochs are
        #: not comparable.
        self.epoch = 0

    def __repr__(self) -> str:
        return f"<Cache of {self.client!r}: {len(self._shared)} kinds>"

    async def __aenter__(self) -> Self:
        if self._tasks is not None:
            raise RuntimeError(
                "this cache is running already; make another Cache, or share its informers with cache.use()"
            )
        self._tasks = await Supervisor().__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        assert self._tasks is not None
        self._tasks.cancel()
        try:
            await self._tasks.__aexit__(*error)
        finally:
            # Nothing follows the server any more: a read must fail rather than find old contents.
            self._tasks = None
            self._pinned.clear()
            self._tracked.clear()
            self._shared.clear()
            self._informers_by_gvk.clear()

    # informers

    @overload
    def use(self, kind: type[ObjectT]) -> Use[ObjectT]: ...
    @overload
    def use(self, kind: Kind) -> Use[Unstructured]: ...

    def use(self, kind: type[Any] | Kind) -> Use[Any]:
        """Use a kind's shared informer for the length of a block."""
        return Use(self, kind)

    @overload
    def informer(self, kind: type[ObjectT]) -> Informer[ObjectT]: ...
    @overload
    def informer(self, kind: Kind) -> Informer[Unstructured]: ...

    def informer(self, kind: type[Any] | Kind) -> Informer[Any]:
        """Return a kind's informer and keep it running until the cache stops."""
        if kind not in self._pinned:
            self._pinned[kind] = self._acquire(kind)
        return self._pinned[kind].informer

    def track(self, owner: type[Any] | Kind, kind: type[Any] | Kind, function: ReferenceFunction) -> Referrers:
        """Note to which objects of a kind the objects of another refer, until `untrack`. Of a referenced kind, cache them."""
        tracked = self._tracked.get((owner, kind, function))
        if tracked is None:
            from steersman.cache.reads.referrers import Referrers  # noqa: PLC0415 - few controllers refer to objects

            shared = self._acquire(owner), self._acquire(kind)
            referrers = Referrers(shared[1].informer, function)
            registration = shared[0].informer.add_handler(referrers.handle, on_left=referrers.forget)
            tracked = self._tracked[owner, kind, function] = _Tracked(referrers, registration, shared)
        tracked.uses += 1
        return tracked.referrers

    def untrack(self, owner: type[Any] | Kind, kind: type[Any] | Kind, function: ReferenceFunction) -> None:
        """End a use of `track`; the last one ends the references."""
        tracked = self._tracked.get((owner, kind, function))
        if tracked is None:
            return  # the cache has ended
        tracked.uses -= 1
        if not tracked.uses:
            del self._tracked[owner, kind, function]
            tracked.registration.remove()
            tracked.referrers.clear()
            self._release(owner, tracked.shared[0])
            self._release(kind, tracked.shared[1])

    def add_index(self, kind: type[Any] | Kind, name: str, function: IndexFunction) -> None:
        """Index the objects of a kind by a function: ``cache.add_index(Pod, "node", lambda pod: [pod.spec.node_name])``."""
        indexes = self._indexes.setdefault(kind, {})
        if name in indexes:
            raise ValueError(f"{kind.gvk()} already has an index {name!r}; choose another name for one of them")
        missing = [each for each in self._informers_of(kind) if name not in self._indexes_of(each.kind)]
        indexes[name] = function
        try:
            added = [each for each in missing if name in self._indexes_of(each.kind)]
        except ValueError:
            del indexes[name]
            raise
        for informer in added:
            informer.add_index(name, function)

    def index_function(self, kind: type[Any] | Kind, name: str) -> IndexFunction:
        """Return the function of a declared index; raise `UnknownIndex` if it is not declared."""
        indexes = self._indexes_of(kind)
        if name not in indexes:
            known = ", ".join(sorted(indexes)) or "none"
            raise UnknownIndex(
                f"{kind_name(kind)} has no index {name!r}; declare it with manager.index({kind_name(kind)}, {name!r}, ...)"
                f" before run, or with cache.add_index. Declared: {known}"
            )
        return indexes[name]

    def is_uncached(self, kind: type[Any] | Kind) -> bool:
        """Whether a kind is always read from the server."""
        return kind.gvk() in self._uncached

    def scope(self, kind: type[Any] | Kind, namespaced: bool) -> KindScope:  # noqa: FBT001 - as `Scopes` of the client
        """What readers of this cache see of a kind, from the cache or from the server."""
        options = self._options_of(kind) or KindOptions()
        namespaces = options.namespaces if namespaced else ()
        return KindScope(namespaces=namespaces, labels=options.labels, fields=options.fields)

    def is_metadata_only(self, kind: type[Any] | Kind) -> bool:
        """Whether only the metadata of a kind is cached."""
        shared = self._shared.get(kind)
        options = self._options_of(kind) if shared is None else shared.informer.options
        return options is not None and options.metadata_only and not self.is_uncached(kind)

    def metadata_kind(self, kind: type[Any] | Kind) -> type[Any] | Kind | None:
        """The kind, or another name of it, of which only metadata is cached; None if it is not cached so."""
        running = [each.kind for each in self._informers_of(kind) if each.options.metadata_only]
        if running:
            return kind if kind in running else running[0]
        return kind if self.is_metadata_only(kind) else None

    def _indexes_of(self, kind: type[Any] | Kind) -> dict[str, IndexFunction]:
        """The indexes of a kind. Metadata is the same under each name of the kind, so it has the indexes of all."""
        own = self._indexes.get(kind, {})
        if not self.is_metadata_only(kind):
            return own
        gvk, found = kind.gvk(), dict(own)
        for known, indexes in self._indexes.items():
            for name, function in indexes.items() if known.gvk() == gvk else ():
                if found.setdefault(name, function) is not function:
                    raise ValueError(
                        f"{gvk} has an index {name!r} by its class and another by its Kind, but one cache of metadata;"
                        " choose another name for one of them"
                    )
        return found

    def reader(self) -> CacheReader:
        """Return a reader that answers get, list and index reads from the cache."""
        return CacheReader(self)

    def statistics(self) -> tuple[InformerStatistics, ...]:
        """Return the statistics of every informer."""
        return tuple(shared.informer.statistics() for shared in self._shared.values())

    def _acquire(self, kind: type[Any] | Kind) -> _Shared:
        if self._tasks is None:
            raise RuntimeError(
                f"{kind_name(kind)}: the cache is not running, or has ended, and follows no server; use it inside"
                " `async with Cache(client) as cache:`, or read from the server with the client"
            )
        if self.is_uncached(kind):
            raise ValueError(f"{kind.gvk()} is excluded from this cache (uncached=...): it has no informer")
        shared = self._shared.get(kind)
        if shared is None:
            options = self._informer_options(kind)
            informer: Informer[Any] = Informer(
                self.client,
                kind,
                options=options,
                shards=self._informer_shards(kind),
                # The owners of references are those of this process, so what they refer to is divided already.
                divided=self._is_divided(kind) and not (options is not None and options.referenced),
                settings=self._settings,
                on_restore=self._on_restore,
                on_recovery=self._on_recovery,
            )
            for name, function in self._indexes_of(kind).items():
                informer.add_index(name, function)
            shared = self._shared[kind] = _Shared(informer)
            self._informers_by_gvk.clear()
            self._tasks.start(shared.run(), name=f"informer of {kind.gvk().kind}")
        shared.uses += 1
        return shared

    def _release(self, kind: type[Any] | Kind, shared: _Shared) -> None:
        shared.uses -= 1
        if not shared.uses:
            shared.stop.set()
            if self._shared.get(kind) is shared:
                del self._shared[kind]
                self._informers_by_gvk.clear()

    def _on_restore(self) -> None:
        self.epoch += 1
        for shared in self._shared.values():
            shared.informer.renew()

    def _on_recovery(self) -> None:
        for shared in self._shared.values():
            shared.informer.recover()

    def _options_of(self, kind: type[Any] | Kind) -> KindOptions | None:
        """The options of a kind; None if it has none."""
        return self._options.get(kind) or self._given_options.get(kind.gvk())

    def _informer_options(self, kind: type[Any] | Kind) -> KindOptions | None:
        """The options of a kind's informer. A subclass may cache less of the kind."""
        return self._options_of(kind)

    def _informer_shards(self, kind: type[Any] | Kind) -> ShardSelector | None:
        """The shard of a kind's informer; None for all objects. A subclass may cache a shard."""
        del kind
        return None

    def _is_divided(self, kind: type[Any] | Kind) -> bool:
        """Whether an informer follows only the ranges that it gains. A subclass may divide kinds."""
        del kind
        return False

    async def key(self, kind: type[Any] | Kind, key: Key | str | tuple[str, str]) -> Key:
        """Resolve a key as the client does: a bare name is in the client's namespace."""
        namespace, name = Key.parse(key) if isinstance(key, str) else key
        if namespace:
            return Key(namespace, name)
        namespaced = (
            (await self.client.discovery.resource_of(kind.gvk())).namespaced
            if isinstance(kind, Kind)
            else kind.__resource__.namespaced
        )
        return Key(self.client.namespace if namespaced else "", name)

    # our own writes

    def record_write(self, obj: Object | Unstructured, *, kind: type[Any] | Kind | None = None) -> None:
        """Make the response to a write visible to every reader.

        Do not pass the response to a dry run, or to a subresource of another kind. Partial objects are ignored.
        """
        partial = obj.partial if isinstance(obj, Unstructured) else is_partial(obj)
        raw = raw_bytes(obj)
        if partial or raw is None:
            return
        kind = kind or _kind_of(obj)
        if shows_removal(raw):
            self.record_delete(kind, obj.key, uid_of(obj) or "")
            return
        for informer in self._informers_of(kind):
            stored = informer.intake.admit_answer(raw)
            if stored is not None and informer.sync.restoring:
                informer.overlay.record_unknown(stored.key)
            elif stored is not None:
                informer.overlay.record_write(stored, selected=informer.intake.selects(stored, raw))

    def record_delete(self, kind: type[Any] | Kind, key: Key, uid: str) -> None:
        """Hide a deleted object from every reader, by its uid. Call it only for an object that no finalizer keeps."""
        for informer in self._informers_of(kind):
            if informer.sync.restoring:
                informer.overlay.record_unknown(key)
            else:
                informer.overlay.record_delete(key, uid, base=informer.store.get(key))

    def record_unknown(self, kind: type[Any] | Kind, key: Key | None, *, namespace: str = "") -> None:
        """Record a write with an unknown outcome: the next read of its key asks the server.

        ``key=None`` means every object of the kind, or every object in ``namespace``.
        """
        for informer in self._informers_of(kind):
            keys = (key,) if key is not None else dict.fromkeys((*informer.store.keys(), *informer.overlay.touched()))
            for affected in keys:
                if not namespace or affected.namespace == namespace:
                    informer.overlay.record_unknown(affected)

    def _informers_of(self, kind: type[Any] | Kind) -> list[Informer[Any]]:
        """Return every informer of the kind: a class and a `Kind` may both stand for it."""
        gvk = kind.gvk()
        informers = self._informers_by_gvk.get(gvk)
        if informers is None:
            informers = [shared.informer for known, shared in self._shared.items() if known.gvk() == gvk]
            self._informers_by_gvk[gvk] = informers
        return informers


def _kind_of(obj: Object | Unstructured) -> type[Any] | Kind:
    return Kind(obj.api_version, obj.kind) if isinstance(obj, Unstructured) else type(obj)
