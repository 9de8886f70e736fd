"""The overlay: our own writes that the watch has not delivered yet.

Guarantees
- **Never older than yourself.** After `record_write`, no older state of that object is visible. After `record_delete`, the
  deleted object is hidden, whatever the watch still delivers. A successor of the same name is visible.
- After a write with an unknown outcome, reads of the key go to the server until one of them succeeds.
- An entry is dropped when the watermark reaches its version: from then on the store is current.
- Versions are compared as numbers. After a write with a non-numeric version, reads of the key go to the server until the
  store has exactly that version.
- Nothing here waits, and no key delays another.
- A key outside the ranges of a divided kind, or the names of a referenced one, has no entry: reads of it go to the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from steersman.cache.scopes import Scopes
from steersman.cache.stored_object import StoredObject
from steersman.objects import Key, version_number

#: The maximum number of deleted uids, and of vanished uids, to remember. Uids are never reused, so dropping the oldest
#: only matters if the watch lags behind by as many deletions.
_TOMBSTONES_MAX = 4096


class _Entry(msgspec.Struct):
    """What the overlay records about one key."""

    #: Older versions than this are hidden.
    floor: int = 0
    #: The state to show instead. None hides the key: the object is absent, or the cache no longer selects it.
    written: StoredObject | None = None
    #: Read live until the store has exactly this version.
    awaited: str = ""
    #: The number of writes with an unknown outcome; read live while it is not 0.
    unknown: int = 0


class Overlay:
    """Our own writes to the objects of one kind."""

    def __init__(self, scopes: Scopes | None = None) -> None:
        self._scopes = scopes or Scopes()
        self._entries: dict[Key, _Entry] = {}
        #: uid -> the key of the deleted object
        self._deleted: dict[str, Key] = {}
        #: uid -> the number of the deletion; the numbers grow
        self._numbers: dict[str, int] = {}
        #: How many deletions were recorded.
        self.deletions = 0
        #: key -> the uids deleted under it, each with its newest known version, or 0 if none is known
        self._deleted_at: dict[Key, dict[str, int]] = {}
        #: Uids recently deleted according to the watch: its event often arrives before the response to the delete.
        self._vanished: dict[str, None] = {}
        #: scope -> the version that the store has reached in it
        self._reached: dict[str, int] = {}
        self._lowest = 0
        #: How often the overlay was cleared. Versions of different epochs are not comparable, not even for equality.
        self.epoch = 0

    def __len__(self) -> int:
        return len(self._entries)

    # our own writes

    def record_write(self, stored: StoredObject, *, selected: bool = True) -> None:
        """Record the response to a write. ``selected``: the cache still selects the object."""
        if self._scopes.is_outside(stored.key):
            return
        number = version_number(stored.resource_version)
        if stored.uid in self._deleted:
            # our own delete overtook this response
            gone = self._deleted_at[stored.key]
            gone[stored.uid] = max(gone[stored.uid], number or 0)
            return
        if number is not None and number <= self._reached_at(stored.key):
            return  # the store has caught up, and may have a newer state
        if stored.key in self._deleted_at and not self._succeeds(stored.key, number or 0):
            return
        entry = self._entries.get(stored.key) or _Entry()
        if number is None:
            entry.awaited = stored.resource_version
        elif number > entry.floor:
            entry.floor, entry.written = number, stored if selected else None
            entry.awaited = ""
        else:
            return
        self._entries[stored.key] = entry
        self._lowest = min(self._lowest, entry.floor) if self._lowest else entry.floor

    def _succeeds(self, key: Key, number: int) -> bool:
        """Whether an object is newer than those we deleted under its key: lifetimes of the same name do not overlap."""
        versions = self._deleted_at[key].values()
        if any(number < version for version in versions):
            return False
        if not all(versions):
            # One of them has no known version, so only the server can tell which came first.
            self.record_unknown(key)
        return True

    def record_delete(self, key: Key, uid: str, *, base: StoredObject | None) -> None:
        """Record that the object with this uid is gone for good; ``base`` is the store's state of the key."""
        if self._scopes.is_outside(key):
            return
        entry = self._entries.get(key)
        written = entry.written if entry is not None else None
        if entry is not None and written is not None and written.uid == uid:
            entry.written = None
        if uid in self._deleted or uid in self._vanished:
            return
        shown = [each for each in (base, written) if each is not None]
        unseen = all(each.uid != uid for each in shown)
        if unseen and (shown or (entry is not None and entry.unknown)):
            # This uid was never seen here, so only the server can tell whether the visible object came before or after it.
            self.record_unknown(key)
        self._deleted[uid] = key
        self.deletions += 1
        self._numbers[uid] = self.deletions
        versions = [version_number(each.resource_version) or 0 for each in shown if each.uid == uid]
        self._deleted_at.setdefault(key, {})[uid] = max(versions, default=0)
        if len(self._deleted) > _TOMBSTONES_MAX:
            self._forget_deleted(next(iter(self._deleted)))

    def is_deleted(self, uid: str, *, before: int) -> bool:
        """Whether an object is gone: the watch has shown its deletion, or our own was one of the first ``before``."""
        if uid in self._vanished:
            return True
        number = self._numbers.get(uid)
        return number is not None and number <= before

    def record_unknown(self, key: Key) -> None:
        """Record a write with an unknown outcome."""
        if not self._scopes.is_outside(key):
            self._entries.setdefault(key, _Entry()).unknown += 1

    def doubts(self, key: Key) -> int:
        """Return the number of unknown outcomes. Call it before a live read, and pass the number on with the response."""
        entry = self._entries.get(key)
        return entry.unknown if entry is not None else 0

    def record_read(self, stored: StoredObject, *, doubts: int, selected: bool = True) -> None:
        """Record the object that a live read returned. It settles the ``doubts`` from before the request."""
        if stored.key in self._deleted_at and self.doubts(stored.key) == doubts:
            # The server returned this object after the deletes, so it is newer than the deleted ones.
            gone = self._deleted_at[stored.key]
            gone.update({uid: 1 for uid, version in gone.items() if not version})
        self.record_write(stored, selected=selected)
        self._settle(stored.key, doubts)

    def record_absent(self, key: Key, resource_version: str, *, doubts: int, base: StoredObject | None) -> None:
        """Record that a live read at a version found no object; ``base`` is the store's state of the key."""
        if self._scopes.is_outside(key):
            return
        number = version_number(resource_version)
        entry = self._entries.get(key)
        if number is None:
            for each in (base, entry.written if entry is not None else None):
                if each is not None:
                    self.record_delete(key, each.uid, base=base)
        elif number > self._reached_at(key) and (entry is None or number > entry.floor):
            entry = self._entries.setdefault(key, _Entry())
            entry.floor, entry.written = number, None
        if entry is not None:
            entry.awaited = ""
        self._settle(key, doubts)

    def record_refreshed(self, key: Key, *, doubts: int) -> None:
        """Record that a relist is complete. It settles the ``doubts`` from before."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.awaited = ""
        self._settle(key, doubts)

    def _settle(self, key: Key, doubts: int) -> None:
        entry = self._entries.get(key)
        if entry is not None and entry.unknown == doubts:
            entry.unknown = 0
            if not entry.awaited and entry.floor <= self._reached_at(key):
                del self._entries[key]

    # what readers see

    def needs_live(self, key: Key, base: StoredObject | None) -> bool:
        """Whether a read of this key must go to the server."""
        entry = self._entries.get(key)
        if entry is None:
            return False
        if entry.awaited and base is not None and base.resource_version == entry.awaited:
            entry.awaited = ""
        return bool(entry.unknown or entry.awaited)

    def live_keys(self) -> list[Key]:
        """Return the keys that may need a live read."""
        return [key for key, entry in self._entries.items() if entry.unknown or entry.awaited]

    def visible(self, key: Key, base: StoredObject | None) -> StoredObject | None:
        """Return the state that readers see of a key; ``base`` is the store's state."""
        entry = self._entries.get(key)
        if entry is None:
            return None if base is not None and base.uid in self._deleted else base
        if (
            base is not None
            and base.uid not in self._deleted
            and (version_number(base.resource_version) or 0) >= entry.floor
        ):
            return base
        return entry.written

    def touched(self) -> Iterable[Key]:
        """Return the keys whose visible state may differ from the store's."""
        return {**dict.fromkeys(self._entries), **dict.fromkeys(self._deleted_at)}

    @property
    def is_empty(self) -> bool:
        """Whether readers see exactly the store's contents."""
        return not self._entries and not self._deleted_at

    def writes(self) -> list[StoredObject]:
        """Return our last write of each key; the store may have a newer state."""
        return [entry.written for entry in self._entries.values() if entry.written is not None]

    def writes_until(self, watermark: str, *, scope: str = "") -> list[StoredObject]:
        """Return our last writes in ``scope`` that a list at a version includes; all of them without a version."""
        number = version_number(watermark)
        return [
            entry.written
            for key, entry in self._entries.items()
            if entry.written is not None
            and (number is None or entry.floor <= number)
            and self._scopes.covers(scope, key)
        ]

    def touches(self, key: Key) -> bool:
        """Whether the visible state of a key may differ from the store's."""
        return key in self._entries or key in self._deleted_at

    # progress of the watch

    def reached(self, watermark: str, *, scope: str = "") -> None:
        """Drop the entries in ``scope`` up to the watermark: the store has caught up with them."""
        number = version_number(watermark)
        if number is None:
            return
        self._reached[scope] = number
        if not self._entries or number < self._lowest:
            return
        left = [
            key
            for key, entry in self._entries.items()
            if entry.floor <= number and not entry.unknown and not entry.awaited and self._scopes.covers(scope, key)
        ]
        for key in left:
            del self._entries[key]
        self._lowest = min((entry.floor for entry in self._entries.values()), default=0)

    def vanished(self, uid: str) -> None:
        """Drop a tombstone: the watch has reported the deletion."""
        self._vanished[uid] = None
        if len(self._vanished) > _TOMBSTONES_MAX:
            del self._vanished[next(iter(self._vanished))]
        if uid in self._deleted:
            self._forget_deleted(uid)

    def vanished_with(self, removed: Sequence[StoredObject]) -> None:
        """Drop the tombstones of many objects: a list has shown that they are gone."""
        for stored in removed[-_TOMBSTONES_MAX:]:
            self.vanished(stored.uid)
        if self._deleted:
            for stored in removed[:-_TOMBSTONES_MAX]:
                if stored.uid in self._deleted:
                    self._forget_deleted(stored.uid)

    def renew(self, *, scope: str = "") -> None:
        """Begin an epoch in ``scope``: a list of a server that was restored from a backup is complete.

        Drop every entry but those in doubt: the list may be older than these writes.
        """
        # A live read from before the epoch settles nothing: the number of doubts grows.
        doubts = {key: entry.unknown + 1 for key, entry in self._entries.items() if entry.unknown}
        self.clear(scope=scope)
        for key, count in doubts.items():
            self._entries.setdefault(key, _Entry()).unknown = count

    def clear(self, *, scope: str = "") -> None:
        """Drop every entry in ``scope``: the next list includes our own writes, or their kind is no longer served."""
        self.epoch += 1
        self._reached.pop(scope, None)
        self._vanished.clear()
        self._drop(lambda key: self._scopes.covers(scope, key))

    def lose(self, gone: Iterable[str]) -> None:
        """Drop every entry that is in no scope any more; ``gone`` are the scopes without ranges."""
        for scope in gone:
            self._reached.pop(scope, None)
        self._drop(self._scopes.is_outside)

    def _drop(self, concerns: Callable[[Key], bool]) -> None:
        for key in [key for key in self._entries if concerns(key)]:
            del self._entries[key]
        for uid in [uid for uid, key in self._deleted.items() if concerns(key)]:
            self._forget_deleted(uid)

    def _reached_at(self, key: Key) -> int:
        """Return the version that the store has reached in the scope of a key."""
        reached = self._reached
        if self._scopes.divided or self._scopes.referenced:
            place = self._scopes.place_of(key)
            return 0 if place is None else reached.get(place, 0)
        return reached[key.namespace] if key.namespace in reached else reached.get("", 0)

    def _forget_deleted(self, uid: str) -> None:
        key = self._deleted.pop(uid)
        del self._numbers[uid]
        del self._deleted_at[key][uid]
        if not self._deleted_at[key]:
            del self._deleted_at[key]
