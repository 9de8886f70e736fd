"""The scopes of a kind: the parts of its collection, each with a watch of its own.

Guarantees
- A key is in at most one scope.
- A scope is a namespace, all namespaces (``""``), or ranges of hashes of namespaces.
- Only scopes of ranges come and go. One that loses ranges keeps its name, its watch and the rest of its ranges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steersman.objects import Key
from steersman.wire import HashRange, ShardSelector, namespace_hash


class Scopes:
    """Which keys each scope of a kind covers."""

    def __init__(
        self, names: Iterable[str] = ("",), *, shards: ShardSelector | None = None, divided: bool = False
    ) -> None:
        #: Whether the scopes are ranges, of which there are none at first.
        self.divided = divided
        self._selectors: dict[str, ShardSelector | None] = {} if divided else dict.fromkeys(names, shards)
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
        return not self.divided and self._shards is None

    def namespace(self, name: str) -> str:
        """The namespace to list and watch for a scope; empty for all."""
        return "" if self.divided else name

    def selector(self, name: str) -> ShardSelector | None:
        """What to ask the server for; None for everything in the namespace."""
        return self._selectors.get(name)

    def selects(self, name: str, *, namespace: str, uid: str) -> bool:
        """Whether an object that a list or watch of a scope shows belongs to it."""
        if name not in self._selectors:
            return False  # lost meanwhile
        selector = self._selectors[name]
        return selector is None or selector.selects(namespace=namespace, uid=uid)

    def covers(self, name: str, key: Key) -> bool:
        """Whether a key is in a scope."""
        if self.divided:
            return self.selects(name, namespace=key.namespace, uid="")
        return not name or key.namespace == name

    def of(self, namespace: str) -> str | None:
        """The scope of ranges that covers a namespace."""
        return next((name for name in self._selectors if self.selects(name, namespace=namespace, uid="")), None)

    def holds(self, *, namespace: str, uid: str) -> bool:
        """Whether a scope stores an object. An object outside is read from the server."""
        if self.divided:
            return self.of(namespace) is not None
        return self._shards is None or self._shards.selects(namespace=namespace, uid=uid)

    def is_outside(self, key: Key) -> bool:
        """Whether a key is in no scope of ranges."""
        return self.divided and self.of(key.namespace) is None

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


def hash_in(ranges: Iterable[HashRange], namespace: str) -> bool:
    """Whether the hash of a namespace is in one of the ranges."""
    found = namespace_hash(namespace)
    return any(each.contains(found) for each in ranges)
