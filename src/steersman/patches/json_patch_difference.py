"""The JSON patch between two objects.

Guarantees:

- ``json_patch_between(before, after).apply(before)`` is ``after``. Equal values give an empty patch.
- An operation touches only what differs: a field, an item, or a run of items that a list gained or lost in one place.
- A null is a value: unlike a merge patch, the patch can store it.
"""

from collections.abc import Iterator
from typing import Any, cast

from steersman.patches.errors import MAX_DEPTH, TooDeep
from steersman.patches.json_patch import JsonPatch, Operation, add, pointer, remove, replace
from steersman.patches.trees import json_equal


def json_patch_between(before: Any, after: Any) -> JsonPatch:
    """Compute the JSON patch from one value to another."""
    return JsonPatch(tuple(_between(before, after, "", 0)))


def _between(before: Any, after: Any, path: str, depth: int) -> Iterator[Operation]:
    if depth > MAX_DEPTH:
        raise TooDeep
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _in_objects(cast("dict[str, Any]", before), cast("dict[str, Any]", after), path, depth)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _in_lists(cast("list[Any]", before), cast("list[Any]", after), path, depth)
    elif not json_equal(before, after):
        yield replace(path, after)


def _in_objects(before: dict[str, Any], after: dict[str, Any], path: str, depth: int) -> Iterator[Operation]:
    for name in before:
        if name not in after:
            yield remove(path + pointer(name))
    for name, value in after.items():
        if name not in before:
            yield add(path + pointer(name), value)
        else:
            yield from _between(before[name], value, path + pointer(name), depth + 1)


def _in_lists(before: list[Any], after: list[Any], path: str, depth: int) -> Iterator[Operation]:
    shorter = min(len(before), len(after))
    first = 0
    while first < shorter and json_equal(before[first], after[first]):
        first += 1
    same = 0
    while same < shorter - first and json_equal(before[-1 - same], after[-1 - same]):
        same += 1
    changed = shorter - first - same
    for index in range(first, first + changed):
        yield from _between(before[index], after[index], f"{path}/{index}", depth + 1)
    first += changed
    for index in range(len(before) - same - 1, first - 1, -1):
        yield remove(f"{path}/{index}")
    for index in range(first, len(after) - same):
        yield add(f"{path}/{index}", after[index])
