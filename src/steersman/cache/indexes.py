"""Finding objects without looking at all of them.

Guarantees
- A lookup costs what it returns, however many objects there are.
- An index holds exactly the objects its function gives values for. A function that raises, or an object that cannot be
  decoded, gives none, and is an error of that key alone.
- Answers are in the order in which objects first got the value: no behaviour depends on the order of a hash.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeAlias

from steersman.cache.stored import Stored
from steersman.objects import Key

#: Gives the values under which an object is found: ``lambda pod: [pod.spec.node_name]``.
IndexFunction: TypeAlias = Callable[[Any], Iterable[Hashable]]

_NO_VALUES: tuple[Hashable, ...] = ()


class Index:
    """Keys by value. ``values_of`` gives an object's values; they are remembered only if computing them decodes."""

    __slots__ = ("_keys", "_known", "_values_of")

    def __init__(self, values_of: Callable[[Stored], Iterable[Hashable]], *, remember: bool) -> None:
        self._values_of = values_of
        self._keys: dict[Hashable, dict[Key, None]] = {}
        self._known: dict[Key, tuple[Hashable, ...]] | None = {} if remember else None

    def find(self, value: Hashable) -> Iterable[Key]:
        """The keys under a value."""
        return self._keys.get(value, ())

    def values(self) -> Iterable[Hashable]:
        """All values that some object has."""
        return self._keys

    def replace(self, old: Stored | None, new: Stored | None) -> None:
        """Follow an object from one state to the next; either may be absent."""
        before = self._before(old)
        after = tuple(dict.fromkeys(self._values_of(new))) if new is not None else _NO_VALUES
        if new is not None and self._known is not None and after:
            self._known[new.key] = after
        if before == after:
            return
        key = old.key if old is not None else new.key if new is not None else Key("", "")
        for value in before:
            if value not in after:
                keys = self._keys[value]
                del keys[key]
                if not keys:
                    del self._keys[value]
        for value in after:
            if value not in before:
                self._keys.setdefault(value, {})[key] = None

    def _before(self, old: Stored | None) -> tuple[Hashable, ...]:
        if old is None:
            return _NO_VALUES
        if self._known is not None:
            return self._known.pop(old.key, _NO_VALUES)
        return tuple(dict.fromkeys(self._values_of(old)))
