"""Functions on lists: Kubernetes' own, the lists extension, sets, and optionals of lists."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Any, Final

from steersman.cel.library.texts import index_of, last_index_of
from steersman.cel.values import (
    NOTHING,
    CelError,
    Duration,
    Listing,
    Maybe,
    add,
    compare,
    equal,
    is_ordered,
    no_overload,
    one,
    two,
)

_RANGE_MAX: Final = 1_000_000


def _items(value: Any) -> list[Any]:
    items = list(value)
    for item in items:
        if type(item) is CelError:
            raise item
    return items


def _is_sorted(value: Any) -> bool:
    items = _ordered(value)
    return all(compare(before, after) != 1 for before, after in pairwise(items))


def _ordered(value: Any) -> list[Any]:
    items = _items(value)
    if not all(map(is_ordered, items)):
        raise no_overload()
    return items


def _sum(value: Any) -> Any:
    items = _items(value)
    if not items:
        return 0
    total = Duration(0) if isinstance(items[0], Duration) else type(items[0])(0)
    for item in items:
        total = add(total, item)
    return total


def _extreme(name: str, wanted: int) -> Callable[[Any], Any]:
    def extreme(value: Any) -> Any:
        items = _ordered(value)
        if not items:
            raise CelError(f"{name} called on empty list")
        best = items[0]
        for item in items[1:]:
            if compare(best, item) == wanted:
                best = item
        return best

    return extreme


def _same(one: Any, two: Any) -> bool:
    try:
        return type(one) is not CelError and equal(one, two)
    except CelError:
        return False


def _index(target: Any, item: Any, *more: int) -> int:
    if isinstance(target, str):
        return index_of(target, item, *more)
    return next((at for at, one in enumerate(target) if _same(one, item)), -1)


def _last_index(target: Any, item: Any, *more: int) -> int:
    if isinstance(target, str):
        return last_index_of(target, item, *more)
    items = list(target)
    return next((at for at in range(len(items) - 1, -1, -1) if _same(items[at], item)), -1)


def _slice(value: Any, start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    items = list(value)
    if len(items) < end:
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(value: Any, depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    made: list[Any] = []
    for item in value:
        if depth and isinstance(item, list | Listing):
            made += _flatten(item, depth - 1)
        else:
            made.append(item)
    return made


def _sort_by(value: Any, keys: Any) -> list[Any]:
    items, by = _items(value), _items(keys)
    if not items:
        return items
    if not is_ordered(by[0]):
        raise CelError("list elements must be comparable")
    if any(type(key) is not type(by[0]) for key in by):
        raise CelError("list elements must have the same type")
    places = sorted(range(len(items)), key=cmp_to_key(lambda one, two: compare(by[one], by[two])))
    return [items[at] for at in places]


def _distinct(value: Any) -> list[Any]:
    made: list[Any] = []
    for item in _items(value):
        if not any(_same(item, other) for other in made):
            made.append(item)
    return made


def _range(count: int) -> list[int]:
    if count < 0:
        raise CelError(f"lists.range: size must be non-negative, got {count}")
    if count > _RANGE_MAX:
        raise CelError(f"lists.range: size {count} exceeds maximum allowed ({_RANGE_MAX})")
    return list(range(count))


def _holds(value: Any, item: Any) -> bool:
    return any(_same(one, item) for one in value)


def _contains(value: Any, part: Any) -> bool:
    return all(_holds(value, item) for item in part)


def _unwrap(value: Any) -> list[Any]:
    made: list[Any] = []
    for item in value:
        if not isinstance(item, Maybe):
            raise CelError(f"value {item} is not optional")
        made.extend(item.held)
    return made


def _at(value: Any, index: int) -> Maybe:
    if not len(value):
        return NOTHING
    place = index % len(value)
    return Maybe(value.get(place) if isinstance(value, Listing) else value[place])


LISTS: Final[dict[str, Callable[..., Any]]] = {
    "isSorted": _is_sorted,
    "sum": _sum,
    "min": _extreme("min", 1),
    "max": _extreme("max", -1),
    "indexOf": _index,
    "lastIndexOf": _last_index,
    "slice": _slice,
    "flatten": _flatten,
    "sort": one(lambda value: _sort_by(value, value)),
    "@sortByAssociatedKeys": _sort_by,
    "lists.range": _range,
    "reverse": one(lambda value: list(reversed(list(value)))),
    "distinct": _distinct,
    "sets.contains": _contains,
    "sets.equivalent": two(lambda one, two: _contains(one, two) and _contains(two, one)),
    "sets.intersects": two(lambda one, two: any(_holds(two, item) for item in one)),
    "optional.unwrap": _unwrap,
    "unwrapOpt": _unwrap,
    "first": one(lambda value: _at(value, 0)),
    "last": one(lambda value: _at(value, -1)),
}
