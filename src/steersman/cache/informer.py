"""An informer: a store that follows one kind on the server, and handlers for its changes.

Guarantees
- The store is empty or holds a complete list. It then follows the watch and recovers from failures by itself.
- The informer waits for a kind that is not served. If a kind is removed, it empties the store, notifies the handlers and
  waits again. Neither ends the program.
- The informer detects a server restored from an older backup: its versions are behind those already seen, or a list
  shows an older state (see `steersman.cache.replica`). It drops the old contents and the overlay, notifies handlers of
  the differences, and marks no reused version as `unbroken`. Reads wait until a list of the restored server is complete.
- When one watch recovers after a failure of the server, the others do not sleep on (see `Informer.recover`).
- The informer of a divided kind follows the ranges that it gains, each gain with a watch and a freshness of its own, and
  drops those that it loses without a notification. `covers` says which reads it can answer.
- The informer of a referenced kind follows the names that others refer to (see `NamedScopes`). `has` says whether it can answer for one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

import msgspec

from steersman.aio import Supervisor
from steersman.cache.contents import IndexName
from steersman.cache.delivery import EventHandler, HandlerRegistration
from steersman.cache.freshness import ScopeReads, reach_all
from steersman.cache.index_calls import IndexCalls
from steersman.cache.indexes import IndexFunction
from steersman.cache.intake import Intake, KindOptions
from steersman.cache.list_watch import ListWatch
from steersman.cache.reflector import Begin, CatchUp, Input, Refresh, Settings
from steersman.cache.replica import Replica
from steersman.cache.scopes import Scopes
from steersman.cache.statistics import InformerStatistics
from steersman.cache.store import NAMESPACES
from steersman.cache.stored_object import StoredObject, StoredView
from steersman.client import Client, RawReads
from steersman.errors import StatusError
from steersman.objects import (
    FieldSelector,
    Key,
    Kind,
    Object,
    PartialObjectMetadata,
    Unstructured,
    decode,
    version_number,
)
from steersman.wire import HASHES, HashRange, ListOptions, ShardSelector, key_of

if TYPE_CHECKING:
    from steersman.cache.names.named_scopes import NamedScopes

T = TypeVar("T")

#: How many seconds reads wait for a watch that recovers after others. Then they find what the store has: a kind that the
#: server cannot serve for long must not stop the program.
_RECOVERY_MAX = 5.0


class Informer(Generic[T]):
    """The objects of one kind: ``async with Informer(client, Site) as informer: await informer.wait_synced()``."""

    def __init__(
        self,
        client: Client,
        kind: type[Any] | Kind,
        *,
        options: KindOptions | None = None,
        shards: ShardSelector | None = None,
        divided: bool = False,
        settings: Settings | None = None,
        on_restore: Callable[[], None] | None = None,
        on_recovery: Callable[[], None] | None = None,
    ) -> None:
        self.kind = kind
        self.gvk = kind.gvk()
        self.options = options or KindOptions()
        reads = RawReads(client, kind, metadata_only=self.options.metadata_only)
        #: Lists and watches of the kind.
        self.reads = reads
        self._metadata = RawReads(client, kind, metadata_only=True)
        #: With a selector, an object may vanish and reappear without being deleted.
        self._selects_all = not self.options.labels and not self.options.fields
        #: Only objects of these are stored. An object never changes its scope, unless it is one of a referenced kind.
        #: Divided kinds and referenced kinds begin without one.
        self.scopes = Scopes(
            self.options.namespaces or ("",), shards=shards, divided=divided, referenced=self.options.referenced
        )
        #: The handlers, each with its tasks.
        self._registrations: dict[HandlerRegistration, list[asyncio.Task[None]]] = {}
        self.replica = Replica(
            self.gvk, self.scopes, self._registrations.keys(), selects_all=self._selects_all, on_restore=on_restore
        )
        self.store, self.overlay, self.sync = self.replica.store, self.replica.overlay, self.replica.sync
        self._indexing = asyncio.Lock()
        self._recover_all = on_recovery or self.recover
        self._restore_all = on_restore or self.renew
        #: Whether reads have waited for the watch since it was lost.
        self._was_awaited = False
        managers = reads.field_managers
        self.intake = Intake(self.options, kind=self.gvk.kind, field_managers=managers, scopes=self.scopes)
        self._settings = settings or Settings()
        self._scopes = {scope: self._list_watch(scope) for scope in self.scopes}
        #: The names of a referenced kind; None for any other.
        self.names: NamedScopes | None = None
        if self.options.referenced:
            from steersman.cache.names.named_scopes import NamedScopes  # noqa: PLC0415 - few kinds are referenced

            self.names = NamedScopes(self.gvk.kind, self.replica, self.intake, self.options, self)
        #: How many reads were sent to the server because no scope has what they ask for.
        self.outside_reads = 0
        #: The task that follows each scope, and its cancelled predecessors.
        self._running: dict[str, asyncio.Task[None]] = {}
        self._ending: dict[str, list[asyncio.Task[None]]] = {}
        self._tasks: Supervisor | None = None
        self._ended = False
        self._index_calls = IndexCalls(self.gvk.kind, self.decode)

    def __repr__(self) -> str:
        return f"<Informer of {self.gvk.kind}: {len(self.store)} objects>"

    def _list_watch(self, scope: str) -> ListWatch:
        return ListWatch(
            self.reads,
            scope,
            self.replica,
            options=self.options,
            intake=self.intake,
            settings=self._settings,
            on_recovery=self._on_recovery,
        )

    # lifecycle

    async def __aenter__(self) -> Self:
        if self._tasks is not None:
            raise RuntimeError(
                f"the informer of {self.gvk.kind} was entered already; make another Informer, or share one with cache.use()"
            )
        self._tasks = await Supervisor().__aenter__()
        for scope in self._scopes.values():
            self._follow(scope, Begin())
        for registration in self._registrations:
            self._start(registration)
        if self.names is not None:
            tasks = self._tasks
            self.names.open(lambda work, name: tasks.start(work, name=f"{name} of {self.gvk.kind}"))
        return self

    async def __aexit__(self, *error: Any) -> None:
        assert self._tasks is not None
        if self.names is not None:
            self.names.close()
        self._ended = True
        self._tasks.cancel()
        self.replica.advance()
        await self._tasks.__aexit__(*error)

    def _follow(self, scope: ListWatch, first: Input) -> None:
        """Start a task that follows a scope as soon as its predecessors have ended.

        This method does not await, so no other caller can run between the cancel and the start.
        """
        if self._tasks is None or self._tasks.stopping:
            return
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
        return self.sync.state == "synced"

    @property
    def served(self) -> bool:
        """Whether the server serves the kind, as far as known."""
        return self.sync.served

    @property
    def settled(self) -> bool:
        """Whether a read need not wait: the store can answer it, or certainly cannot."""
        return self.sync.settled

    @property
    def staleness(self) -> float:
        """For how many seconds the store may have missed changes; 0 while every watch is healthy."""
        return max((scope.staleness() for scope in self._following()), default=0.0)

    @property
    def is_current(self) -> bool:
        """Whether the store misses no change but those on their way: every watch has shown something since it last failed."""
        return all(scope.is_current for scope in self._following())

    def _following(self) -> list[ListWatch]:
        return [scope for name, scope in self._scopes.items() if self.names is None or self.sync.answers(name)]

    @property
    def failing(self) -> bool:
        """Whether the first list has failed several times, so that it is unclear when the store will be complete."""
        return not self.synced and any(scope.fails for scope in self._scopes.values())

    @property
    def readable(self) -> bool:
        """Whether the store is complete and can catch up with the server, as far as known."""
        failing = self.replica.fails or any(each.fails and each.waits for each in self._scopes.values())
        return self.synced and self.denied is None and not failing and not self._ended

    @property
    def denied(self) -> StatusError | None:
        """The error with which the server denies listing the kind; None if it allows it or has not responded yet."""
        return self.sync.denied

    async def wait_synced(self) -> None:
        """Wait until the store holds a complete list, also while the kind is not served."""
        await self.replica.wait_synced()

    async def wait_settled(self) -> bool:
        """Wait until reads need not wait; return whether the store holds a complete list."""
        while not self.settled:
            await self.replica.wait_progress()
        return self.synced

    async def wait_reached(self, resource_version: str) -> None:
        """Wait until the store has every change up to a version. Without changes, the next bookmark may take a minute."""
        number = version_number(resource_version)
        if number is None:
            raise ValueError(f"resource version {resource_version!r} is not a number and cannot be compared")
        while not self.synced or (self._scopes and (self.store.lowest_watermark or 0) < number):
            await self.replica.wait_progress()

    async def refresh(self) -> None:
        """Relist everything in its current state; return when the store holds it.

        A call during another refresh restarts it, and both calls wait for the new list.
        """
        if self._tasks is None:
            raise RuntimeError(f"the informer of {self.gvk.kind} is not running")
        self.sync.refresh()
        for name, scope in self._scopes.items():
            self._follow(scope, Refresh(restored=self.sync.was_restored(name)))
        while not self.sync.refreshed:
            await self.replica.wait_progress()

    def renew(self) -> None:
        """Relist everything as a new epoch, because the server was restored from a backup. Reads wait for the lists."""
        for name, scope in self._scopes.items():
            if self._tasks is not None and self.sync.restore(name):
                self._follow(scope, Refresh(restored=True))

    def recover(self) -> None:
        """Retry at once where a failed watch waits: the server answers other requests again.

        Reads of the kind wait until the store is as new as the server, but only once, and for a few seconds.
        """
        waiting = [name for name, scope in self._scopes.items() if scope.waits]
        if self._tasks is None or not waiting:
            return
        for name in waiting:
            self._hurry(name)
        if self.synced and not self._was_awaited:
            self._was_awaited = True
            self._tasks.start(self._catch_up_soon(), name=f"recover {self.gvk.kind}")

    def _on_recovery(self) -> None:
        self._was_awaited = False
        self._recover_all()

    async def _catch_up_soon(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_RECOVERY_MAX):
                await self.catch_up()

    async def catch_up(self) -> None:
        """Wait until the store is at least as new as the server is now. Relist only if nothing less is proof.

        Reads of the kind wait as well. The call waits while the kind cannot be read, and ends with the informer. Of a
        referenced kind, the next read of each name goes to the server, and the call waits for nothing.
        """
        if self._tasks is None:
            raise RuntimeError(f"the informer of {self.gvk.kind} is not running")
        if self.names is not None:
            self.names.doubt()  # each name would need a request
            return
        scopes = [ScopeReads(self._metadata, scope, self.options, self.scopes) for scope in self.scopes]
        await reach_all(self._tasks, self.replica, scopes, hurry=self._hurry, refresh=self.refresh)

    def _hurry(self, scope: str) -> None:
        """Make the server send a bookmark for a scope soon: open a short watch, or retry immediately."""
        following = self._scopes.get(scope)
        if following is None:
            return
        waits = following.state.phase == "waiting" and not following.commits and not self.sync.was_restored(scope)
        if waits or self._is_open(scope):
            self._follow(following, CatchUp())

    def _is_open(self, scope: str) -> bool:
        """Whether a scope has a watch, and no list is due, which a restart could prevent."""
        following = self._scopes[scope]
        due = following.commits or self.sync.awaits_list(scope)
        return not due and following.state.phase in {"opening", "watching"}

    # ranges that come and go

    def gain(self, scope: str, ranges: Collection[HashRange]) -> None:
        """Follow more ranges of a divided kind, under a new name. Handlers are notified of them after `show`."""
        self.replica.gain(scope, ranges)
        self.begin_scope(scope)

    async def wait_gained(self, scope: str) -> None:
        """Wait until a gained scope is as new as the server was at `gain`, or lost again, or cannot be listed.

        Until it is listed, reads of it go to the server.
        """
        while self.sync.is_joining(scope) and not (self._scopes[scope].fails or self._ended):
            if self.sync.is_absent(scope) or self.denied is not None:
                break
            await self.replica.wait_progress()
        await self.prepare(NAMESPACES)

    def show(self, scope: str) -> None:
        """Notify the handlers of the objects of a gained scope, and from now on of its changes."""
        self.replica.show(scope)

    def show_again(self) -> None:
        """Notify the handlers of all objects, as of those that were present at their start."""
        self.replica.show_again()

    async def lose(self, ranges: Collection[HashRange]) -> None:
        """Follow these ranges no more, and drop their objects. No handler is notified of it."""
        before = {scope: self.scopes.selector(scope) for scope in self.scopes}
        gone, steps = self.replica.lose(ranges)
        for scope in gone:
            self.end_scope(scope)
        for scope in self.scopes:
            if self.scopes.selector(scope) != before[scope] and self._is_open(scope):
                self._hurry(scope)  # a new watch, of which the server sends less
        async with self.replica.switching:
            for _ in steps:
                await asyncio.sleep(0)

    def begin_scope(self, scope: str) -> None:
        """Follow a new scope."""
        self._scopes[scope] = self._list_watch(scope)
        if self._tasks is not None:
            self._follow(self._scopes[scope], Begin())

    def end_scope(self, scope: str) -> None:
        """Follow a scope no more."""
        del self._scopes[scope]
        if (running := self._running.pop(scope, None)) is not None:
            running.cancel()
        self._ending.pop(scope, None)

    def report_restore(self) -> None:
        """Begin a new epoch: the server was restored from a backup."""
        self._restore_all()

    # reads

    def has(self, key: Key) -> bool:
        """Whether the store can answer for a key; otherwise only the server can."""
        return self.covers(key.namespace) if self.names is None else self.names.has(key)

    async def obtain(self, key: Key) -> bool:
        """Whether the store can answer for a key, if need be after the key's own first read."""
        if self.has(key) or (self.names is not None and await self.names.obtain(key)):
            return True
        self.outside_reads += 1
        if self.names is not None:
            self.names.mention_outside(key)
        return False

    def covers(self, namespace: str | None) -> bool:
        """Whether the store has all objects of a namespace, or of all with None; otherwise only the server can answer."""
        if self.names is not None:
            return False
        if not self.scopes.divided:
            return True
        if namespace:
            scope = self.scopes.of(namespace)
            return scope is not None and not self.sync.is_joining(scope)
        selectors = [self.scopes.selector(scope) for scope in self.scopes if not self.sync.is_joining(scope)]
        return sum(each.width for selector in selectors if selector for each in selector.ranges) == HASHES

    async def read_live(self, key: Key) -> tuple[bytes | None, str]:
        """Read one object from the server; return its bytes, or None, and the version of the response.

        This is a list with a field selector, because the response to a get of an absent object has no version.
        """
        options = ListOptions(field_selector=str(FieldSelector.of({"metadata.name": key.name})))
        page = await self.reads.page(key.namespace, options)
        # An aggregated API server may ignore field selectors.
        return next((raw for raw in page.items if key_of(raw) == key), None), page.resource_version

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
            pending=tuple(registration.pending for registration in self._registrations),
            index_failures=self._index_calls.failures,
            scopes=tuple(
                scope.statistics(watermark=self.store.watermark(name)) for name, scope in self._scopes.items()
            ),
            transform_failures=self.intake.transform_failures,
            outside_reads=self.outside_reads,
            referenced=None if self.names is None else len(self.names.references),
        )

    # handlers

    def add_handler(
        self, handler: EventHandler, *, resync: float | None = None, on_left: Callable[[Key], None] | None = None
    ) -> HandlerRegistration:
        """Call ``handler`` for every existing object, then for every change, and for all again each ``resync`` seconds.

        ``on_left`` is called with the key of each object that leaves without being deleted.
        """
        registration = HandlerRegistration(
            handler,
            current=self.store.get,
            view=self.view,
            remove=self._forget,
            resync=resync,
            selects_all=self._selects_all,
            on_left=on_left,
        )
        self._registrations[registration] = []
        if self.synced:
            registration.start(self.replica.present())
        if self._tasks is not None:
            self._start(registration)
        return registration

    def _start(self, registration: HandlerRegistration) -> None:
        assert self._tasks is not None
        name = f"handler of {self.gvk.kind}"
        tasks = self._registrations[registration]
        tasks.append(self._tasks.start(registration.deliver(), name=name))
        if registration.resync is not None:
            tasks.append(self._tasks.start(registration.show_again(self.replica.present), name=f"resync of a {name}"))

    def _forget(self, registration: HandlerRegistration) -> None:
        for task in self._registrations.pop(registration, ()):
            task.cancel()
