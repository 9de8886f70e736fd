"""Selections: an object without some of its fields, or with only those.

Guarantees:

- `without_fields` removes the fields of a set, each with everything in it, and list items by key or value. Fields that
  are only on the way stay. A map or list that loses its last member becomes null.
- `only_fields` keeps the fields that a manager owns: its last intent, as the start of the next one.
- `with_named_fields` adds the declared fields on the paths of a set.
"""

from collections.abc import Mapping
from typing import Any, cast

from steersman.patches.applied_fields import item_text
from steersman.patches.apply.merge import place_of, shape_of
from steersman.patches.errors import MAX_DEPTH, TooDeep
from steersman.patches.field_set import EMPTY, FieldSet, wrap_nodes
from steersman.patches.merge_schema import DEDUCED, MergeSchema

_NOT_THERE = (False, EMPTY)


def without_fields(tree: Mapping[str, Any], fields: FieldSet, schema: MergeSchema) -> dict[str, Any]:
    """The tree without the fields of a set."""
    return cast("dict[str, Any] | None", _without(tree, fields, schema, 0)) or {}


def only_fields(tree: Mapping[str, Any], fields: FieldSet, schema: MergeSchema) -> dict[str, Any]:
    """The tree with only the fields of a set, and what identifies list items."""
    return cast("dict[str, Any] | None", _only(tree, fields, schema, 0)) or {}


def with_named_fields(fields: FieldSet, schema: MergeSchema) -> FieldSet:
    """The set plus every declared field above one of its members; keys of free-form maps and items are not added."""
    nodes: dict[str, tuple[bool, FieldSet]] | None = None
    for text, (member, below) in fields.nodes.items():
        if not below.nodes:
            continue
        if text.startswith("f:"):
            name = text[2:]
            node = (member or schema.declares(name), with_named_fields(below, place_of(schema, name)))
        else:
            node = (member, with_named_fields(below, schema.items))
        if node[1] is not below or node[0] is not member:
            if nodes is None:
                nodes = dict(fields.nodes)
            nodes[text] = node
    return fields if nodes is None else wrap_nodes(nodes)


def _without(value: Any, fields: FieldSet, schema: MergeSchema, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise TooDeep
    match shape_of(value, schema):
        case "map":
            if not isinstance(value, dict) or schema.is_atomic_map:
                return None
            return _map_without(cast("dict[str, Any]", value), fields, schema, depth) or None
        case "list":
            if not isinstance(value, list) or schema.list_type == "atomic":
                return None
            return _items_without(cast("list[Any]", value), fields, schema, depth) or None
        case "scalar":
            return value


def _map_without(value: dict[str, Any], fields: FieldSet, schema: MergeSchema, depth: int) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, inner in value.items():
        member, below = fields.nodes.get(f"f:{name}", _NOT_THERE)
        if not member:
            kept[name] = _without(inner, below, place_of(schema, name), depth + 1) if below else inner
    return kept


def _items_without(value: list[Any], fields: FieldSet, schema: MergeSchema, depth: int) -> list[Any]:
    kept: list[Any] = []
    for item in value:
        member, below = fields.nodes.get(item_text(item, schema) or "", _NOT_THERE)
        if not member:
            kept.append(_without(item, below, schema.items, depth + 1) if below else item)
    return kept


def _only(value: Any, fields: FieldSet, schema: MergeSchema, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise TooDeep
    match shape_of(value, schema):
        case "map":
            if not value or not isinstance(value, dict) or schema.is_atomic_map:
                return cast("Any", value)
            return _only_of_map(cast("dict[str, Any]", value), fields, schema, depth) or None
        case "list":
            if not value or not isinstance(value, list) or schema.list_type == "atomic":
                return cast("Any", value)
            return _only_of_items(cast("list[Any]", value), fields, schema, depth) or None
        case "scalar":
            return value


def _only_of_map(value: dict[str, Any], fields: FieldSet, schema: MergeSchema, depth: int) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, inner in value.items():
        member, below = fields.nodes.get(f"f:{name}", _NOT_THERE)
        if below:
            kept[name] = _only(inner, below, place_of(schema, name), depth + 1)
        elif member:
            # Owned as a whole, or as an empty value that others have filled since.
            kept[name] = inner if _is_whole(inner, place_of(schema, name)) else type(inner)()
    return kept


def _only_of_items(value: list[Any], fields: FieldSet, schema: MergeSchema, depth: int) -> list[Any]:
    kept: list[Any] = []
    for item in value:
        member, below = fields.nodes.get(item_text(item, schema) or "", _NOT_THERE)
        if below:
            kept.append(_only(item, below, schema.items, depth + 1))
        elif member:
            kept.append(item)
    return kept


def _is_whole(value: Any, schema: MergeSchema) -> bool:
    if isinstance(value, dict):
        return schema.is_atomic_map
    return schema.list_type == "atomic" or schema is DEDUCED if isinstance(value, list) else True
