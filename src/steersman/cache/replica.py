"""The local copy of one kind: applies lists and changes to the store, and notifies the handlers.

Guarantees
- The store is empty or holds a complete list. Readers see all of a new list or nothing of it.
- A server restored from an older backup starts a new epoch: the old contents and the overlay are dropped, the handlers are
  notified of the differences, and no reused version is marked as `unbroken`.
- A list proves a restore if it has an older state of an object than the store, or an object that was deleted before the
  list began. Either happens only if the server has lost changes.
- A restored server may raise its revision (``etcdutl snapshot restore --bump-revision``). Its lists are then newer than
  anything seen before, and only the objects show it.
- Handlers are not notified of a gained range before `show`, and never of objects that left with a range: they were not
  deleted.
- A name that joins a wide scope (see `steersman.cache.references.completeness`) is notified as a change, like a list.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from typing import Protocol

from steersman.cache.contents import SLICE
from steersman.cache.delivery import HandlerRegistration
from steersman.cache.disposal import Disposal, Noted
from steersman.cache.overlay import Overlay
from steersman.cache.reflector import Changes, Mark, Put, Remove
from steersman.cache.scopes import Scopes
from steersman.cache.store import Store
from steersman.cache.stored_object import StoredObject, is_older, is_same_version
from steersman.cache.sync_state import SyncState
from steersman.errors import StatusError
from steersman.objects import GroupVersionKind, Key, version_number
from steersman.wire import HashRange

#: From this many failures in a row on, it is unclear when a request succeeds.
FAILING = 3

_log = logging.getLogger("steersman.cache")


class Names(Protocol):
    """The names of a referenced kind, which its replica notifies of what happens to their scopes."""

    def begun(self, scope: str) -> None:
        """A wide scope has begun: its names can join."""
        ...

    def withdrawn(self, scope: str) -> None:
        """The server no longer serves the kind in a scope."""
        ...

    def denied(self, scope: str) -> None:
        """The server denies a scope."""
        ...

    def overtakes(self, key: Key, resource_version: str) -> bool:
        """Note an event of a wide scope. Return whether the store has a newer state."""
        ...


class Replica:
    """The objects of one kind, as far as their scopes were listed."""

    def __init__(
        self,
        kind: GroupVersionKind,
        scopes: Scopes,
        handlers: Collection[HandlerRegistration],
        *,
        selects_all: bool,
        on_restore: Callable[[], None] | None,
    ) -> None:
        self._kind = kind
        self.scopes = scopes
        self.store = Store(scopes)
        self.overlay = Overlay(scopes)
        #: Gained scopes whose objects handlers have not been shown.
        self._hidden: set[str] = set()
        #: Frees contents that a list has replaced.
        self.disposal = Disposal()
        self.sync = SyncState(scopes, referenced=scopes.referenced)
        #: The names of a referenced kind; None for any other.
        self.names: Names | None = None
        #: Held while a list replaces the contents: one scope at a time.
        self.switching = asyncio.Lock()
        #: The registered handlers at any time.
        self._handlers = handlers
        #: Without a selector, an object that vanished was deleted.
        self._selects_all = selects_all
        self._on_restore = on_restore
        #: How often in a row the server did not say its current version when asked.
        self.failed_asks = 0
        #: Set at the next progress, and then replaced.
        self._progress = asyncio.Event()
        #: Versions up to this one may have named other states before a restore from backup.
        self._reused = 0

    def present(self) -> Noted:
        """Return the current objects. Copying the dict is much cheaper than hashing every key again."""
        if self._hidden:
            shown = [scope for scope in self.scopes if scope not in self._hidden]
            return Noted({key: stored for scope in shown for key, stored in self.store.of_scope(scope)}, self.disposal)
        return Noted({**self.store.by_key()}, self.disposal)

    # ranges that come and go

    def gain(self, scope: str, ranges: Iterable[HashRange]) -> None:
        """Add a scope of ranges."""
        self.scopes.gain(scope, ranges)
        self._hidden.add(scope)
        self.sync.gain(scope)

    def show(self, scope: str) -> None:
        """Notify the handlers of the objects of a gained scope, as of those that were present at their start."""
        if scope in self._hidden:
            self._hidden.discard(scope)
            present = Noted(dict(self.store.of_scope(scope)), self.disposal)
            for registration in self._handlers:
                registration.add_present(present)

    def show_again(self) -> None:
        """Notify the handlers of all objects again, as of those that were present at their start."""
        present = self.present()
        for registration in self._handlers:
            registration.add_present(present)

    def lose(self, ranges: Collection[HashRange]) -> tuple[list[str], Iterator[None]]:
        """Take ranges from all scopes; return the scopes that are gone, and the steps that empty the store.

        From now on, no change in these ranges is stored. Hold `switching` during the steps.
        """
        gone = self.scopes.lose(ranges)
        self.overlay.lose(gone)
        for scope in gone:
            self._hidden.discard(scope)
            self.store.advance(scope, "")
            self.sync.lose(scope)
        self.advance()
        return gone, self._emptying(ranges)

    def _emptying(self, ranges: Collection[HashRange]) -> Iterator[None]:
        for position, stored in enumerate([*self.store.in_ranges(ranges)], 1):
            if self.scopes.is_outside(stored.key):  # otherwise it has come back
                self.store.remove(stored.key)
                for registration in self._handlers:
                    registration.drop(stored.key)
            if not position % SLICE:
                yield
        for registration in self._handlers:  # deleted objects of which they have not been notified
            registration.drop_outside(self.scopes.is_outside)

    # names

    def begin(self, scope: str, resource_version: str, *, new_epoch: bool) -> None:
        """Begin a wide scope at a version: from there on, the watch shows every change. Its names have to join."""
        if new_epoch:
            self.report_restore(scope, resource_version)
            self._reused = max(self._reused, self._highest(scope))
            self.overlay.renew(scope=scope)
        self.store.advance(scope, resource_version)
        self.sync.listed(scope)
        self.advance()
        if self.names is not None:
            self.names.begun(scope)

    def went_back(self, stored: StoredObject | None, resource_version: str, *, key: Key, before: str) -> bool:
        """Whether the answer for a name shows a restore; ``before`` was the version of its scope at the request."""
        if is_older(resource_version, before):
            return True
        old = self.store.get(key)
        return (
            old is not None
            and stored is not None
            and old.uid == stored.uid
            and is_older(stored.resource_version, old.resource_version)
            and not is_older(resource_version, old.resource_version)  # else a watch has shown the newer state meanwhile
        )

    def answer(self, key: Key, stored: StoredObject | None) -> None:
        """Store the answer for a name, or that there is no object."""
        old = self.store.get(key)
        if stored is None:
            self.store.remove(key)
        elif old is None or not self._is_same(old, stored):
            self.store.put(stored)
        if old is not None and self._selects_all and (stored is None or stored.uid != old.uid):
            self.overlay.vanished(old.uid)
        if self.store.get(key) is not old:
            for registration in self._handlers:
                registration.note(key, old, framed=False)

    def _is_same(self, old: StoredObject, new: StoredObject) -> bool:
        """Whether two states are one. A version that the restored server has reused may name two."""
        reused = (version_number(new.resource_version) or 0) <= self._reused
        return is_same_version(old, new) and not (reused and old.raw != new.raw)

    def drop(self, key: Key) -> None:
        """Take a name out of its scope, and its object out of the store. No handler is notified."""
        self.scopes.displace(key)
        self.store.remove(key)
        for registration in self._handlers:
            registration.drop(key)

    def vacate(self) -> list[str]:
        """End the scopes without names; return them."""
        gone = self.scopes.vacate()
        for scope in gone:
            self.store.advance(scope, "")
            self.sync.lose(scope)
        self.overlay.lose(gone)
        self.advance()
        return gone

    @property
    def fails(self) -> bool:
        """Whether the server has failed so often to say its current version that it is unclear when it does."""
        return self.failed_asks >= FAILING

    async def wait_synced(self) -> None:
        """Wait until the store holds a complete list."""
        while not self.sync.synced:
            await self.wait_progress()

    async def wait_progress(self) -> None:
        """Wait until the store advances or its sync state changes."""
        await self._progress.wait()

    def advance(self) -> None:
        """Wake the callers that wait for progress."""
        progress, self._progress = self._progress, asyncio.Event()
        progress.set()

    def report_restore(self, scope: str, resource_version: str) -> None:
        """Note that the server was restored from a backup. Its cache relists every kind; a list of the scope follows."""
        if not self.sync.restore(scope):
            return
        _log.warning(
            "the server was restored from a backup or replaced: resource versions of %s went back to %s; relisting every kind",
            self._kind.kind,
            resource_version,
        )
        if self._on_restore is not None:
            self._on_restore()

    def committing(
        self, scope: str, objects: dict[Key, StoredObject], resource_version: str, *, new_epoch: bool, began: int = 0
    ) -> Iterator[None]:
        """Replace a scope with a complete list, yielding after every few objects; handlers get deletions first.

        Hold `switching` until the end. The method consumes ``objects``. ``began`` is `Overlay.deletions` when the list was
        requested.
        """
        if not new_epoch:
            new_epoch = yield from shows_restore(self.store, self.overlay, objects, began=began)
        if new_epoch:
            self.report_restore(scope, resource_version)
        yield from self._replacing(scope, objects, resource_version, new_epoch=new_epoch)
        self.sync.listed(scope)
        self.advance()
        if self.sync.refreshed and (waiting := [handler for handler in self._handlers if not handler.started]):
            present = self.present()
            for registration in waiting:
                registration.start(present)

    def withdrawing(self, scope: str) -> Iterator[None]:
        """Empty a scope because the server no longer serves the kind, in steps like `committing`."""
        yield from self._replacing(scope, {}, "")
        self.overlay.clear(scope=scope)
        if self.names is not None:
            self.names.withdrawn(scope)
        self.sync.withdraw(scope)
        self.advance()

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
            self.overlay.renew(scope=scope)
        replaced = self.store.switch(replacement)
        if self._selects_all:
            self.overlay.vanished_with(replacement.removed)
        handlers = self._handlers if scope not in self._hidden else ()
        differences = Noted(replacement.differences, self.disposal)
        for registration in handlers:
            registration.note_all(differences)
        for last in written:  # those that are gone, and that no watch has ever shown
            if self.store.get(last.key) is None and last.key not in replacement.differences:
                for registration in handlers:
                    registration.note(last.key, None, framed=False, last=last)
        self.disposal.add(*replaced.containers(), entries=len(replaced.objects))
        self.disposal.add(replacement.removed, objects, entries=max(len(replacement.removed), len(objects)))
        self.store.advance(scope, resource_version)
        self.overlay.reached(resource_version, scope=scope)

    def apply(self, scope: str, changes: Changes, resource_version: str) -> None:
        """Apply changes from the watch, in order."""
        if scope not in self.scopes:
            return  # lost meanwhile
        handlers = self._handlers if scope not in self._hidden else ()
        names = self.names if self.scopes.is_wide(scope) else None
        for change in changes:
            match change:
                case Put(stored) | Remove(stored) if names is not None and (
                    not self.scopes.covers(scope, stored.key) or names.overtakes(stored.key, stored.resource_version)
                ):
                    pass
                case Put(stored):
                    self._put(stored, handlers)
                case Remove(stored):
                    self._remove(stored, handlers)
                case Mark():
                    pass
        self.store.advance(scope, resource_version)
        self.overlay.reached(resource_version, scope=scope)
        self.advance()

    def _put(self, stored: StoredObject, handlers: Iterable[HandlerRegistration]) -> None:
        old = self.store.get(stored.key)
        if old is not None and is_same_version(old, stored):
            return
        # A reused version may have named another state before the restore: handlers must not treat it as known.
        framed = not self._reused or (version_number(stored.resource_version) or 0) > self._reused
        self.store.put(stored)
        for registration in handlers:
            registration.note(stored.key, old, framed=framed)

    def _remove(self, last: StoredObject, handlers: Iterable[HandlerRegistration]) -> None:
        old = self.store.remove(last.key)
        if old is None:
            return
        if self._selects_all:
            self.overlay.vanished(old.uid)
        for registration in handlers:
            registration.note(last.key, old, framed=True, last=last)

    def miss(self, scope: str) -> None:
        """Note that the server does not serve the kind, so that reads do not wait for it."""
        if self.sync.miss(scope):
            _log.info("kind %s is not served; waiting for its CRD: steersman generate crds MODULE", self._kind)
        self.advance()

    def deny(self, scope: str, error: StatusError) -> None:
        """Note that the server denies listing the kind, so that reads do not wait for the list."""
        if not self.sync.synced:
            # The next list starts after all recorded writes, so it includes them.
            self.overlay.clear(scope=scope)
        self.sync.deny(scope, error)
        self.advance()
        if self.names is not None:
            self.names.denied(scope)

    def _highest(self, scope: str) -> int:
        """Return the highest version seen in a scope, including the responses to our own writes."""
        written = [self.overlay.visible(key, None) for key in self.overlay.touched()]
        versions = [self.store.watermark(scope), *(stored.resource_version for stored in written if stored is not None)]
        return max(version_number(version) or 0 for version in versions)


def shows_restore(
    store: Store, overlay: Overlay, listed: Mapping[Key, StoredObject], *, began: int
) -> Generator[None, None, bool]:
    """Return whether a list shows a restore, yielding after every few objects.

    ``began`` is `Overlay.deletions` when the list was requested.
    """
    for position, stored in enumerate(listed.values(), 1):
        old = store.get(stored.key)
        # Most objects have not changed, and comparing texts is cheaper than parsing them.
        if old is None or old.uid != stored.uid or old.resource_version == stored.resource_version:
            went_back = False
        else:
            went_back = is_older(stored.resource_version, old.resource_version)
        if went_back or overlay.is_deleted(stored.uid, before=began):
            return True
        if not position % SLICE:
            yield
    return False
