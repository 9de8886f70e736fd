"""The objects of one kind, as last seen on the server.

Guarantees
- A lookup by key takes constant time. The cost of a lookup by namespace, owner, label, label in a namespace, or declared
  index depends on the size of its result. Of several labels, one is looked up.
- Unused indexes cost nothing: those over namespaces, owners, labels and conditions are built on first use.
- An index over many objects is built a few hundred at a time (`indexing`). A lookup before its end builds it in one go.
- The watermark of a scope is a version up to which every change in that scope is in the store.
- A complete list of any size replaces a scope in one step for every reader (`steersman.cache.contents`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeAlias, cast

from steersman.cache.conditions import unmet
from steersman.cache.contents import Contents, IndexName, Replacement
from steersman.cache.indexes import Index
from steersman.cache.scopes import Scopes, hash_in
from steersman.cache.stored_object import StoredObject
from steersman.objects import Key, Selector, version_number
from steersman.wire import HashRange

#: Named here because `Store.list` hides the built-in name inside the class.
Found: TypeAlias = list[StoredObject]
Keys: TypeAlias = list[Key]


NAMESPACES, OWNERS = IndexName("namespace"), IndexName("owner")


class UnknownIndex(KeyError):
    """The index is not declared."""

    def __str__(self) -> str:
        return str(self.args[0])


class Store:
    """Objects by key, with indexes. Only the informer changes it.

    A scope is a part of the collection with its own watch: see `Scopes`.
    """

    def __init__(self, scopes: Scopes | None = None) -> None:
        self._scopes = scopes or Scopes()
        #: The contents that every reader sees.
        self._contents = Contents()
        #: Replacements under construction.
        self._replacements: list[Replacement] = []
        self._watermarks: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._contents.objects)

    def __iter__(self) -> Iterator[StoredObject]:
        return iter(self._contents.objects.values())

    def __contains__(self, key: object) -> bool:
        return key in self._contents.objects

    def get(self, key: Key) -> StoredObject | None:
        """Return the object with a key; None if it is absent."""
        return self._contents.objects.get(key)

    def by_key(self) -> Mapping[Key, StoredObject]:
        """Return all objects by key, not copied: later changes to the store may show."""
        return self._contents.objects

    def keys(self) -> Keys:
        """Return a copy of all keys."""
        return [*self._contents.objects]

    def list(self, *, namespace: str = "", labels: Selector | None = None) -> Found:
        """Return the objects that a selector selects, in one namespace or in all."""
        candidates = self._candidates(namespace, labels)
        if namespace:
            candidates = (stored for stored in candidates if stored.key.namespace == namespace)
        if labels:
            candidates = (stored for stored in candidates if labels.matches(stored.own_labels))
        return [*candidates]

    def by_index(self, name: str, value: Hashable) -> Found:
        """Return the objects that a declared index has under a value."""
        index = IndexName("function", name)
        if not self._is_declared(index):
            names = (*self._contents.indexes, *self._contents.unfinished)
            known = ", ".join(sorted(each.name for each in names if each.by == "function")) or "none"
            raise UnknownIndex(
                f"there is no index {name!r}; declare it with manager.index or cache.add_index before it is used."
                f" Declared: {known}"
            )
        return self._take(self._index(index).find(value))

    def by_owner(self, uid: str) -> Found:
        """Return the objects whose owner references include this uid."""
        return self._take(self._index(OWNERS).find(uid))

    def deleting(self) -> Found:
        """Return the objects that are marked for deletion."""
        return [*self._contents.deleting.values()]

    def by_unmet_condition(self, condition: str) -> Mapping[tuple[str, str], Collection[Key]]:
        """Return the keys of the objects whose condition is not True, by its status and reason; not copied.

        Objects without the condition are left out.
        """
        return cast(
            "Mapping[tuple[str, str], Collection[Key]]", self._index(IndexName("condition", condition)).by_value()
        )

    def add_index(self, name: str, values_of: Callable[[StoredObject], Iterable[Hashable]]) -> IndexName:
        """Declare an index. If the store has objects, run `indexing` to the end afterwards."""
        index = IndexName("function", name)
        if self._is_declared(index):
            raise ValueError(f"there is already an index {name!r}; choose another name for one of them")
        self._contents.unfinished[index] = Index(values_of, remember=True)
        if not self._contents.objects:
            self._index(index)
        return index

    # building indexes without blocking the event loop

    def index_for(
        self, *, namespace: str = "", labels: Selector | None = None, name: str = "", owner: str = ""
    ) -> IndexName | None:
        """Return the index that `list`, `by_index` or `by_owner` uses; None for a scan, or an index that is not declared."""
        if owner:
            return OWNERS
        if name:
            index = IndexName("function", name)
            return index if self._is_declared(index) else None
        for requirement in labels.requirements if labels else ():
            if labels is not None and labels.required_value(requirement.key) is not None:
                return IndexName("label in a namespace" if namespace else "label", requirement.key)
        return NAMESPACES if namespace else None

    def has_index(self, name: IndexName) -> bool:
        """Whether an index is complete, so that a lookup need not build it."""
        return name in self._contents.indexes

    def indexing(self, name: IndexName) -> Iterator[None]:
        """Complete an index, yielding after every few objects. A lookup before the end completes it in one go."""
        while name not in (contents := self._contents).indexes:
            if name not in contents.unfinished:
                contents.unfinished[name] = _built_in(name)
            for _ in contents.indexing(name):
                yield
                if self._contents is not contents or name in contents.indexes:
                    break  # a list has replaced the contents, or a lookup has completed the index

    def _is_declared(self, index: IndexName) -> bool:
        return index in self._contents.indexes or index in self._contents.unfinished

    def _index(self, name: IndexName) -> Index:
        """Return a complete index, built in one go if necessary."""
        contents = self._contents
        if name in contents.indexes:
            return contents.indexes[name]
        if name not in contents.unfinished:
            contents.unfinished[name] = _built_in(name)
        return contents.complete(name)

    # changes, made by the informer

    def put(self, stored: StoredObject) -> StoredObject | None:
        """Store an object; return its previous state."""
        for replacement in self._replacements:
            replacement.follow(stored.key, stored)
        return self._contents.put(stored)

    def remove(self, key: Key) -> StoredObject | None:
        """Remove an object; return its last state."""
        for replacement in self._replacements:
            replacement.follow(key, None)
        return self._contents.remove(key)

    def replacement(
        self, scope: str, listed: Mapping[Key, StoredObject], *, same: Callable[[StoredObject, StoredObject], bool]
    ) -> Replacement:
        """Begin to replace a scope with a complete list; ``same`` decides whether an object is unchanged.

        Run `building` to the end, then call `switch`.
        """
        return Replacement(self._contents, partial(self._scopes.covers, scope), listed, same=same)

    def building(self, replacement: Replacement) -> Iterator[None]:
        """Build a replacement, yielding after every few objects. Concurrent changes are applied to it too."""
        self._replacements.append(replacement)
        try:
            yield from replacement.build()
        finally:
            self._replacements.remove(replacement)

    def switch(self, replacement: Replacement) -> Contents:
        """Make a replacement the current contents; return the previous contents."""
        before, self._contents = self._contents, replacement.finished()
        return before

    def of_scope(self, scope: str) -> Iterator[tuple[Key, StoredObject]]:
        """Return the keys and objects of a scope."""
        if self._scopes.referenced:
            found = (self.get(key) for key in [*self._scopes.keys(scope)])
            return ((stored.key, stored) for stored in found if stored is not None)
        if self._scopes.divided:
            selector = self._scopes.selector(scope)
            return ((each.key, each) for each in self.in_ranges(() if selector is None else selector.ranges))
        if not scope:
            return iter(self._contents.objects.items())
        return ((stored.key, stored) for stored in self.list(namespace=scope))

    def in_ranges(self, ranges: Iterable[HashRange]) -> Iterator[StoredObject]:
        """Return the objects whose namespace hashes into one of the ranges."""
        ranges = tuple(ranges)
        for namespace in [*self.namespaces()]:
            if hash_in(ranges, namespace):
                yield from self.list(namespace=namespace)

    def namespaces(self) -> Mapping[str, Collection[Key]]:
        """Return the keys of the objects in each namespace, not copied."""
        return cast("Mapping[str, Collection[Key]]", self._index(NAMESPACES).by_value())

    def advance(self, scope: str, resource_version: str) -> None:
        """Set the version up to which a scope is complete; an empty version clears it."""
        if resource_version:
            self._watermarks[scope] = resource_version
        else:
            self._watermarks.pop(scope, None)

    def watermark(self, scope: str = "") -> str:
        """Return the version up to which a scope is complete; empty before the first list."""
        return self._watermarks.get(scope, "")

    @property
    def lowest_watermark(self) -> int | None:
        """The version that every scope has reached; None without a watermark, or if one is not a number."""
        numbers = [version_number(version) for version in self._watermarks.values()]
        known = [number for number in numbers if number is not None]
        return min(known) if known and len(known) == len(numbers) else None

    def _candidates(self, namespace: str, labels: Selector | None) -> Iterator[StoredObject]:
        """Return a superset of the result, narrowed by an index where possible."""
        index = self.index_for(namespace=namespace, labels=labels)
        if index is None:
            return iter(self._contents.objects.values())
        label = labels.required_value(index.name) if labels and index.by != "namespace" else None
        value = namespace if label is None else (namespace, label) if namespace else label
        return iter(self._take(self._index(index).find(value)))

    def _take(self, keys: Iterable[Key]) -> Found:
        objects = self._contents.objects
        return [stored for key in keys if (stored := objects.get(key)) is not None]


def _built_in(name: IndexName) -> Index:
    """Return an empty built-in index. One that decodes remembers its values."""
    return Index(_values_of(name), remember=name.by == "condition")


def _values_of(name: IndexName) -> Callable[[StoredObject], Iterable[Hashable]]:
    """Return the function that computes an object's values in a built-in index."""
    argument = name.name
    match name.by:
        case "namespace":
            return lambda stored: (stored.key.namespace,)
        case "owner":
            return lambda stored: stored.owners
        case "label":
            return lambda stored: (
                (stored.own_labels[argument],) if stored.own_labels and argument in stored.own_labels else ()
            )
        case "label in a namespace":
            return lambda stored: (
                ((stored.key.namespace, stored.own_labels[argument]),)
                if stored.own_labels and argument in stored.own_labels
                else ()
            )
        case "condition":
            return lambda stored: unmet(stored, argument)
        case "function":
            raise UnknownIndex(f"there is no index {argument!r}")
