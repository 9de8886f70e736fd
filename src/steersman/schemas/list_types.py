"""Set and map lists: their items, or the keys of their items, must be distinct.

As in the server, these checks run on the whole tree, apart from the rest of the schema, and print the keys of maps in
brackets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from steersman.objects.field_problems import FieldProblem, problem

Schema = Mapping[str, Any]
_encoder = msgspec.json.Encoder(order="deterministic")


def list_type_problems(schema: Schema, tree: Any, path: str) -> Iterator[FieldProblem]:
    """The duplicates in all sets and maps of a tree."""
    if isinstance(tree, dict):
        properties: Schema = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        for name, value in cast("dict[str, Any]", tree).items():
            if isinstance(additional, Mapping):
                yield from list_type_problems(cast("Schema", additional), value, f"{path}[{name}]")
            if name in properties:
                yield from list_type_problems(properties[name], value, f"{path}.{name}" if path else name)
    elif isinstance(tree, list):
        tree = cast("list[Any]", tree)
        yield from _own_problems(schema, tree, path)
        items = schema.get("items")
        if items is not None:
            for index, value in enumerate(tree):
                yield from list_type_problems(items, value, f"{path}[{index}]")


def _own_problems(schema: Schema, items: list[Any], path: str) -> Iterator[FieldProblem]:
    """The duplicates in one list."""
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set" and not _are_distinct(items):
        for index in _repeated(items):
            yield problem(f"{path}[{index}]", "FieldValueDuplicate", items[index])
    elif kind == "map":
        yield from _map_problems(schema.get("x-kubernetes-list-map-keys") or (), items, path)


def _map_problems(names: Sequence[str], tree: list[Any], path: str) -> Iterator[FieldProblem]:
    for index, item in enumerate(tree):
        if item is not None and not isinstance(item, dict):
            said = "must be an object for an array of list-type map"
            yield problem(f"{path}[{index}]", "FieldValueInvalid", item, said)
            return
    entries = cast("list[dict[str, Any] | None]", tree)
    if _are_distinct(tuple(item.get(name) if item else None for name in names) for item in entries):
        return
    keys = [{name: item[name] for name in names if name in item} if item is not None else {} for item in tree]
    for index in _repeated(keys):
        yield problem(f"{path}[{index}]", "FieldValueDuplicate", keys[index])


def _are_distinct(items: Iterable[Any]) -> bool:
    """Whether items are certainly distinct, checked with little memory. Equal numbers of two types count as equal."""
    seen: set[Any] = set()
    try:
        for item in items:
            if item in seen:
                return False
            seen.add(item)
    except TypeError:
        return False
    return True


def _repeated(items: Sequence[Any]) -> Iterator[int]:
    """The positions of first repetitions. A third equal item is not reported."""
    seen: dict[bytes, int] = {}
    for index, item in enumerate(items):
        printed = _encoder.encode(item)
        times = seen[printed] = seen.get(printed, 0) + 1
        if times == 2:
            yield index
