"""What we wrote ourselves and the watch has not shown yet.

Guarantees
- **Never older than yourself.** After `record_write` no state of that object older than the write is visible; after
  `record_delete` the deleted object is not, whatever the watch still says of it, while a successor of the same name is.
- A write whose outcome is unknown makes the key's reads live until one of them was answered.
- An entry leaves when the watermark reaches its version: from then on the store tells the whole truth.
- Versions are compared as numbers. One that is no number cannot be compared: such a key is read live until the store
  shows exactly that version.
- Nothing here waits, and no key delays another.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from steersman.cache.stored import Stored
from steersman.cache.versions import version_number
from steersman.objects import Key

#: Deleted uids that are remembered at most, and vanished ones. A uid is never used again, so forgetting the oldest only
#: matters to a watch that lags behind by as many deletions.
_TOMBSTONES_MAX = 4096


class _Entry(msgspec.Struct):
    """What is known of one key beyond the store."""

    #: States older than this are not shown.
    floor: int = 0
    #: What is shown instead; None: nothing is, because our write took it out of the cache's selection.
    written: Stored | None = None
    #: Read live until this very version is in the store.
    awaited: str = ""
    #: Read live, because so many writes may or may not have happened.
    unknown: int = 0


class Overlay:
    """Our own writes to the objects of one kind."""

    def __init__(self) -> None:
        self._entries: dict[Key, _Entry] = {}
        #: uid -> the key it was deleted under
        self._deleted: dict[str, Key] = {}
        #: key -> the uids that were deleted under it, each with its newest known version; 0: none
        self._deleted_at: dict[Key, dict[str, int]] = {}
        #: uids that the watch has shown to be gone, lately: the event often comes before the answer to the delete.
        self._vanished: dict[str, None] = {}
        #: scope -> the version that the store has reached there
        self._reached: dict[str, int] = {}
        self._lowest = 0
        #: How often everything was forgotten: versions of different epochs cannot be compared, not even for equality.
        self.epoch = 0

    def __len__(self) -> int:
        return len(self._entries)

    # what we did

    def record_write(self, stored: Stored, *, selected: bool = True) -> None:
        """Remember the answer to a write. ``selected``: the cache's selector still covers the object."""
        number = version_number(stored.resource_version)
        if stored.uid in self._deleted:
            # an answer that was overtaken by our own delete
            gone = self._deleted_at[stored.key]
            gone[stored.uid] = max(gone[stored.uid], number or 0)
            return
        if number is not None and number <= self._reached_at(stored.key):
            return  # the store has caught up already, and may know something newer
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
        """Whether an object came after those that we deleted under its key: the lives of namesakes do not overlap."""
        versions = self._deleted_at[key].values()
        if any(number < version for version in versions):
            return False
        if not all(versions):
            # one of them was never seen: whether it came before or after, only the server knows
            self.record_unknown(key)
        return True

    def record_delete(self, key: Key, uid: str, *, base: Stored | None) -> None:
        """Remember that the object with this uid is gone for good, ``base`` being what the store has under its key."""
        entry = self._entries.get(key)
        written = entry.written if entry is not None else None
        if entry is not None and written is not None and written.uid == uid:
            entry.written = None
        if uid in self._deleted or uid in self._vanished:
            return
        shown = [each for each in (base, written) if each is not None]
        unseen = all(each.uid != uid for each in shown)
        if unseen and (shown or (entry is not None and entry.unknown)):
            # never seen here: whether what is shown, or being read, came before or after it, only the server knows
            self.record_unknown(key)
        self._deleted[uid] = key
        versions = [version_number(each.resource_version) or 0 for each in shown if each.uid == uid]
        self._deleted_at.setdefault(key, {})[uid] = max(versions, default=0)
        if len(self._deleted) > _TOMBSTONES_MAX:
            self._forget_deleted(next(iter(self._deleted)))

    def record_unknown(self, key: Key) -> None:
        """Remember that a write to this key may or may not have happened."""
        self._entries.setdefault(key, _Entry()).unknown += 1

    def doubts(self, key: Key) -> int:
        """How many outcomes are unknown: to be taken before a live read, and handed back with its answer."""
        entry = self._entries.get(key)
        return entry.unknown if entry is not None else 0

    def record_read(self, stored: Stored, *, doubts: int, selected: bool = True) -> None:
        """Remember what a live read found; it settles the doubts there were before it was sent."""
        if stored.key in self._deleted_at and self.doubts(stored.key) == doubts:
            # found after they were deleted, so it came after them
            gone = self._deleted_at[stored.key]
            gone.update({uid: 1 for uid, version in gone.items() if not version})
        self.record_write(stored, selected=selected)
        self._settle(stored.key, doubts)

    def record_absent(self, key: Key, resource_version: str, *, doubts: int, base: Stored | None) -> None:
        """Remember that a live read at a version found no such object, ``base`` being what the store has there."""
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
        """Remember that everything was read again: the store settles the doubts there were before."""
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

    # what is shown

    def needs_live(self, key: Key, base: Stored | None) -> bool:
        """Whether only the server can say what a reader may see."""
        entry = self._entries.get(key)
        if entry is None:
            return False
        if entry.awaited and base is not None and base.resource_version == entry.awaited:
            entry.awaited = ""
        return bool(entry.unknown or entry.awaited)

    def live_keys(self) -> list[Key]:
        """The keys that may need a live read."""
        return [key for key, entry in self._entries.items() if entry.unknown or entry.awaited]

    def visible(self, key: Key, base: Stored | None) -> Stored | None:
        """What a reader sees of a key under which the store has ``base``."""
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
        """The keys whose visible state may differ from the store's."""
        return {**dict.fromkeys(self._entries), **dict.fromkeys(self._deleted_at)}

    @property
    def is_empty(self) -> bool:
        """Whether readers see exactly what the store has."""
        return not self._entries and not self._deleted_at

    def writes(self) -> list[Stored]:
        """What we wrote last, key by key; the store may know something newer."""
        return [entry.written for entry in self._entries.values() if entry.written is not None]

    def touches(self, key: Key) -> bool:
        """Whether the visible state of a key may differ from the store's."""
        return key in self._entries or key in self._deleted_at

    # what the watch shows

    def reached(self, watermark: str, *, scope: str = "") -> None:
        """Drop what the store has caught up with: everything in ``scope`` up to the watermark."""
        number = version_number(watermark)
        if number is None:
            return
        self._reached[scope] = number
        if not self._entries or number < self._lowest:
            return
        left = [
            key
            for key, entry in self._entries.items()
            if entry.floor <= number
            and not entry.unknown
            and not entry.awaited
            and (not scope or key.namespace == scope)
        ]
        for key in left:
            del self._entries[key]
        self._lowest = min((entry.floor for entry in self._entries.values()), default=0)

    def vanished(self, uid: str) -> None:
        """Forget a tombstone: the watch has shown that the object is gone."""
        self._vanished[uid] = None
        if len(self._vanished) > _TOMBSTONES_MAX:
            del self._vanished[next(iter(self._vanished))]
        if uid in self._deleted:
            self._forget_deleted(uid)

    def clear(self, *, scope: str = "") -> None:
        """Forget everything: the server is another one than it was, or was restored from a backup."""
        self.epoch += 1
        self._reached.pop(scope, None)
        self._vanished.clear()
        for key in [key for key in self._entries if not scope or key.namespace == scope]:
            del self._entries[key]
        for uid in [uid for uid, key in self._deleted.items() if not scope or key.namespace == scope]:
            self._forget_deleted(uid)

    def _reached_at(self, key: Key) -> int:
        """The version that the store has reached where a key is."""
        reached = self._reached
        return reached[key.namespace] if key.namespace in reached else reached.get("", 0)

    def _forget_deleted(self, uid: str) -> None:
        key = self._deleted.pop(uid)
        del self._deleted_at[key][uid]
        if not self._deleted_at[key]:
            del self._deleted_at[key]
