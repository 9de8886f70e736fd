"""The scopes of a kind: the parts of its collection, each with a watch of its own.

Guarantees
- A key is in at most one scope.
- A scope is a namespace, all namespaces (``""``), ranges of hashes of namespaces, or some names.
- Only scopes of ranges and of names come and go. One that loses ranges or names keeps its name, its watch and the rest.
- The scopes of a referenced kind have names: ``shop/tls`` the one that it says, ``shop`` and ``""`` those placed there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from steersman.objects import FieldSelector, Key
from steersman.wire import HashRange, ShardSelector, namespace_hash


class Scopes:
    """Which keys each scope of a kind covers."""

    def __init__(
        self,
        names: Iterable[str] = ("",),
        *,
        shards: ShardSelector | None = None,
        divided: bool = False,
        referenced: bool = False,
    ) -> None:
        #: Whether the scopes are ranges, of which there are none at first.
        self.divided = divided
        #: Whether the scopes are of names, of which there are none at first.
        self.referenced = referenced
        empty = divided or referenced
        self._selectors: dict[str, ShardSelector | None] = {} if empty else dict.fromkeys(names, shards)
        #: The scope of each name, and the names of each scope.
        self._placed: dict[Key, str] = {}
        self._keys: dict[str, dict[Key, None]] = {}
        self._shards = shards
        #: How often a scope has lost ranges.
        self.losses = 0

    def __iter__(self) -> Iterator[str]:
        return iter([*self._selectors])

    def __contains__(self, name: object) -> bool:
        return name in self._selectors

    @property
    def selects_all(self) -> bool:
        """Whether no object is left out by its hash."""
        return not (self.divided or self.referenced) and self._shards is None

    def namespace(self, name: str) -> str:
        """The namespace to list and watch for a scope; empty for all."""
        return "" if self.divided else name.partition("/")[0]

    def fields(self, name: str, fields: FieldSelector) -> str:
        """The field selector to list and watch a scope with; ``fields`` selects the objects of the kind."""
        if not is_single(name):
            return str(fields)
        return str(FieldSelector.of({"metadata.name": name.partition("/")[2]}) & fields)

    def is_wide(self, name: str) -> bool:
        """Whether a scope has some of the objects of its namespace, by their names."""
        return self.referenced and not is_single(name)

    def selector(self, name: str) -> ShardSelector | None:
        """What to ask the server for; None for everything in the namespace."""
        return self._selectors.get(name)

    def selects(self, name: str, key: Key, *, uid: str) -> bool:
        """Whether an object that a list or watch of a scope shows belongs to it."""
        if self.referenced:
            return self._placed.get(key) == name
        if name not in self._selectors:
            return False  # lost meanwhile
        selector = self._selectors[name]
        return selector is None or selector.selects(namespace=key.namespace, uid=uid)

    def covers(self, name: str, key: Key) -> bool:
        """Whether a key is in a scope."""
        if self.divided or self.referenced:
            return self.selects(name, key, uid="")
        return not name or key.namespace == name

    def place_of(self, key: Key) -> str | None:
        """The scope of ranges or names that covers a key."""
        return self._placed.get(key) if self.referenced else self.of(key.namespace)

    def of(self, namespace: str) -> str | None:
        """The scope of ranges that covers a namespace."""
        return next((name for name in self._selectors if self.selects(name, Key(namespace, ""), uid="")), None)

    def holds(self, key: Key, *, uid: str) -> bool:
        """Whether a scope stores an object. An object outside is read from the server."""
        if self.divided or self.referenced:
            return self.place_of(key) is not None
        return self._shards is None or self._shards.selects(namespace=key.namespace, uid=uid)

    def is_outside(self, key: Key) -> bool:
        """Whether a key is in no scope of ranges or names."""
        return (self.divided or self.referenced) and self.place_of(key) is None

    def gain(self, name: str, ranges: Iterable[HashRange]) -> None:
        """Add a scope of ranges, which no other scope has."""
        self._selectors[name] = ShardSelector("namespace", tuple(sorted(ranges)))

    def lose(self, ranges: Iterable[HashRange]) -> list[str]:
        """Take ranges from all scopes; return the names of those that have none left, and are gone."""
        lost, gone = tuple(ranges), list[str]()
        self.losses += 1
        for name, selector in [*self._selectors.items()]:
            if selector is None or not any(one.overlaps(other) for one in selector.ranges for other in lost):
                continue
            if left := tuple(part for each in selector.ranges for part in each.without(lost)):
                self._selectors[name] = ShardSelector(selector.field, left)
            else:
                del self._selectors[name]
                gone.append(name)
        return gone

    # names

    def placed(self) -> Mapping[Key, str]:
        """The scope of each name, not copied."""
        return self._placed

    def keys(self, name: str) -> Collection[Key]:
        """The names of a scope, not copied."""
        return self._keys.get(name, {}).keys()

    def place(self, key: Key, name: str) -> bool:
        """Put a name into a scope, out of its former one; return whether the scope is new."""
        self.displace(key)
        self._placed[key] = name
        new = name not in self._selectors
        if new:
            self._selectors[name], self._keys[name] = None, {}
        self._keys[name][key] = None
        return new

    def displace(self, key: Key) -> None:
        """Take a name out of its scope. The scope stays, also without names: see `vacate`."""
        if (name := self._placed.pop(key, None)) is not None:
            self._keys[name].pop(key, None)

    def vacate(self) -> list[str]:
        """Remove the scopes that have no names left, and return them."""
        gone = [name for name, keys in self._keys.items() if not keys]
        for name in gone:
            del self._keys[name], self._selectors[name]
        return gone


def single_scope(key: Key) -> str:
    """The name of the scope that has one name alone."""
    return f"{key.namespace}/{key.name}"


def is_single(name: str) -> bool:
    """Whether a scope has one name alone."""
    return "/" in name


def hash_in(ranges: Iterable[HashRange], namespace: str) -> bool:
    """Whether the hash of a namespace is in one of the ranges."""
    found = namespace_hash(namespace)
    return any(each.contains(found) for each in ranges)
