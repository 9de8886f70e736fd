"""Indexes: find objects without a scan.

Guarantees
- The cost of a lookup depends on the size of its result, not on the number of objects.
- An index holds exactly the objects for which its function returns values.
- If the function raises or returns unhashable values, or the object cannot be decoded, the object has no values. The error
  affects that key only.
- A function may return one string, number or key instead of a list; None means no value.
- Results are in the order in which objects first got the value, never in hash order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from steersman.cache.stored_object import StoredObject
from steersman.objects import Key

#: What an index function may return: values, one value, or None for no value.
IndexValues: TypeAlias = Iterable[Hashable] | str | bytes | int | float | None
#: Returns the values under which an object is found: ``lambda pod: [pod.spec.node_name]``.
IndexFunction: TypeAlias = Callable[[Any], IndexValues]

_NO_VALUES: tuple[Hashable, ...] = ()


def values_of(returned: object, function: object = None) -> tuple[Hashable, ...]:
    """Return the distinct values that an index function returned, in order; raise TypeError if one is unhashable."""
    if returned is None:
        return _NO_VALUES
    if isinstance(returned, str | bytes | int | float | Key):
        return (returned,)
    name = getattr(function, "__name__", type(function).__name__)
    if not isinstance(returned, Iterable):
        raise TypeError(f"{name} returned {_short(returned)}; return a list of values, one string, or None")
    values: list[Any] = [*returned]
    try:
        return tuple(dict.fromkeys(values))
    except TypeError as error:
        raise TypeError(
            f"{name} returned {_short(values)}, which cannot be looked up ({error}); return strings, numbers or tuples"
        ) from None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:199]}…"


class Index:
    """Keys by value. ``values_of`` computes an object's values; ``remember`` keeps them, for functions that decode."""

    __slots__ = ("_keys", "_known", "_values_of")

    def __init__(self, values_of: Callable[[StoredObject], Iterable[Hashable]], *, remember: bool) -> None:
        self._values_of = values_of
        self._keys: dict[Hashable, dict[Key, None]] = {}
        self._known: dict[Key, tuple[Hashable, ...]] | None = {} if remember else None

    @property
    def function(self) -> Callable[[StoredObject], Iterable[Hashable]]:
        """The function that computes an object's values."""
        return self._values_of

    def find(self, value: Hashable) -> Iterable[Key]:
        """Return the keys under a value."""
        return self._keys.get(value, ())

    def by_value(self) -> Mapping[Hashable, Collection[Key]]:
        """Return the keys under each value that at least one object has, not copied."""
        return self._keys

    def replace(self, old: StoredObject | None, new: StoredObject | None) -> None:
        """Update the index for an object that changed from ``old`` to ``new``; either may be None."""
        before = self._before(old)
        after = tuple(dict.fromkeys(self._values_of(new))) if new is not None else _NO_VALUES
        if new is not None and self._known is not None and after:
            self._known[new.key] = after
        if before == after:
            return
        key = old.key if old is not None else new.key if new is not None else Key("", "")
        for value in before:
            if value not in after:
                # A value whose hash changed after the function returned it is not found: ignore it.
                keys = self._keys.get(value, {})
                keys.pop(key, None)
                if not keys:
                    self._keys.pop(value, None)
        for value in after:
            if value not in before:
                self._keys.setdefault(value, {})[key] = None

    def fill(self, objects: Iterable[StoredObject]) -> None:
        """Add many objects. One that the index holds already stays as it is."""
        if self._known is not None:
            for stored in objects:
                self.replace(None, stored)
            return
        keys_of, values_of = self._keys, self._values_of
        for stored in objects:
            for value in values_of(stored):
                keys = keys_of.get(value)
                if keys is None:
                    keys_of[value] = {stored.key: None}
                else:
                    keys[stored.key] = None

    def empty_copy(self) -> Index:
        """Return an empty index with the same function."""
        return Index(self._values_of, remember=self._known is not None)

    def adopt(self, stored: StoredObject, before: Index) -> None:
        """Copy an unchanged object's values from another index with the same function."""
        if self._known is None or before._known is None:
            self.replace(None, stored)
            return
        values = before._known.get(stored.key, _NO_VALUES)
        if values:
            self._known[stored.key] = values
        for value in values:
            self._keys.setdefault(value, {})[stored.key] = None

    def containers(self) -> Iterator[dict[Any, Any]]:
        """Yield the containers to free when the index is no longer used."""
        yield self._keys
        if self._known is not None:
            yield self._known

    def _before(self, old: StoredObject | None) -> tuple[Hashable, ...]:
        if old is None:
            return _NO_VALUES
        if self._known is not None:
            return self._known.pop(old.key, _NO_VALUES)
        return tuple(dict.fromkeys(self._values_of(old)))
