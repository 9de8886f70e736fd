"""Positions of items in a list that merges by key: constant-time lookup, so that long lists do not cost quadratic time.

Guarantees: results, errors and order are those of kube-apiserver's linear search.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any, Final, cast

from steersman.golang import type_name
from steersman.patches.errors import PatchError

CRASHED: Final = "This request caused apiserver to panic. Look in the logs for details."
#: The key of an item without one.
ABSENT: Final[Any] = object()
_CONTAINERS: Final[tuple[type[Any], ...]] = (dict, list)


class StrategicMergeError(PatchError):
    """A strategic merge patch cannot be applied; ``code`` is the HTTP status that kube-apiserver answers."""

    def __init__(self, message: str, *, code: int = 500) -> None:
        self.code = code
        super().__init__(message)


def identity(value: Any) -> Any:
    """A scalar as Go distinguishes it: its type counts."""
    return value if isinstance(value, str) else (type_name(value), value)


class Places:
    """The positions of keys in a list, first ones first. A list or object as a key crashes kube-apiserver's handler."""

    def __init__(self, keys: Iterable[Any] = ()) -> None:
        self._keys: list[Any] = []
        #: The positions of a key, lowest first; outdated ones are skipped.
        self._places: dict[Any, list[int]] = {}
        self._containers: dict[type[Any], int] = {}
        self._bad: int | None = None
        for key in keys:
            self.append(key)

    @classmethod
    def of_items(cls, items: list[Any], merge_key: str) -> "Places":
        """The positions of items by one of their fields."""
        places = cls()
        for at, item in enumerate(items):
            if isinstance(item, dict):
                places.append(cast("dict[str, Any]", item).get(merge_key, ABSENT))
            else:
                places.append(ABSENT)
                places._bad = at if places._bad is None else places._bad
        return places

    def append(self, key: Any) -> None:
        """Add the key of one more item."""
        self._keys.append(ABSENT)
        self.put(len(self._keys) - 1, key)

    def put(self, at: int, key: Any) -> None:
        """Change the key of an item; `ABSENT` if it is gone, or has none."""
        kind = cast("type[Any]", type(key))
        if kind in _CONTAINERS:
            self._containers.setdefault(kind, at)
            key = ABSENT
        elif key is not ABSENT:
            key = identity(key)
        if key == self._keys[at]:
            return
        self._keys[at] = key
        if key is not ABSENT:
            heappush(self._places.setdefault(key, []), at)

    def find(self, key: Any) -> int | None:
        """The first position of a key; None if it is absent."""
        kind = cast("type[Any]", type(key))
        is_container = kind in _CONTAINERS
        found = self._containers.get(kind) if is_container else self._first(identity(key))
        if self._bad is not None and (found is None or self._bad < found):
            raise StrategicMergeError(f"value for key {self._bad} is not a map")
        if is_container and found is not None:
            raise StrategicMergeError(CRASHED)
        return found

    def _first(self, key: Any) -> int | None:
        places = self._places.get(key, [])
        while places and self._keys[places[0]] != key:
            heappop(places)
        return places[0] if places else None


def deduplicated(items: list[Any]) -> list[Any]:
    """Each scalar once. As on the server, the last item takes the position of an earlier duplicate."""
    keys = [identity(item) for item in items]
    places: dict[Any, list[int]] = {}
    for at, key in enumerate(keys):
        places.setdefault(key, []).append(at)
    at = 0
    while at < len(items):
        mine = places[keys[at]]
        while mine:
            other = heappop(mine)
            if other <= at or other >= len(items) or keys[other] != keys[at]:
                continue
            last, key = items.pop(), keys.pop()
            if other < len(items):
                items[other], keys[other] = last, key
                heappush(places[key], other)
        at += 1
    return items


def in_order(items: list[Any], places: list[int]) -> list[Any]:
    """The items by position. Those without one (-1) move to the front past whatever is there at their turn."""
    known: list[tuple[int, int]] = []
    #: Items without a position, by the lowest position before them.
    strays: dict[float, list[Any]] = {}
    lowest = float("inf")
    for number, place in enumerate(places):
        if place < 0:
            strays.setdefault(lowest, []).append(items[number])
        else:
            lowest = min(lowest, place)
            known.append((place, number))
    found: list[Any] = []
    for place, number in sorted(known):
        found += reversed(strays.pop(place, ()))
        found.append(items[number])
    return [*found, *reversed(strays.pop(float("inf"), ()))]
