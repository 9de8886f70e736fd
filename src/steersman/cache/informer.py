"""An informer: a store that follows one kind on the server, and handlers for its changes.

Guarantees
- The store is empty or holds a complete list. It then follows the watch and recovers from failures by itself.
- The informer waits for a kind that is not served. If a kind is removed, it empties the store, notifies the handlers and
  waits again. Neither ends the program.
- The informer detects a server restored from an older backup: its versions are behind those already seen, or a list
  shows an older state (see `steersman.cache.restores`). It drops the old contents and the overlay, notifies handlers of
  the differences, and marks no reused version as `unbroken`. Reads wait until a list of the restored server is complete.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, Self, TypeVar, cast

import msgspec

from steersman.aio import Supervisor
from steersman.cache.contents import IndexName
from steersman.cache.delivery import HandlerRegistration, NotificationHandler
from steersman.cache.disposal import Disposal, Noted
from steersman.cache.freshness import reach
from steersman.cache.index_calls import IndexCalls
from steersman.cache.indexes import IndexFunction
from steersman.cache.intake import Intake, KindOptions
from steersman.cache.list_watch import ListWatch
from steersman.cache.overlay import Overlay
from steersman.cache.reflector import Begin, CatchUp, Change, Event, Mark, Put, Refresh, Remove, Settings
from steersman.cache.restores import shows_restore
from steersman.cache.statistics import InformerStatistics
from steersman.cache.store import Store
from steersman.cache.stored_object import StoredObject, StoredView, is_same_version
from steersman.cache.versions import version_number
from steersman.client import Client, RawReads
from steersman.errors import StatusError
from steersman.objects import FieldSelector, Key, Kind, Object, PartialObjectMetadata, Unstructured, decode
from steersman.wire import ListOptions

_log = logging.getLogger("steersman.cache")

T = TypeVar("T")

#: From this many failures in a row on, the informer counts as failing.
_FAILING = 3


class Informer(Generic[T]):
    """The objects of one kind: ``async with Informer(client, Site) as informer: await informer.wait_synced()``."""

    def __init__(
        self,
        client: Client,
        kind: type[Any] | Kind,
        *,
        options: KindOptions | None = None,
        settings: Settings | None = None,
        on_restore: Callable[[], None] | None = None,
    ) -> None:
        self.kind = kind
        self.gvk = kind.gvk()
        self.options = options or KindOptions()
        self.store = Store()
        #: Frees contents that a list has replaced.
        self.disposal = Disposal()
        self.overlay = Overlay()
        reads = RawReads(client, kind, metadata_only=self.options.metadata_only)
        self._reads = reads
        self._metadata = RawReads(client, kind, metadata_only=True)
        #: With a selector, an object may vanish and reappear without being deleted.
        self._selects_all = not self.options.labels and not self.options.fields
        #: Held while a list replaces the contents.
        self.switching = asyncio.Lock()
        self._indexing = asyncio.Lock()
        self.intake = Intake(self.options, field_managers=reads.field_managers)
        self._scopes = {
            scope: ListWatch(
                reads, scope, self, options=self.options, intake=self.intake, settings=settings or Settings()
            )
            for scope in self.options.namespaces or ("",)
        }
        #: The task that follows each scope, and its cancelled predecessors.
        self._running: dict[str, asyncio.Task[None]] = {}
        self._ending: dict[str, list[asyncio.Task[None]]] = {}
        self._registrations: dict[HandlerRegistration, list[asyncio.Task[None]]] = {}
        self._tasks: Supervisor | None = None
        self._committed: set[str] = set()
        self._absent: set[str] = set()
        #: Scopes that the server denies listing, each with the error.
        self._denied: dict[str, StatusError] = {}
        #: The server served the kind earlier and no longer does.
        self._withdrawn = False
        #: Whether a reader has logged that reads go to the server because listing is denied.
        self.reads_live = False
        self._catching_up = 0  # the number of `catch_up` calls in progress; reads wait for them
        self._synced = asyncio.Event()
        #: Set while reads need not wait: the store is complete, or the kind is not served, or listing is denied.
        self._settled = asyncio.Event()
        self._progress: asyncio.Event = asyncio.Event()
        #: Versions up to this one may have named other states before a restore from backup.
        self._reused = 0
        self._index_calls = IndexCalls(self.gvk.kind, self.decode)
        self._on_restore = on_restore
        #: Scopes that wait for a list of the restored server; reads wait for them.
        self._renewing: set[str] = set()

    def __repr__(self) -> str:
        return f"<Informer of {self.gvk.kind}: {len(self.store)} objects>"

    # lifecycle

    async def __aenter__(self) -> Self:
        self._tasks = await Supervisor().__aenter__()
        for scope in self._scopes.values():
            self._follow(scope, Begin())
        for registration in self._registrations:
            self._start(registration)
        return self

    async def __aexit__(self, *error: Any) -> None:
        assert self._tasks is not None
        self._tasks.cancel()
        await self._tasks.__aexit__(*error)

    def _follow(self, scope: ListWatch, first: Event) -> None:
        """Start a task that follows a scope as soon as its predecessors have ended.

        This method does not await, so no other caller can run between the cancel and the start.
        """
        assert self._tasks is not None
        before = [task for task in self._ending.get(scope.scope, ()) if not task.done()]
        if (last := self._running.get(scope.scope)) is not None and not last.done():
            last.cancel()  # only this one: a second cancel would interrupt how the others close their streams
            before.append(last)
        self._ending[scope.scope] = before
        name = f"follow {self.gvk.kind} {scope.scope}".rstrip()
        self._running[scope.scope] = self._tasks.start(scope.run(first, after=before), name=name)

    # reading

    @property
    def synced(self) -> bool:
        """Whether the store holds a complete list."""
        return self._synced.is_set()

    @property
    def served(self) -> bool:
        """Whether the server serves the kind, as far as known."""
        return not self._absent

    @property
    def settled(self) -> bool:
        """Whether a read need not wait: the store can answer it, or certainly cannot."""
        return self._settled.is_set()

    @property
    def withdrawn(self) -> bool:
        """Whether the server served the kind earlier and no longer does: all of its objects are gone."""
        return self._withdrawn

    @property
    def staleness(self) -> float:
        """For how many seconds the store may have missed changes; 0 while every watch is healthy."""
        return max(scope.staleness() for scope in self._scopes.values())

    @property
    def failing(self) -> bool:
        """Whether the first list has failed several times, so that it is unclear when the store will be complete."""
        return not self.synced and any(scope.state.failures >= _FAILING for scope in self._scopes.values())

    @property
    def denied(self) -> StatusError | None:
        """The error with which the server denies listing the kind; None if it allows it or has not responded yet."""
        return next(iter(self._denied.values()), None)

    async def wait_synced(self) -> None:
        """Wait until the store holds a complete list, also while the kind is not served."""
        await self._synced.wait()

    async def wait_settled(self) -> bool:
        """Wait until reads need not wait; return whether the store holds a complete list."""
        await self._settled.wait()
        return self.synced

    async def wait_reached(self, resource_version: str) -> None:
        """Wait until the store has every change up to a version. Without changes, the next bookmark may take a minute."""
        number = version_number(resource_version)
        if number is None:
            raise ValueError(f"resource version {resource_version!r} is not a number and cannot be compared")
        while not self.synced or (self.store.lowest_watermark or 0) < number:
            await self._progress.wait()

    async def refresh(self) -> None:
        """Relist everything in its current state; return when the store holds it.

        A call during another refresh restarts it, and both calls wait for the new list.
        """
        if self._tasks is None:
            raise RuntimeError(f"the informer of {self.gvk.kind} is not running")
        self._committed.clear()
        for name, scope in self._scopes.items():
            self._follow(scope, Refresh(restored=name in self._renewing))
        while len(self._committed) < len(self._scopes):
            await self._progress.wait()

    def renew(self) -> None:
        """Relist everything as a new epoch, because the server was restored from a backup. Reads wait for the lists."""
        for name, scope in self._scopes.items():
            if self._tasks is not None and name not in self._renewing:
                self._renewing.add(name)
                self._follow(scope, Refresh(restored=True))
        self._settle()

    async def catch_up(self) -> None:
        """Wait until the store is at least as new as the server is now. Relist only if nothing less is proof.

        Reads of the kind wait as well. The call waits while the kind is not served or listing is denied.
        """
        if self._tasks is None:
            raise RuntimeError(f"the informer of {self.gvk.kind} is not running")
        self._catching_up += 1
        self._settle()
        try:
            async with Supervisor() as tasks:
                for scope in self._scopes:
                    reaching = reach(self, scope, self._metadata, self.options)
                    tasks.start(reaching, name=f"catch up with {self.gvk.kind} {scope}".rstrip())
        finally:
            self._catching_up -= 1
            if not self._catching_up and self.synced:
                self._denied.clear()
                self.reads_live = False
            self._settle()

    async def wait_progress(self) -> None:
        """Wait until the store advances: a change, a bookmark or a list arrived, or the kind was withdrawn."""
        await self._progress.wait()

    def hurry(self, scope: str) -> None:
        """Make the server send a bookmark for a scope soon: open a short watch, or retry immediately."""
        following = self._scopes[scope]
        idle = not following.commits and scope not in self._renewing
        if idle and following.state.phase in {"opening", "watching", "waiting"}:
            self._follow(following, CatchUp())

    async def read_live(self, key: Key) -> tuple[bytes | None, str]:
        """Read one object from the server; return its bytes, or None, and the version of the response.

        This is a list with a field selector, because the response to a get of an absent object has no version.
        """
        options = ListOptions(field_selector=str(FieldSelector.of({"metadata.name": key.name})))
        page = await self._reads.page(key.namespace, options)
        return (page.items[0] if page.items else None), page.resource_version

    def view(self, stored: StoredObject) -> StoredView:
        """Return a view of a stored object."""
        return StoredView(stored, self.gvk, self.decode)

    def decode(self, stored: StoredObject) -> Any:
        """Decode a new copy of a stored object; raise `DecodeError` if it does not fit the type."""
        if self.options.metadata_only:
            return decode(PartialObjectMetadata, stored.raw, partial=True)
        if not isinstance(self.kind, Kind):
            return decode(cast("type[Object]", self.kind), stored.raw, partial=stored.partial)
        obj = Unstructured.decode(stored.raw, partial=stored.partial)
        if "kind" not in obj.tree:  # items in lists of built-in kinds lack apiVersion and kind
            obj.tree = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, **obj.tree}
            obj.raw = msgspec.json.encode(obj.tree)
        return obj

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Index the objects by a function: ``add_index("by-node", lambda pod: [pod.spec.node_name])``."""
        place = self.store.add_index(name, lambda stored: self.index_values(function, stored, name=name))
        if self._tasks is not None and not self.store.has_index(place):
            self._tasks.start(self.prepare(place), name=f"index {name} of {self.gvk.kind}")

    async def prepare(self, index: IndexName | None) -> None:
        """Complete an index without blocking the event loop, so that lookups need no scan."""
        if index is None or self.store.has_index(index):
            return
        async with self._indexing:
            for _ in self.store.indexing(index):
                await asyncio.sleep(0)

    def index_values(self, function: IndexFunction, stored: StoredObject, *, name: str = "") -> tuple[Hashable, ...]:
        """Return the index values of an object; no values if the function fails."""
        return self._index_calls.values(function, stored, name=name)

    def statistics(self) -> InformerStatistics:
        """Return the informer's statistics."""
        return InformerStatistics(
            kind=str(self.gvk),
            objects=len(self.store),
            synced=self.synced,
            served=self.served,
            own_writes=len(self.overlay),
            pending=tuple(each.pending for each in self._registrations),
            index_failures=self._index_calls.failures,
            scopes=tuple(
                scope.statistics(watermark=self.store.watermark(name)) for name, scope in self._scopes.items()
            ),
            transform_failures=self.intake.transform_failures,
        )

    # handlers

    def add_handler(self, handler: NotificationHandler, *, resync: float | None = None) -> HandlerRegistration:
        """Call ``handler`` for every existing object, then for every change, and for all again each ``resync`` seconds."""
        registration = HandlerRegistration(
            handler,
            current=self.store.get,
            view=self.view,
            remove=self._forget,
            resync=resync,
            selects_all=self._selects_all,
        )
        self._registrations[registration] = []
        if self.synced:
            registration.start(self._present())
        if self._tasks is not None:
            self._start(registration)
        return registration

    def _present(self) -> Noted:
        """Return the current objects. Copying the dict is much cheaper than hashing every key again."""
        return Noted({**self.store.by_key()}, self.disposal)

    def _start(self, registration: HandlerRegistration) -> None:
        assert self._tasks is not None
        name = f"handler of {self.gvk.kind}"
        tasks = self._registrations[registration]
        tasks.append(self._tasks.start(registration.deliver(), name=name))
        if registration.resync is not None:
            tasks.append(self._tasks.start(registration.show_again(self._present), name=f"resync of a {name}"))

    def _forget(self, registration: HandlerRegistration) -> None:
        for task in self._registrations.pop(registration, ()):
            task.cancel()

    # the sink of every scope

    def list_begins(self) -> int:
        """Return the number of recorded deletions: a list from now on does not show those objects."""
        return self.overlay.deletions

    def report_restore(self, scope: str, resource_version: str) -> None:
        """Note that the server was restored from a backup. Its cache relists every kind; a list of the scope follows."""
        if scope in self._renewing:
            return
        _log.warning(
            "the server was restored from a backup or replaced: resource versions of %s went back to %s; relisting every kind",
            self.gvk.kind,
            resource_version,
        )
        self._renewing.add(scope)
        self._settle()
        if self._on_restore is not None:
            self._on_restore()

    def committing(
        self, scope: str, objects: dict[Key, StoredObject], resource_version: str, *, new_epoch: bool, began: int = 0
    ) -> Iterator[None]:
        """Replace a scope with a complete list, yielding after every few objects; handlers get deletions first.

        Hold `switching` until the end. Readers see all of the list or nothing. The method consumes ``objects``.
        """
        if not new_epoch:
            new_epoch = yield from shows_restore(self.store, self.overlay, objects, began=began)
        if new_epoch:
            self.report_restore(scope, resource_version)
        yield from self._replacing(scope, objects, resource_version, new_epoch=new_epoch)
        self._committed.add(scope)
        self._renewing.discard(scope)
        self._absent.discard(scope)
        self._denied.pop(scope, None)
        if len(self._committed) == len(self._scopes):
            self._withdrawn = self.reads_live = False
            self._synced.set()
            self._settle()
            if waiting := [each for each in self._registrations if not each.started]:
                present = self._present()
                for registration in waiting:
                    registration.start(present)
        self._advance()

    def _replacing(
        self, scope: str, objects: dict[Key, StoredObject], resource_version: str, *, new_epoch: bool = False
    ) -> Iterator[None]:
        def same(old: StoredObject, new: StoredObject) -> bool:
            return is_same_version(old, new) and (not new_epoch or old.raw == new.raw)

        replacement = self.store.replacement(scope, objects, same=same)
        try:
            yield from self.store.building(replacement)
        except GeneratorExit:
            self.disposal.add(*replacement.containers(), objects, entries=len(objects))
            raise
        written = self.overlay.writes_until("" if new_epoch else resource_version, scope=scope)
        if new_epoch:
            self._reused = max(self._reused, self._highest(scope))
            self.overlay.clear(scope=scope)
        replaced = self.store.switch(replacement)
        if self._selects_all:
            self.overlay.vanished_with(replacement.removed)
        differences = Noted(replacement.differences, self.disposal)
        for registration in self._registrations:
            registration.note_all(differences)
        for last in written:  # those that are gone, and that no watch has ever shown
            if self.store.get(last.key) is None and last.key not in replacement.differences:
                for registration in self._registrations:
                    registration.note(last.key, None, framed=False, last=last)
        self.disposal.add(*replaced.containers(), entries=len(replaced.objects))
        self.disposal.add(replacement.removed, objects, entries=max(len(replacement.removed), len(objects)))
        self.store.advance(scope, resource_version)
        self.overlay.reached(resource_version, scope=scope)

    def apply(self, scope: str, changes: tuple[Change, ...], resource_version: str) -> None:
        """Apply changes from the watch."""
        for change in changes:
            match change:
                case Put(stored):
                    self._put(stored, framed=True)
                case Remove(stored):
                    self._removed(stored.key, stored)
                case Mark():
                    pass
        self.store.advance(scope, resource_version)
        self.overlay.reached(resource_version, scope=scope)
        self._advance()

    def withdrawing(self, scope: str) -> Iterator[None]:
        """Empty a scope because the server no longer serves the kind, in steps like `committing`."""
        self._withdrawn = self._withdrawn or self.synced
        yield from self._replacing(scope, {}, "")
        self.overlay.clear(scope=scope)
        self._renewing.discard(scope)
        self._committed.discard(scope)
        self._synced.clear()
        self._settle()
        self._advance()

    def missing(self, scope: str) -> None:
        """Note that the server does not serve the kind, so that reads do not wait for it."""
        if scope not in self._absent:
            _log.info("kind %s is not served; waiting for its CRD: steersman generate crds MODULE", self.gvk)
        self._absent.add(scope)
        self._settle()

    def deny(self, scope: str, error: StatusError) -> None:
        """Note that the server denies listing the kind, so that reads do not wait for the list."""
        if not self.synced:
            # The next list starts after all recorded writes, so it includes them.
            self.overlay.clear(scope=scope)
        if not self.synced or self._catching_up or self._renewing:
            self._denied[scope] = error
            self._settle()

    def _settle(self) -> None:
        """Decide whether reads wait."""
        renewed = not self._catching_up and not self._renewing
        answers = renewed if self.synced else bool(self._absent or self._withdrawn)
        if answers or self._denied:
            self._settled.set()
        else:
            self._settled.clear()

    def _put(self, stored: StoredObject, *, framed: bool) -> None:
        old = self.store.get(stored.key)
        if old is not None and is_same_version(old, stored):
            return
        if self._reused and (version_number(stored.resource_version) or 0) <= self._reused:
            # This version may have named another state before the restore: handlers must not treat it as known.
            framed = False
        self.store.put(stored)
        for registration in self._registrations:
            registration.note(stored.key, old, framed=framed)

    def _highest(self, scope: str) -> int:
        """Return the highest version seen in a scope, including the responses to our own writes."""
        written = [self.overlay.visible(key, None) for key in self.overlay.touched()]
        versions = [self.store.watermark(scope), *(each.resource_version for each in written if each is not None)]
        return max(version_number(version) or 0 for version in versions)

    def _removed(self, key: Key, last: StoredObject | None) -> None:
        old = self.store.remove(key)
        if old is None:
            return
        if self._selects_all:
            self.overlay.vanished(old.uid)
        for registration in self._registrations:
            registration.note(key, old, framed=last is not None, last=last)

    def _advance(self) -> None:
        progress, self._progress = self._progress, asyncio.Event()
        progress.set()
