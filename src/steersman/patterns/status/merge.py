"""Our own part of a status that several programs write. Pure.

Guarantees
- What we applied before stays applied until a state changes or removes it, whatever happens to the rest of the status.
- Only changes are claimed: a field, or an item of a list with keys, that another writer set stays with that writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

import msgspec

from steersman.patches import MergeSchema

Tree: TypeAlias = dict[str, Any]


def merge_changes(own: Tree, before: Tree, after: Tree, schema: MergeSchema | None) -> Tree:
    """Our own part of a tree, plus everything that changed from ``before`` to ``after``."""
    merged = dict(own)
    for name in dict.fromkeys((*before, *after)):
        if name not in after:
            merged.pop(name, None)
        elif name not in before:
            merged[name] = after[name]
        elif before[name] != after[name]:
            value = _merged_value(merged.get(name), before[name], after[name], schema.field(name) if schema else None)
            if name in merged or value not in ({}, []):
                merged[name] = value
    return merged


def _merged_value(own: Any, before: Any, after: Any, schema: MergeSchema | None) -> Any:
    """Our own part of a value that changed."""
    if isinstance(before, dict) and isinstance(after, dict):
        if schema is not None and schema.is_atomic_map:
            return cast("Tree", after)
        own_tree = cast("Tree", own) if isinstance(own, dict) else {}
        return merge_changes(own_tree, cast("Tree", before), cast("Tree", after), schema)
    if isinstance(before, list) and isinstance(after, list) and schema is not None:
        own_items = cast("list[Any]", own) if isinstance(own, list) else []
        earlier, later = cast("list[Any]", before), cast("list[Any]", after)
        if schema.list_type == "map":
            keys = schema.map_keys
            return _merged_items(own_items, earlier, later, lambda item: _key(item, keys), schema)
        if schema.list_type == "set":
            return _merged_items(own_items, earlier, later, msgspec.json.encode, schema)
    return cast("Any", after)


def _merged_items(
    own: Iterable[Any], before: Iterable[Any], after: Iterable[Any], key: Callable[[Any], Any], schema: MergeSchema
) -> list[Any]:
    merged = {key(item): item for item in own}
    earlier, later = {key(item): item for item in before}, {key(item): item for item in after}
    for gone in earlier.keys() - later.keys():
        merged.pop(gone, None)
    for name, item in later.items():
        if name not in earlier:
            merged[name] = item
        elif earlier[name] != item:
            value = _merged_value(merged.get(name), earlier[name], item, schema.items)
            # Keys identify an item, so every writer of the item owns them.
            merged[name] = {**{field: item[field] for field in schema.map_keys if field in item}, **value}
    return list(merged.values())


def _key(item: Any, keys: tuple[str, ...]) -> bytes:
    """The identity of an item of a list with keys."""
    if not isinstance(item, dict):
        return msgspec.json.encode(item)
    return msgspec.json.encode([cast("Tree", item).get(name) for name in keys])
