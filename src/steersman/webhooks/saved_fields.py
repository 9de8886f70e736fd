"""Fields that a conversion would lose: saved with the converted object, and restored by the reverse conversion. Pure.

Guarantees
- ``restored(back, saved_fields(back, original))`` is ``original``.
- If a value was edited in the other version, the edit wins: a saved value replaces only the value that the reverse
  conversion gave when it was saved.
- Items of a list are matched by value, then by a name that no other item has. An index alone never decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from steersman.patches import json_equal, pointer
from steersman.patches.json_patch import JsonPatch, add, remove

Tree = dict[str, Any]

#: One saved field: its path as a list of names, ``back`` (the value after the reverse conversion) and ``value`` (the
#: original). Absent values are omitted. For a list, ``items`` has pairs of both values instead.
Saved = dict[str, Any]

_ABSENT: Any = object()
#: The keys of a saved field; short, because they are stored with each object.
PATH, BACK, VALUE, ITEMS = "path", "back", "value", "items"


def saved_fields(back: Tree, original: Tree) -> list[Saved]:
    """The fields in which the reverse conversion (``back``) differs from the original object."""
    return list(_in_objects(back, original, []))


def _in_objects(back: Tree, original: Tree, path: list[str]) -> Iterator[Saved]:
    for name in dict.fromkeys((*original, *back)):
        yield from _in_values(back.get(name, _ABSENT), original.get(name, _ABSENT), [*path, name])


def _in_values(back: Any, original: Any, path: list[str]) -> Iterator[Saved]:
    if back is not _ABSENT and original is not _ABSENT and json_equal(back, original):
        return
    if isinstance(back, dict) and isinstance(original, dict):
        yield from _in_objects(cast("Tree", back), cast("Tree", original), path)
    elif isinstance(back, list) and isinstance(original, list) and len(back) == len(original):  # pyright: ignore[reportUnknownArgumentType]
        pairs = zip(cast("list[Any]", back), cast("list[Any]", original), strict=True)
        yield {PATH: path, ITEMS: [[one, other] for one, other in pairs]}
    else:
        saved: Saved = {PATH: path}
        if back is not _ABSENT:
            saved[BACK] = back
        if original is not _ABSENT:
            saved[VALUE] = original
        yield saved


def restored(tree: Tree, saved: list[Saved]) -> Tree:
    """A copy of a converted object with its saved fields, except those that were edited since."""
    patch = JsonPatch(tuple(operation for each in saved for operation in _restoration(tree, each)))
    return patch.apply(tree)


def _restoration(tree: Tree, saved: Saved) -> Iterator[Any]:
    path: list[str] = saved[PATH]
    parent: Any = tree
    for name in path[:-1]:
        parent = cast("Tree", parent).get(name) if isinstance(parent, dict) else None
    if not isinstance(parent, dict):
        return  # removed in the other version
    now = cast("Tree", parent).get(path[-1], _ABSENT)
    if ITEMS in saved:
        if isinstance(now, list):
            yield add(pointer(*path), _restored_items(cast("list[Any]", now), saved[ITEMS]))
        return
    before = saved.get(BACK, _ABSENT)
    same = now is before if now is _ABSENT or before is _ABSENT else json_equal(now, before)
    if same and VALUE in saved:
        yield add(pointer(*path), saved[VALUE])
    elif same:
        yield remove(pointer(*path))


def _restored_items(now: list[Any], pairs: list[list[Any]]) -> list[Any]:
    """The items of a list: the originals of unchanged items, and changed items with the saved fields of their name."""
    if len(now) == len(pairs) and all(json_equal(item, back) for item, (back, _) in zip(now, pairs, strict=True)):
        return [original for _, original in pairs]
    left: dict[bytes, list[int]] = {}
    for number, (back, _) in reversed(list(enumerate(pairs))):
        left.setdefault(_comparable(back), []).append(number)
    result = list(now)
    changed: list[int] = []
    for index, item in enumerate(now):
        if numbers := left.get(_comparable(item)):
            result[index] = pairs[numbers.pop()][1]
        else:
            changed.append(index)
    places = _by_name((now[index], index) for index in changed)
    named = _by_name((pairs[number][0], number) for numbers in left.values() for number in numbers)
    for name, indexes in places.items():
        # Of several items with one name, none is known to be the saved one.
        if len(indexes) == len(named.get(name, ())) == 1:
            back, original = pairs[named[name][0]]
            if isinstance(original, dict):
                result[indexes[0]] = restored(now[indexes[0]], saved_fields(back, cast("Tree", original)))
    return result


def _by_name(items: Iterable[tuple[Any, int]]) -> dict[str, list[int]]:
    """The numbers of the items that have a name, by name."""
    found: dict[str, list[int]] = {}
    for item, number in items:
        if (name := _name(item)) is not None:
            found.setdefault(name, []).append(number)
    return found


def _comparable(value: Any) -> bytes:
    """A text that is the same for equal JSON: a search by it is fast in long lists."""
    return msgspec.json.encode(_with_integers(value), order="sorted")


def _with_integers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_integers(inner) for name, inner in cast("Tree", value).items()}
    if isinstance(value, list):
        return [_with_integers(inner) for inner in cast("list[Any]", value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _name(item: Any) -> str | None:
    name = cast("Tree", item).get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None
