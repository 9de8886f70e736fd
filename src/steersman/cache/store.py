"""The objects of one kind, as last seen on the server.

Guarantees
- An object is found by key at once, and by namespace, owner, label or a declared index at the cost of what is returned.
- Indexes that nobody uses cost nothing: those over namespaces, owners and labels are built when first asked for.
- The watermark of a scope is a version up to which every change in that scope is in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeAlias

from steersman.cache.indexes import Index
from steersman.cache.stored import Stored
from steersman.cache.versions import version_number
from steersman.objects import Key, Selector

#: Named here because `Store.list` hides the built-in name inside the class.
Found: TypeAlias = list[Stored]
Keys: TypeAlias = list[Key]


class UnknownIndex(KeyError):
    """An index was asked for that nobody declared."""

    def __str__(self) -> str:
        return str(self.args[0])


class Store:
    """Objects by key, with indexes; changed by its informer alone.

    A scope is a namespace that is watched on its own, or ``""`` for a watch over everything.
    """

    def __init__(self) -> None:
        self._objects: dict[Key, Stored] = {}
        self._indexes: dict[str, Index] = {}
        self._namespaces: Index | None = None
        self._owners: Index | None = None
        self._labels: dict[str, Index] = {}
        self._watermarks: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Stored]:
        return iter(self._objects.values())

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def get(self, key: Key) -> Stored | None:
        """The object under a key."""
        return self._objects.get(key)

    def keys(self) -> Keys:
        """All keys, as they are now."""
        return [*self._objects]

    def list(self, *, namespace: str = "", labels: Selector | None = None) -> Found:
        """The objects in a namespace, or in all, that a selector selects."""
        found = self._candidates(namespace, labels)
        if namespace:
            found = (each for each in found if each.key.namespace == namespace)
        if labels:
            found = (each for each in found if labels.matches(each.own_labels))
        return [*found]

    def by_index(self, name: str, value: Hashable) -> Found:
        """The objects that a declared index has under a value."""
        index = self._indexes.get(name)
        if index is None:
            known = ", ".join(sorted(self._indexes)) or "none"
            raise UnknownIndex(
                f"there is no index {name!r}; declare it with manager.index or cache.add_index before it is used."
                f" Declared: {known}"
            )
        return self._take(index.find(value))

    def by_owner(self, uid: str) -> Found:
        """The objects that name this uid among their owners."""
        if self._owners is None:
            self._owners = self._built(lambda stored: stored.owners)
        return self._take(self._owners.find(uid))

    def add_index(self, name: str, values_of: Callable[[Stored], Iterable[Hashable]]) -> None:
        """Declare an index; the objects that are there already are put into it now."""
        if name in self._indexes:
            raise ValueError(f"there is an index {name!r} already; give the other one its own name")
        self._indexes[name] = self._built(values_of, remember=True)

    # changes, made by the informer

    def put(self, stored: Stored) -> Stored | None:
        """Store an object; what was there before."""
        old = self._objects.get(stored.key)
        self._objects[stored.key] = stored
        for index in self._all_indexes():
            index.replace(old, stored)
        return old

    def remove(self, key: Key) -> Stored | None:
        """Remove an object; what was there before."""
        old = self._objects.pop(key, None)
        if old is not None:
            for index in self._all_indexes():
                index.replace(old, None)
        return old

    def missing_from(self, scope: str, present: Mapping[Key, Stored]) -> Keys:
        """The keys of a scope that a complete list of it no longer holds."""
        if not scope:
            return [key for key in self._objects if key not in present]
        return [each.key for each in self.list(namespace=scope) if each.key not in present]

    def advance(self, scope: str, resource_version: str) -> None:
        """Say up to which version a scope is complete; empty takes it back."""
        if resource_version:
            self._watermarks[scope] = resource_version
        else:
            self._watermarks.pop(scope, None)

    def watermark(self, scope: str = "") -> str:
        """The version up to which a scope is complete; empty before its first list."""
        return self._watermarks.get(scope, "")

    @property
    def lowest_watermark(self) -> int | None:
        """The version that every scope has reached; None if there is none, or one that is no number."""
        numbers = [version_number(each) for each in self._watermarks.values()]
        known = [each for each in numbers if each is not None]
        return min(known) if known and len(known) == len(numbers) else None

    def _candidates(self, namespace: str, labels: Selector | None) -> Iterator[Stored]:
        """A superset of what is asked for, as small as an index makes it."""
        for requirement in labels.requirements if labels else ():
            value = labels.required_value(requirement.key) if labels else None
            if value is not None:
                return iter(self._take(self._label_index(requirement.key).find(value)))
        if namespace:
            if self._namespaces is None:
                self._namespaces = self._built(lambda stored: (stored.key.namespace,))
            return iter(self._take(self._namespaces.find(namespace)))
        return iter(self._objects.values())

    def _label_index(self, label: str) -> Index:
        index = self._labels.get(label)
        if index is None:
            index = self._labels[label] = self._built(
                lambda stored: (stored.own_labels[label],) if stored.own_labels and label in stored.own_labels else ()
            )
        return index

    def _built(self, values_of: Callable[[Stored], Iterable[Hashable]], *, remember: bool = False) -> Index:
        index = Index(values_of, remember=remember)
        for stored in self._objects.values():
            index.replace(None, stored)
        return index

    def _take(self, keys: Iterable[Key]) -> Found:
        objects = self._objects
        return [objects[key] for key in keys]

    def _all_indexes(self) -> Iterator[Index]:
        if self._namespaces is not None:
            yield self._namespaces
        if self._owners is not None:
            yield self._owners
        yield from self._labels.values()
        yield from self._indexes.values()
