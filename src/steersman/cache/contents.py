"""The contents of a store, and their replacement by a complete list.

Guarantees
- A list of any size replaces the contents in one step: no reader sees half of it.
- The next contents are built beside the current ones, `SLICE` objects per turn of the event loop.
- Changes in other scopes during the build are in the next contents too.
- An index over existing objects is built in the same way; lookups do not use it before it is complete.
- Values of declared indexes are not recomputed for unchanged objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from steersman.cache.indexes import Index
from steersman.cache.stored_object import StoredObject
from steersman.objects import Key

#: How many objects are processed per turn of the event loop.
SLICE = 256


class IndexName(NamedTuple):
    """Identifies an index: over namespaces, owners, one label, one condition that is not met, or a declared function."""

    by: Literal["namespace", "owner", "label", "label in a namespace", "condition", "function"]
    name: str = ""


class Contents:
    """Objects by key, and their indexes."""

    __slots__ = ("deleting", "indexes", "objects", "unfinished")

    def __init__(self) -> None:
        self.objects: dict[Key, StoredObject] = {}
        #: Those of them that are marked for deletion.
        self.deleting: dict[Key, StoredObject] = {}
        self.indexes: dict[IndexName, Index] = {}
        #: Indexes that do not hold every object yet. Changes update them as well.
        self.unfinished: dict[IndexName, Index] = {}

    def containers(self) -> Iterator[dict[Any, Any]]:
        """Yield the containers to free after a list has replaced these contents."""
        yield self.objects
        yield self.deleting
        for index in (*self.indexes.values(), *self.unfinished.values()):
            yield from index.containers()

    def successor(self) -> Contents:
        """Return empty contents with the same indexes."""
        other = Contents()
        other.indexes = {name: index.empty_copy() for name, index in (self.indexes | self.unfinished).items()}
        return other

    def put(self, stored: StoredObject) -> StoredObject | None:
        """Store an object; return its previous state."""
        old = self.objects.get(stored.key)
        self.objects[stored.key] = stored
        if stored.deleting:
            self.deleting[stored.key] = stored
        elif self.deleting:
            self.deleting.pop(stored.key, None)
        for index in (*self.indexes.values(), *self.unfinished.values()):
            index.replace(old, stored)
        return old

    def adopt(self, stored: StoredObject, before: Contents) -> None:
        """Copy an unchanged object, with its index values, from earlier contents."""
        if stored.key in self.objects:
            return  # already added by a concurrent change
        self.objects[stored.key] = stored
        if stored.deleting:
            self.deleting[stored.key] = stored
        for name, index in self.indexes.items():
            known = before.indexes.get(name)
            if known is not None:
                index.adopt(stored, known)
            else:
                index.replace(None, stored)

    def remove(self, key: Key) -> StoredObject | None:
        """Remove an object; return its last state."""
        old = self.objects.pop(key, None)
        if old is not None:
            self.deleting.pop(key, None)
            for index in (*self.indexes.values(), *self.unfinished.values()):
                index.replace(old, None)
        return old

    def complete(self, name: IndexName) -> Index:
        """Complete an index in one go."""
        index = self.unfinished[name]
        index.fill(self.objects.values())
        self.indexes[name] = self.unfinished.pop(name)
        return index

    def indexing(self, name: IndexName) -> Iterator[None]:
        """Complete an index, yielding after every `SLICE` objects.

        Concurrent changes update the index too, and adding an object twice changes nothing. So several callers may build
        the same index, and a build may start over.
        """
        index, keys = self.unfinished[name], [*self.objects]
        for start in range(0, len(keys), SLICE):
            index.fill([stored for key in keys[start : start + SLICE] if (stored := self.objects.get(key)) is not None])
            if start + SLICE <= len(keys):
                yield
        if self.unfinished.pop(name, None) is not None:
            self.indexes[name] = index


class Replacement:
    """The next contents of a store, built from a complete list of one scope; made by `Store.replacement`."""

    def __init__(
        self,
        before: Contents,
        covers: Callable[[Key], bool],
        listed: Mapping[Key, StoredObject],
        *,
        same: Callable[[StoredObject, StoredObject], bool],
    ) -> None:
        self._before = before
        self._after = before.successor()
        #: Whether a key is in the scope.
        self._covers = covers
        self._listed = listed
        self._same = same
        #: The previous state of every key that differs; removed keys come first.
        self.differences: dict[Key, StoredObject | None] = {}
        self.removed: list[StoredObject] = []

    def build(self) -> Iterator[None]:
        """Build the next contents, yielding after every `SLICE` objects."""
        before, after, listed = self._before, self._after, self._listed
        for position, key in enumerate([*before.objects], 1):
            stored = before.objects.get(key)
            if stored is not None and not self._covers(key):
                after.adopt(stored, before)
            elif stored is not None and key not in listed:
                self.differences[key] = stored
                self.removed.append(stored)
            if not position % SLICE:
                yield
        for position, stored in enumerate(listed.values(), 1):
            old = before.objects.get(stored.key)
            if old is not None and self._same(old, stored):
                after.adopt(old, before)
            else:
                self.differences[stored.key] = old
                after.put(stored)
            if not position % SLICE:
                yield

    def follow(self, key: Key, stored: StoredObject | None) -> None:
        """Apply a change in another scope during the build; ``stored=None`` means the object is gone."""
        if self._covers(key):
            return
        if stored is None:
            self._after.remove(key)
        else:
            self._after.put(stored)

    def containers(self) -> Iterator[dict[Any, Any]]:
        """Yield the containers to free when the replacement is abandoned."""
        yield self.differences
        yield from self._after.containers()

    def finished(self) -> Contents:
        """Return the next contents."""
        for name, index in (self._before.indexes | self._before.unfinished).items():
            if name.by == "function" and name not in self._after.indexes:  # declared during the build
                self._after.unfinished[name] = index.empty_copy()
        return self._after
