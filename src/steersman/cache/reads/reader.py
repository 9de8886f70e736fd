"""Reads from the cache, never older than the program's own writes.

Guarantees
- **Never older than yourself.** Once a write is recorded, get, list and index reads immediately return that object as
  written or newer. No read waits for the watch or for another key.
- Each read decodes its own copy: modifying it affects no other reader.
- After a write with an unknown outcome, the next read of the key goes to the server once.
- A list is at least as new as our own writes, object by object; it is not a snapshot.
- Uncached kinds are read from the server, and so are kinds that the program may not list, both within the cache's scope.
- A kind of which only metadata is cached is read through `CacheReader.metadata`; a read of whole objects is an error.
- A read of a namespace outside the ranges of a divided kind goes to the server, and so does one that the ranges do not
  cover wholly. No list is partial.
- Of a referenced kind, a read of an object that nothing refers to goes to the server, and so does a list. A lookup by an
  index is an error.
- If the server no longer serves a kind in any version, reads find no objects of it: they are gone. If it serves another version,
  reads show what the cache has.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar, overload

from steersman.cache.contents import IndexName
from steersman.cache.indexes import IndexFunction
from steersman.cache.informer import Informer
from steersman.cache.reads.errors import listed, metadata_alone, not_found, whole
from steersman.cache.reads.visible_objects import objects_outside, visible_object, visible_objects
from steersman.cache.store import OWNERS, Found
from steersman.cache.stored_object import StoredObject, StoredView
from steersman.client import Client, KindScope, ListOf, ScopedReads, Undecodable
from steersman.errors import DecodeError, NotCached, NotFound
from steersman.objects import Key, Kind, Object, Selector, Unstructured, kind_name, uid_of

_log = logging.getLogger("steersman.cache")

ObjectT = TypeVar("ObjectT", bound=Object)
#: Named here because `CacheReader.list` hides the built-in name inside the class.
Views: TypeAlias = list[StoredView]
#: A label selector, in any of the forms that the client accepts.
Labels: TypeAlias = Selector | str | dict[str, str]

_EVERYTHING = Selector()


def as_selector(labels: Labels | None) -> Selector:
    """Return a selector from any of the forms that the client accepts."""
    match labels:
        case None:
            return Selector()
        case str():
            return Selector.parse(labels)
        case dict():
            return Selector.of(labels)
        case Selector():
            return labels
        case _:  # without this, a list as labels would select everything
            raise TypeError(
                f'{labels!r} are not labels; write "app=web", {{"app": "web"}} or Selector.parse("app=web")'
            )


class Informers(Protocol):
    """The informers that a reader reads from: those of a `Cache`."""

    @property
    def client(self) -> Client:
        """The client for kinds that are not cached."""
        ...

    @property
    def epoch(self) -> int:
        """How often the server was seen to be restored from a backup."""
        ...

    @overload
    def informer(self, kind: type[ObjectT]) -> Informer[ObjectT]: ...
    @overload
    def informer(self, kind: Kind) -> Informer[Unstructured]: ...

    def index_function(self, kind: type[Any] | Kind, name: str) -> IndexFunction:
        """Return the function of a declared index; raise `UnknownIndex` if it is not declared."""
        ...

    def is_uncached(self, kind: type[Any] | Kind) -> bool:
        """Whether a kind is always read from the server."""
        ...

    def scope(self, kind: type[Any] | Kind, namespaced: bool) -> KindScope:  # noqa: FBT001 - as `Scopes` of the client
        """What readers see of a kind, from the cache or from the server."""
        ...

    def is_metadata_only(self, kind: type[Any] | Kind) -> bool:
        """Whether only the metadata of a kind is cached."""
        ...

    def metadata_kind(self, kind: type[Any] | Kind) -> type[Any] | Kind | None:
        """The kind, or another name of it, of which only metadata is cached; None if it is not cached so."""
        ...

    async def key(self, kind: type[Any] | Kind, key: Key | str | tuple[str, str]) -> Key:
        """Resolve a key as the client does: a bare name is in the client's namespace."""
        ...


class CacheReader:
    """Answers get, list and index reads from the cache; made by ``cache.reader()``."""

    def __init__(self, cache: Informers) -> None:
        self._cache = cache
        self._server = ScopedReads(cache.client.pipeline.server, cache.scope)
        #: Made on first use, and kept: every reconcile needs it.
        self._metadata: MetadataCacheReader | None = None

    @property
    def metadata(self) -> MetadataCacheReader:
        """The same reads, of kinds of which only metadata is cached."""
        if self._metadata is None:
            self._metadata = MetadataCacheReader(self._cache)
        return self._metadata

    def scope(self, kind: type[Any] | Kind, namespaced: bool) -> KindScope:  # noqa: FBT001 - as `Scopes` of the client
        """What this reader sees of a kind, from the cache or from the server."""
        return self._cache.scope(kind, namespaced)

    def answers(self, kind: type[Any] | Kind) -> bool:
        """Whether whole objects of a kind are for this reader: always. Raise `NotCached` if only metadata is cached."""
        if self.has_metadata_alone(kind):
            raise metadata_alone(kind)
        return True

    def has_metadata_alone(self, kind: type[Any] | Kind) -> bool:
        """Whether only the metadata of a kind is cached, so that `metadata` reads it."""
        return self._cache.is_metadata_only(kind)

    def is_current(self, kind: type[Any] | Kind) -> bool:
        """Whether reads of a kind miss no change but those on their way: its watches are healthy, or the server answers."""
        return self._cache.is_uncached(kind) or self._cache.informer(kind).is_current

    @property
    def epoch(self) -> int:
        """How often the server was seen to be restored from a backup."""
        return self._cache.epoch

    @overload
    async def get(self, kind: type[ObjectT], key: Key | str | tuple[str, str]) -> ObjectT: ...
    @overload
    async def get(self, kind: Kind, key: Key | str | tuple[str, str]) -> Unstructured: ...

    async def get(self, kind: type[Any] | Kind, key: Key | str | tuple[str, str]) -> Any:
        """Read one object; raise `NotFound` if it does not exist."""
        if self._cache.is_uncached(kind):
            return await self._server.get(kind, key, None)
        informer = await self._informer(kind)
        if informer.sync.state == "withdrawn":
            raise not_found(informer, Key.parse(key) if isinstance(key, str) else Key(*key))
        key = await self._cache.key(kind, key)
        self._check(informer, key.namespace)
        if self._is_denied(informer, "get") or not await informer.obtain(key):
            return await self._server.get(kind, key, None)
        stored = await visible_object(informer, key)
        if stored is None:
            raise not_found(informer, key)
        return informer.decode(stored)

    @overload
    async def find(self, kind: type[ObjectT], key: Key | str | tuple[str, str]) -> ObjectT | None: ...
    @overload
    async def find(self, kind: Kind, key: Key | str | tuple[str, str]) -> Unstructured | None: ...

    async def find(self, kind: type[Any] | Kind, key: Key | str | tuple[str, str]) -> Any:
        """Read one object; return None if it does not exist."""
        try:
            return await self.get(kind, key)
        except NotFound:
            return None

    @overload
    async def list(
        self, kind: type[ObjectT], *, namespace: str | None = ..., labels: Labels | None = ...
    ) -> ListOf[ObjectT]: ...
    @overload
    async def list(
        self, kind: Kind, *, namespace: str | None = ..., labels: Labels | None = ...
    ) -> ListOf[Unstructured]: ...

    async def list(
        self, kind: type[Any] | Kind, *, namespace: str | None = None, labels: Labels | None = None
    ) -> ListOf[Any]:
        """Read the objects of a kind that a selector selects, in all namespaces or in one."""
        cached = await self._cached(kind, namespace, labels)
        if cached is None:
            return await self._server.list(kind, {"namespace": namespace, "labels": labels})
        informer, selected = cached
        return self._decoded(informer, selected)

    async def head(
        self, kind: type[Any] | Kind, *, namespace: str | None = None, labels: Labels | None = None
    ) -> ListOf[Any]:
        """Read the first object that `list` would return, by namespace and name; decode no other."""
        cached = await self._cached(kind, namespace, labels)
        if cached is None:
            return await self._server.head(kind, {"namespace": namespace, "labels": labels})
        informer, selected = cached
        first = min(selected, key=lambda stored: stored.key, default=None)
        return self._decoded(informer, () if first is None else (first,))

    async def _cached(
        self, kind: type[Any] | Kind, namespace: str | None, labels: Labels | None
    ) -> tuple[Informer[Any], Found] | None:
        """Return the informer of a kind and the objects that a selector selects; None if only the server can answer."""
        if self._cache.is_uncached(kind):
            return None
        informer = await self._informer(kind)
        selector = as_selector(labels)
        if namespace:
            self._check(informer, namespace)
        if self._is_denied(informer, "list"):
            return None

        def belongs(stored: StoredObject) -> bool:
            return (not namespace or stored.key.namespace == namespace) and selector.matches(stored.own_labels)

        shown = await visible_objects(
            informer,
            informer.store.index_for(namespace=namespace or "", labels=selector),
            lambda: informer.store.list(namespace=namespace or "", labels=selector),
            belongs,
            namespace=namespace,
        )
        return None if shown is None else (informer, shown)

    @overload
    async def by_index(
        self, kind: type[ObjectT], name: str, value: Hashable, *, namespace: str | None = ...
    ) -> ListOf[ObjectT]: ...
    @overload
    async def by_index(
        self, kind: Kind, name: str, value: Hashable, *, namespace: str | None = ...
    ) -> ListOf[Unstructured]: ...

    async def by_index(
        self, kind: type[Any] | Kind, name: str, value: Hashable, *, namespace: str | None = None
    ) -> ListOf[Any]:
        """Read the objects that an index (see `Cache.add_index`) has under a value, in all namespaces or in one."""
        self._refuse_uncached(kind, f"index {name!r}")
        informer = whole(listed(await self._informer(kind)), f"index {name!r}")
        # The cache may have metadata under the other name of the kind, and the index with it.
        function = self._cache.index_function(informer.kind, name)
        if namespace:
            self._check(informer, namespace)

        def found() -> Iterable[StoredObject]:
            under = informer.store.by_index(name, value)
            return [each for each in under if each.key.namespace == namespace] if namespace else under

        def belongs(stored: StoredObject) -> bool:
            here = not namespace or stored.key.namespace == namespace
            return here and value in informer.index_values(function, stored, name=name)

        shown = await self._shown(informer, IndexName("function", name), found, belongs, namespace=namespace)
        return self._decoded(informer, shown)

    @overload
    async def owned_by(self, kind: type[ObjectT], owner: Object | Unstructured | str) -> ListOf[ObjectT]: ...
    @overload
    async def owned_by(self, kind: Kind, owner: Object | Unstructured | str) -> ListOf[Unstructured]: ...

    async def owned_by(self, kind: type[Any] | Kind, owner: Object | Unstructured | str) -> ListOf[Any]:
        """Read the objects whose owner references include ``owner``, an object or a uid."""
        self._refuse_uncached(kind, "the owner index")
        uid = owner if isinstance(owner, str) else uid_of(owner)
        if not uid:
            raise ValueError(f"{kind_name(kind)}: the owner has no uid; create it before you read what it owns")
        informer = whole(listed(await self._informer(kind)), "the owner index")
        # An owner in a namespace owns nothing in another one.
        namespace = None if isinstance(owner, str) else owner.key.namespace
        shown = await self._shown(
            informer,
            OWNERS,
            lambda: informer.store.by_owner(uid),
            lambda stored: uid in stored.owners,
            namespace=namespace,
        )
        return self._decoded(informer, shown)

    def leaves_out(self, kind: type[Any] | Kind, labels: Mapping[str, str]) -> str:
        """The label selector of the cache, if it leaves out objects of a kind with these labels; empty otherwise."""
        if self._cache.is_uncached(kind):
            return ""
        selector = self._cache.informer(kind).options.labels
        return "" if selector.matches(labels) else str(selector)

    async def view(self, kind: type[Any] | Kind, key: Key) -> StoredView | None:
        """Return a view of one object, or None if it does not exist. The key must include the namespace."""
        self._refuse_uncached(kind, "a view")
        informer = await self._synced(kind)
        self._check(informer, key.namespace)
        if not await informer.obtain(key):
            raw, _ = await informer.read_live(key)
            stored = None if raw is None else informer.intake.admit(raw)
        else:
            stored = await visible_object(informer, key)
        return None if stored is None else informer.view(stored)

    async def views_owned_by(
        self, kind: type[Any] | Kind, uid: str, *, but: Container[Key] = (), namespace: str = ""
    ) -> Views:
        """Return views of the objects owned by a uid, except those with a key in ``but``.

        ``namespace`` is that of the owner, if it has one.
        """
        self._refuse_uncached(kind, "the owner index")
        informer = whole(await self._synced(kind), "the owner index")
        store = informer.store
        if informer.overlay.is_empty and store.has_index(OWNERS) and informer.covers(namespace):
            shown = store.by_owner(uid)
        else:
            shown = await self._shown(
                informer,
                OWNERS,
                lambda: store.by_owner(uid),
                lambda stored: uid in stored.owners,
                namespace=namespace,
            )
        return [informer.view(stored) for stored in shown if stored.key not in but]

    async def views_labeled(self, kind: type[Any] | Kind, label: str, value: str, *, namespace: str = "") -> Views:
        """Return views of the objects with a label value, in one namespace or in all."""
        self._refuse_uncached(kind, "an index of labels")
        informer = whole(await self._synced(kind), "an index of labels")
        selector = Selector.of({label: value})
        shown = await self._shown(
            informer,
            informer.store.index_for(labels=selector),
            lambda: informer.store.list(labels=selector),
            lambda stored: stored.labels.get(label) == value,
            namespace=namespace,
            labels=selector,
        )
        # The values are uids: an index of labels in a namespace would find the same objects, and take memory.
        return [informer.view(each) for each in shown if not namespace or each.key.namespace == namespace]

    # internals

    async def _synced(self, kind: type[Any] | Kind) -> Informer[Any]:
        """Return the informer of a kind once its store can answer; raise the error if listing is denied."""
        return listed(await self._readable(kind))

    async def _informer(self, kind: type[Any] | Kind) -> Informer[Any]:
        """Return the informer of a kind once its store can answer, or listing is denied; it has whole objects."""
        informer = await self._readable(kind)
        if informer.options.metadata_only:
            raise metadata_alone(kind)
        return informer

    async def _readable(self, kind: type[Any] | Kind) -> Informer[Any]:
        """Return the informer of a kind once its store can answer, or listing is denied."""
        informer = self._cache.informer(kind)
        if informer.synced and informer.settled:
            return informer
        await informer.wait_settled()
        if informer.sync.state == "unlisted" and informer.denied is None:
            raise await self._cache.client.discovery.unserved(informer.gvk)
        return informer

    def _is_denied(self, informer: Informer[Any], verb: str) -> bool:
        """Whether reads must go to the server because listing is denied; logs that once."""
        denied = informer.denied
        if denied is None:
            return False
        if not informer.sync.reads_live:
            informer.sync.reads_live = True
            name = informer.gvk.kind
            _log.warning(
                "%s cannot be cached, so each %s goes to the API server. Allow the verbs list and watch, or exclude the kind"
                " with Manager(uncached=[%s]): %s",
                name,
                verb,
                name,
                str(denied).partition("\n")[0],
            )
        return True

    def _decoded(self, informer: Informer[Any], shown: Iterable[StoredObject]) -> ListOf[Any]:
        items: list[Any] = []
        undecodable: list[Undecodable] = []
        for stored in shown:
            try:
                items.append(informer.decode(stored))
            except DecodeError as error:
                undecodable.append(Undecodable(stored.key, error, stored.raw))
        watermark = informer.store.lowest_watermark
        return ListOf(
            items=items, resource_version="" if watermark is None else str(watermark), undecodable=undecodable
        )

    async def _shown(
        self,
        informer: Informer[Any],
        index: IndexName | None,
        found: Callable[[], Iterable[StoredObject]],
        belongs: Callable[[StoredObject], bool],
        *,
        namespace: str | None = None,
        labels: Selector = _EVERYTHING,
    ) -> Found:
        """Return the visible objects that match; those of the server if only it can answer. The labels narrow its list."""
        shown = await visible_objects(informer, index, found, belongs, namespace=namespace)
        if shown is None:
            return [each for each in await objects_outside(informer, namespace, labels) if belongs(each)]
        return shown

    def _check(self, informer: Informer[Any], namespace: str) -> None:
        if namespaces := informer.options.namespaces:
            KindScope(namespaces=namespaces).check(informer.gvk, namespace)

    def _refuse_uncached(self, kind: type[Any] | Kind, what: str) -> None:
        if self._cache.is_uncached(kind):
            raise NotCached(
                f"{kind_name(kind)} is excluded from the cache (uncached=...), so {what} cannot be used: list it with a"
                " selector, or cache it"
            )


class MetadataCacheReader(CacheReader):
    """Answers the same reads for kinds of which only metadata is cached; the objects are `PartialObjectMetadata`."""

    def __init__(self, cache: Informers) -> None:
        super().__init__(cache)
        self._server = ScopedReads(cache.client.pipeline.server.metadata, cache.scope)

    def answers(self, kind: type[Any] | Kind) -> bool:
        """Whether only the metadata of a kind is cached."""
        return self._cache.metadata_kind(kind) is not None

    async def _informer(self, kind: type[Any] | Kind) -> Informer[Any]:
        cached = self._cache.metadata_kind(kind)
        if cached is None:
            raise NotCached(f"{kind_name(kind)} is not cached as metadata; use the client without .metadata")
        return await self._readable(cached)
