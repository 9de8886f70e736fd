"""One kind, kept near: a store that follows the server, and handlers that are told what changed.

Guarantees
- The store holds a complete list or nothing; from then on it follows the watch, and heals by itself.
- A kind that is not served yet is waited for; one that is removed empties the store, tells the handlers, and is waited
  for again. Neither ends the program.
- A server restored from an older backup is noticed while its versions lie behind those that were seen: store and overlay
  are dropped, the handlers are told the difference, and no version that was given before counts as known (`unbroken`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Iterable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import msgspec

from steersman.aio import Supervisor
from steersman.cache.following import Following
from steersman.cache.handlers import Handler, Registration
from steersman.cache.indexes import IndexFunction
from steersman.cache.intake import Intake, KindOptions
from steersman.cache.overlay import Overlay
from steersman.cache.reflector import Begin, Change, Event, Mark, Put, Refresh, Remove, Settings
from steersman.cache.store import Store
from steersman.cache.stored import Stored, View
from steersman.cache.versions import version_number
from steersman.client import Client
from steersman.client.raw_reads import RawReads
from steersman.objects import FieldSelector, Key, Kind, Object, PartialObjectMetadata, Unstructured, decode
from steersman.wire import ListOptions

_log = logging.getLogger("steersman.cache")

T = TypeVar("T")


class ScopeStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """How one collection is followed; ``namespace`` is empty for all of them."""

    namespace: str
    phase: str
    watermark: str
    requests: int
    lists: int
    failures: int
    unreadable: int
    last_error: str


class InformerStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What an informer holds and does."""

    kind: str
    objects: int
    synced: bool
    served: bool
    own_writes: int
    pending: tuple[int, ...]
    index_failures: int
    scopes: tuple[ScopeStatistics, ...]


class Informer(Generic[T]):
    """The objects of one kind: ``async with Informer(client, Site) as informer: await informer.wait_synced()``."""

    def __init__(
        self,
        client: Client,
        kind: type[Any] | Kind,
        *,
        options: KindOptions | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.kind = kind
        self.gvk = kind.gvk()
        self.options = options or KindOptions()
        self.store = Store()
        self.overlay = Overlay()
        reads = RawReads(client, kind, metadata_only=self.options.metadata_only)
        self._reads = reads
        self.intake = Intake(self.options, field_manager=reads.field_manager)
        self._scopes = {
            scope: Following(
                reads, scope, self, options=self.options, intake=self.intake, settings=settings or Settings()
            )
            for scope in self.options.namespaces or ("",)
        }
        #: Who follows each scope, and who did so before and is ending.
        self._running: dict[str, asyncio.Task[None]] = {}
        self._ending: dict[str, list[asyncio.Task[None]]] = {}
        self._registrations: dict[Registration, list[asyncio.Task[None]]] = {}
        self._tasks: Supervisor | None = None
        self._committed: set[str] = set()
        self._absent: set[str] = set()
        self._synced = asyncio.Event()
        #: Set when the store is complete, or when it is known that the kind is not served.
        self._settled = asyncio.Event()
        self._progress: asyncio.Event = asyncio.Event()
        #: Versions up to this one may have named other states before a backup was restored.
        self._reused = 0
        self._index_failures = 0
        self._decoded: tuple[Stored, Any] | None = None

    def __repr__(self) -> str:
        return f"<Informer of {self.gvk.kind}: {len(self.store)} objects>"

    # life

    async def __aenter__(self) -> Self:
        self._tasks = await Supervisor().__aenter__()
        for scope in self._scopes.values():
            self._follow(scope, Begin())
        for registration in self._registrations:
            self._start(registration)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._tasks is not None
        self._tasks.cancel()
        await self._tasks.__aexit__(kind, error, trace)

    def _follow(self, scope: Following, first: Event) -> None:
        """Follow a scope from now on, as soon as whoever did so before has ended.

        There is nothing to wait for here, so nobody can come between letting one go and taking on the next.
        """
        assert self._tasks is not None
        before = [task for task in self._ending.get(scope.scope, ()) if not task.done()]
        if (last := self._running.get(scope.scope)) is not None and not last.done():
            last.cancel()  # and not the others: told twice, they would not even close their streams
            before.append(last)
        self._ending[scope.scope] = before
        name = f"follow {self.gvk.kind} {scope.scope}".rstrip()
        self._running[scope.scope] = self._tasks.start(_run_after(before, scope, first), name=name)

    # reading

    @property
    def synced(self) -> bool:
        """Whether the store holds a complete list."""
        return self._synced.is_set()

    @property
    def served(self) -> bool:
        """Whether the server knows the kind, as far as we have heard."""
        return not self._absent

    async def wait_synced(self) -> None:
        """Wait until the store holds a complete list; a kind that is not served is waited for."""
        await self._synced.wait()

    async def wait_settled(self) -> bool:
        """Wait until the store holds a complete list (true), or until it is known that the kind is not served."""
        await self._settled.wait()
        return self.synced

    async def wait_reached(self, resource_version: str) -> None:
        """Wait until the store holds everything up to a version. A quiet kind may take a minute to say so."""
        number = version_number(resource_version)
        if number is None:
            raise ValueError(f"resource version {resource_version!r} is no number and cannot be compared")
        while not self.synced or (self.store.lowest_watermark or 0) < number:
            await self._progress.wait()

    async def refresh(self) -> None:
        """Read everything again, as new as the server has it now; returns when the store holds it.

        One that is asked for while another is under way starts that one anew, for both.
        """
        if self._tasks is None:
            raise RuntimeError(f"the informer of {self.gvk.kind} does not run")
        self._committed.clear()
        for scope in self._scopes.values():
            self._follow(scope, Refresh())
        while len(self._committed) < len(self._scopes):
            await self._progress.wait()

    async def read_live(self, key: Key) -> tuple[bytes | None, str]:
        """Ask the server for one object: its bytes if there is one, and the version at which that was so.

        A list of one name, because the answer to a get of an absent object does not say as of when it is absent.
        """
        options = ListOptions(field_selector=str(FieldSelector.of({"metadata.name": key.name})))
        page = await self._reads.page(key.namespace, options)
        return (page.items[0] if page.items else None), page.resource_version

    def view(self, stored: Stored) -> View:
        """A stored object to look at."""
        return View(stored, self.gvk, self.decode)

    def decode(self, stored: Stored) -> Any:
        """Decode a stored object afresh; `DecodeError` if our type cannot hold it."""
        if self.options.metadata_only:
            return decode(PartialObjectMetadata, stored.raw, partial=True)
        if not isinstance(self.kind, Kind):
            return decode(_as_object(self.kind), stored.raw, partial=stored.partial)
        obj = Unstructured.decode(stored.raw, partial=stored.partial)
        if "kind" not in obj.tree:  # items in lists of built-in kinds do not say what they are
            obj.tree = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, **obj.tree}
            obj.raw = msgspec.json.encode(obj.tree)
        return obj

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Find objects by any function of them: ``add_index("by-node", lambda pod: [pod.spec.node_name])``."""
        self.store.add_index(name, lambda stored: self.index_values(function, stored))

    def index_values(self, function: IndexFunction, stored: Stored) -> Iterable[Hashable]:
        """The values a function gives for an object; none if it fails."""
        try:
            if self._decoded is None or self._decoded[0] is not stored:
                self._decoded = (stored, self.decode(stored))
            return tuple(function(self._decoded[1]))
        except Exception:  # noqa: BLE001 - whatever an index function raises is an error of that key
            self._index_failures += 1
            _log.exception("an index of %s failed on %s; the object is not found by it", self.gvk.kind, stored.key)
            return ()

    def statistics(self) -> InformerStatistics:
        """What the informer holds and does."""
        return InformerStatistics(
            kind=str(self.gvk),
            objects=len(self.store),
            synced=self.synced,
            served=self.served,
            own_writes=len(self.overlay),
            pending=tuple(each.pending for each in self._registrations),
            index_failures=self._index_failures,
            scopes=tuple(
                ScopeStatistics(
                    namespace=name,
                    phase=scope.state.phase,
                    watermark=self.store.watermark(name),
                    requests=scope.requests,
                    lists=scope.lists,
                    failures=scope.state.failures,
                    unreadable=scope.unreadable,
                    last_error=str(scope.last_error or ""),
                )
                for name, scope in self._scopes.items()
            ),
        )

    # handlers

    def add_handler(self, handler: Handler, *, resync: float | None = None) -> Registration:
        """Call ``handler`` for every object that is there, and then for every change.

        ``resync``: every so many seconds all objects are shown again.
        """
        registration = Registration(handler, current=self.store.get, view=self.view, remove=self._forget, resync=resync)
        self._registrations[registration] = []
        if self.synced:
            registration.start(self.store.keys())
        if self._tasks is not None:
            self._start(registration)
        return registration

    def _start(self, registration: Registration) -> None:
        assert self._tasks is not None
        name = f"handler of {self.gvk.kind}"
        tasks = self._registrations[registration]
        tasks.append(self._tasks.start(registration.deliver(), name=name))
        if registration.resync is not None:
            tasks.append(self._tasks.start(registration.show_again(self.store.keys), name=f"resync of a {name}"))

    def _forget(self, registration: Registration) -> None:
        for task in self._registrations.pop(registration, ()):
            task.cancel()

    # what the server says: the sink of every scope

    def commit(self, scope: str, objects: dict[Key, Stored], resource_version: str, *, new_epoch: bool) -> None:
        """Replace a scope by a complete list; deletions are told before the rest."""
        if new_epoch:
            _log.warning(
                "the server's versions of %s have gone back to %s: it was restored from a backup, or is another one",
                self.gvk.kind,
                resource_version,
            )
            self._reused = max(self._reused, self._highest(scope))
            self.overlay.clear(scope=scope)
        for key in self.store.missing_from(scope, objects):
            self._removed(key, None)
        for stored in objects.values():
            self._put(stored, framed=False, same_epoch=not new_epoch)
        self.store.advance(scope, resource_version)
        self.overlay.reached(resource_version, scope=scope)
        self._committed.add(scope)
        self._absent.discard(scope)
        if len(self._committed) == len(self._scopes):
            self._synced.set()
            self._settled.set()
            for registration in self._registrations:
                registration.start(self.store.keys())
        self._advance()

    def apply(self, scope: str, changes: tuple[Change, ...], resource_version: str) -> None:
        """Follow the watch."""
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

    def empty(self, scope: str) -> None:
        """The kind was removed from the server, and its objects with it."""
        for key in self.store.missing_from(scope, {}):
            self._removed(key, None)
        self.store.advance(scope, "")
        self.overlay.clear(scope=scope)
        self._committed.discard(scope)
        self._synced.clear()
        self._advance()

    def missing(self, scope: str) -> None:
        """The kind is not served: somebody who asks now should not wait for it."""
        if scope not in self._absent:
            _log.info("kind %s is not served; it is waited for", self.gvk)
        self._absent.add(scope)
        if not self.synced:
            self._settled.set()

    def _put(self, stored: Stored, *, framed: bool, same_epoch: bool = True) -> None:
        old = self.store.get(stored.key)
        if (
            old is not None
            and old.resource_version == stored.resource_version
            and old.uid == stored.uid
            and (same_epoch or old.raw == stored.raw)
        ):
            return
        if self._reused and (version_number(stored.resource_version) or 0) <= self._reused:
            # whoever knows this version from before the backup was restored must not take it for what it was then
            framed = False
        self.store.put(stored)
        for registration in self._registrations:
            registration.note(stored.key, old, framed=framed)

    def _highest(self, scope: str) -> int:
        """The highest version that was seen in a scope, or that a write of ours was answered with."""
        written = [self.overlay.visible(key, None) for key in self.overlay.touched()]
        versions = [self.store.watermark(scope), *(each.resource_version for each in written if each is not None)]
        return max(version_number(version) or 0 for version in versions)

    def _removed(self, key: Key, last: Stored | None) -> None:
        old = self.store.remove(key)
        if old is None:
            return
        if not self.options.labels and not self.options.fields:
            # with a selector an object may vanish and come back without having been deleted
            self.overlay.vanished(old.uid)
        for registration in self._registrations:
            registration.note(key, old, framed=last is not None, last=last)

    def _advance(self) -> None:
        progress, self._progress = self._progress, asyncio.Event()
        progress.set()


async def _run_after(before: list[asyncio.Task[None]], scope: Following, first: Event) -> None:
    # Those before may take a moment to close what they have open, and a scope has one state.
    if before:
        await asyncio.wait(before)
    await scope.run(first)


def _as_object(kind: type[Any]) -> type[Object]:
    return kind
