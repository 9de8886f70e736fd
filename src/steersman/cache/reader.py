"""Reading from the cache, never older than our own writes.

Guarantees
- **Never older than yourself.** After a write was recorded, get, list and index reads show that object as written or
  newer, at once: no read waits for the watch, and none for another key.
- Every object handed out is decoded for this reader alone; changing it changes nothing else.
- A key whose last write had an unknown outcome is read live once. Lists are as new as our writes object by object; they
  are no snapshot of one moment.
- A kind that is not cached is read from the server.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from steersman.cache.informer import Informer
from steersman.cache.store import Found
from steersman.cache.stored import Stored, View
from steersman.client import ListOf, Undecodable
from steersman.client.bindings import uid_of
from steersman.client.missing import kind_not_served
from steersman.objects import Key, Kind, Object, Selector, Unstructured
from steersman.objects.errors import ApiError, DecodeError, NotFound
from steersman.objects.status import Status, StatusDetails

if TYPE_CHECKING:
    from steersman.cache.cache import Cache

ObjectT = TypeVar("ObjectT", bound=Object)
#: The class has a method ``list``.
Keys: TypeAlias = list[Key]
Views: TypeAlias = list[View]

#: More keys in doubt than this are read together with everything else.
_ONE_BY_ONE = 32


class NotCached(ApiError):
    """What was asked for lies outside of what the cache holds."""


def as_selector(labels: Selector | str | dict[str, str] | None) -> Selector:
    """A label selector in any of the forms in which the client takes it."""
    match labels:
        case None:
            return Selector()
        case str():
            return Selector.parse(labels)
        case dict():
            return Selector.of(labels)
        case Selector():
            return labels


class CacheReader:
    """The reading verbs, answered from the cache; made by ``cache.reader()``."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    @overload
    async def get(self, kind: type[ObjectT], key: Key | str | tuple[str, str]) -> ObjectT: ...
    @overload
    async def get(self, kind: Kind, key: Key | str | tuple[str, str]) -> Unstructured: ...

    async def get(self, kind: type[Any] | Kind, key: Key | str | tuple[str, str]) -> Any:
        """Read one object; `NotFound` if there is none."""
        if self._cache.is_uncached(kind):
            return await self._cache.client.get(kind, key)
        informer = await self._synced(kind)
        key = await self._cache.key(kind, key)
        self._check(informer, key.namespace)
        stored = await self._current(informer, key)
        if stored is None:
            raise _not_found(informer, key)
        return informer.decode(stored)

    @overload
    async def find(self, kind: type[ObjectT], key: Key | str | tuple[str, str]) -> ObjectT | None: ...
    @overload
    async def find(self, kind: Kind, key: Key | str | tuple[str, str]) -> Unstructured | None: ...

    async def find(self, kind: type[Any] | Kind, key: Key | str | tuple[str, str]) -> Any:
        """Read one object, or None if there is none."""
        try:
            return await self.get(kind, key)
        except NotFound:
            return None

    @overload
    async def list(
        self, kind: type[ObjectT], *, namespace: str | None = ..., labels: Selector | str | dict[str, str] | None = ...
    ) -> ListOf[ObjectT]: ...
    @overload
    async def list(
        self, kind: Kind, *, namespace: str | None = ..., labels: Selector | str | dict[str, str] | None = ...
    ) -> ListOf[Unstructured]: ...

    async def list(
        self,
        kind: type[Any] | Kind,
        *,
        namespace: str | None = None,
        labels: Selector | str | dict[str, str] | None = None,
    ) -> ListOf[Any]:
        """Read all objects of a kind, in all namespaces or in one, that a selector selects."""
        if self._cache.is_uncached(kind):
            return await self._cache.client.list(kind, namespace=namespace, labels=labels)
        informer = await self._synced(kind)
        selector = as_selector(labels)
        if namespace:
            self._check(informer, namespace)

        def belongs(stored: Stored) -> bool:
            return (not namespace or stored.key.namespace == namespace) and selector.matches(stored.own_labels)

        return await self._several(
            informer, lambda: informer.store.list(namespace=namespace or "", labels=selector), belongs
        )

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
        function = self._cache.index_function(kind, name)
        informer = await self._synced(kind)
        if namespace:
            self._check(informer, namespace)

        def found() -> Iterable[Stored]:
            under = informer.store.by_index(name, value)
            return [each for each in under if each.key.namespace == namespace] if namespace else under

        def belongs(stored: Stored) -> bool:
            here = not namespace or stored.key.namespace == namespace
            return here and value in informer.index_values(function, stored)

        return await self._several(informer, found, belongs)

    @overload
    async def owned_by(self, kind: type[ObjectT], owner: Object | Unstructured | str) -> ListOf[ObjectT]: ...
    @overload
    async def owned_by(self, kind: Kind, owner: Object | Unstructured | str) -> ListOf[Unstructured]: ...

    async def owned_by(self, kind: type[Any] | Kind, owner: Object | Unstructured | str) -> ListOf[Any]:
        """Read the objects that name an object, or its uid, among their owners."""
        self._refuse_uncached(kind, "the owner index")
        uid = owner if isinstance(owner, str) else uid_of(owner)
        if not uid:
            raise ValueError(
                f"{kind_name(kind)}: the owner has no uid yet; it must be created before something can belong to it"
            )
        informer = await self._synced(kind)
        return await self._several(informer, lambda: informer.store.by_owner(uid), lambda stored: uid in stored.owners)

    async def view(self, kind: type[Any] | Kind, key: Key) -> View | None:
        """One object to look at, nothing of it decoded yet; None if there is none. The key must be whole."""
        self._refuse_uncached(kind, "a view")
        informer = await self._synced(kind)
        self._check(informer, key.namespace)
        stored = await self._current(informer, key)
        return None if stored is None else informer.view(stored)

    async def views_owned_by(self, kind: type[Any] | Kind, uid: str, *, but: Container[Key] = ()) -> Views:
        """The objects that name a uid among their owners, but those under certain keys, to look at."""
        self._refuse_uncached(kind, "the owner index")
        informer = await self._synced(kind)
        shown = await self._shown(informer, lambda: informer.store.by_owner(uid), lambda stored: uid in stored.owners)
        return [informer.view(stored) for stored in shown if stored.key not in but]

    async def views_labelled(self, kind: type[Any] | Kind, label: str, value: str) -> Views:
        """The objects with a label, in all namespaces, to look at."""
        self._refuse_uncached(kind, "an index of labels")
        informer = await self._synced(kind)
        selector = Selector.of({label: value})
        shown = await self._shown(
            informer, lambda: informer.store.list(labels=selector), lambda stored: stored.labels.get(label) == value
        )
        return [informer.view(stored) for stored in shown]

    # inside

    async def _synced(self, kind: type[Any] | Kind) -> Informer[Any]:
        informer = self._cache.informer(kind)
        if not informer.synced and not await informer.wait_settled():
            raise kind_not_served(informer.gvk, self._cache.client.server)
        return informer

    async def _several(
        self, informer: Informer[Any], found: Callable[[], Iterable[Stored]], belongs: Callable[[Stored], bool]
    ) -> ListOf[Any]:
        shown = await self._shown(informer, found, belongs)
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
        self, informer: Informer[Any], found: Callable[[], Iterable[Stored]], belongs: Callable[[Stored], bool]
    ) -> Found:
        """What the store found and we wrote ourselves, each as a reader sees it now."""
        overlay, store = informer.overlay, informer.store
        if overlay.is_empty:
            return [*found()]
        await self._settle(informer, overlay.live_keys())
        shown: dict[Key, Stored] = {}
        for stored in found():
            seen = overlay.visible(stored.key, stored)
            if seen is not None and (seen is stored or belongs(seen)):
                shown[seen.key] = seen
        for written in overlay.writes():
            key = written.key
            if key not in shown and belongs(written) and overlay.visible(key, store.get(key)) is written:
                shown[key] = written
        return [*shown.values()]

    async def _settle(self, informer: Informer[Any], keys: Keys) -> None:
        """Ask the server about keys in doubt: one by one, or about everything if they are many."""
        if len(keys) <= _ONE_BY_ONE:
            for key in keys:
                await self._current(informer, key)
            return
        doubts = {key: informer.overlay.doubts(key) for key in keys}
        await informer.refresh()
        for key, count in doubts.items():
            informer.overlay.record_refreshed(key, doubts=count)

    async def _current(self, informer: Informer[Any], key: Key) -> Stored | None:
        """What a reader sees of a key, asking the server if nobody else can say."""
        overlay, store = informer.overlay, informer.store
        if overlay.needs_live(key, store.get(key)):
            doubts = overlay.doubts(key)
            raw, version = await informer.read_live(key)
            stored = None if raw is None else informer.intake.admit(raw)
            if raw is None or stored is None:
                overlay.record_absent(key, version, doubts=doubts, base=store.get(key))
            else:
                overlay.record_read(stored, doubts=doubts, selected=informer.intake.selects(stored, raw))
        return overlay.visible(key, store.get(key))

    def _check(self, informer: Informer[Any], namespace: str) -> None:
        namespaces = informer.options.namespaces
        if namespaces and namespace not in namespaces:
            raise NotCached(
                f"{informer.gvk.kind} in namespace {namespace} is not cached: the cache holds {', '.join(namespaces)};"
                " read it with client.live, or add the namespace to Manager(namespaces=...) or to the kind's KindOptions"
            )

    def _refuse_uncached(self, kind: type[Any] | Kind, what: str) -> None:
        if self._cache.is_uncached(kind):
            raise NotCached(
                f"{kind_name(kind)} is excluded from the cache (uncached=...), so {what} cannot be used: list it with a"
                " selector, or let it be cached"
            )


def kind_name(kind: type[Any] | Kind) -> str:
    """How to speak of a kind: the name of its class."""
    return kind.kind if isinstance(kind, Kind) else kind.__name__


def _not_found(informer: Informer[Any], key: Key) -> NotFound:
    details = StatusDetails(name=key.name, kind=informer.gvk.kind, group=informer.gvk.group)
    status = Status(
        message=f'{informer.gvk.kind} "{key}" not found in the cache', reason="NotFound", code=404, details=details
    )
    return NotFound(status, tried=f"get {informer.gvk.kind} {key} from the cache")
