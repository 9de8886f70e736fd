"""Changes between two states of an object, field by field: what an update added, modified and removed.

Guarantees:

- Fields are identified as their schema merges them: list items by key or value, atomic lists and maps as one field.
- An added or removed field is listed with everything in it; a modified field is listed alone.
- Equal states have no changes, and cost only the comparison; so do shared parts.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from steersman.patches.applied_fields import item_text
from steersman.patches.apply.merge import ABSENT, Shape, is_leaf, place_of, shape_of
from steersman.patches.errors import MAX_DEPTH, TooDeep
from steersman.patches.field_set import (
    EMPTY,
    SHARED_LENGTH,
    SHARED_MAX,
    FieldSet,
    flat_node,
    make_field_set,
    shared_node,
    wrap_nodes,
)
from steersman.patches.merge_schema import MergeSchema
from steersman.patches.trees import quickly_equal


class Changes(NamedTuple):
    """The changes of an object."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    def without(self, ignored: FieldSet) -> "Changes":
        """The changes without these fields and everything in them."""
        if not ignored:
            return self
        return Changes(self.added.without(ignored), self.modified.without(ignored), self.removed.without(ignored))


NO_CHANGES: Final = Changes(EMPTY, EMPTY, EMPTY)

_Node: TypeAlias = tuple[bool, FieldSet]
_Nodes: TypeAlias = dict[str, _Node]
_NOTHING: Final[_Node] = (False, EMPTY)
_ITSELF: Final[_Node] = (True, EMPTY)
_UNCHANGED: Final = (_NOTHING, _NOTHING, _NOTHING)
_MODIFIED: Final = (_NOTHING, _ITSELF, _NOTHING)


def changes_between(old: Mapping[str, Any], new: Mapping[str, Any], schema: MergeSchema) -> Changes:
    """Find the fields added, modified and removed between two states."""
    found = _compare(old, new, schema, 0)
    return NO_CHANGES if found is _UNCHANGED else Changes(*(below for _, below in found))


def _compare(old: Any, new: Any, schema: MergeSchema, depth: int) -> tuple[_Node, _Node, _Node]:
    """The nodes of one place in the three sets: added, modified, removed."""
    if depth > MAX_DEPTH:
        raise TooDeep
    if old is new or quickly_equal(old, new):
        return _UNCHANGED
    if old is ABSENT:
        return _whole(new, schema, depth), _NOTHING, _NOTHING
    if new is ABSENT:
        return _NOTHING, _NOTHING, _whole(old, schema, depth)
    left, right = shape_of(old, schema), shape_of(new, schema)
    if new is None:
        right = left
    elif old is None:
        left = right
    if left == right:
        return _compare_as(right, old, new, schema, depth)
    # The value changed its shape: the old one was removed, the new one added, and the field itself modified.
    went, came = _compare_as(left, old, new, schema, depth), _compare_as(right, old, new, schema, depth)
    added, modified, removed = ((one[0] or other[0], one[1] | other[1]) for one, other in zip(went, came, strict=True))
    return added, modified, removed


def _whole(value: Any, schema: MergeSchema, depth: int) -> _Node:
    """An added or removed field, with everything in it."""
    if not value:
        return _ITSELF
    if isinstance(value, dict) and schema.allows_map and not schema.is_atomic_map:
        return _whole_map(cast("dict[str, Any]", value), schema, depth)
    if isinstance(value, list) and schema.allows_list and schema.list_type != "atomic":
        return True, _whole_list(cast("list[Any]", value), schema, depth)
    return _ITSELF


def _whole_map(value: dict[str, Any], schema: MergeSchema, depth: int) -> _Node:
    if depth > MAX_DEPTH:
        raise TooDeep
    if len(value) <= SHARED_MAX and not any(inner and isinstance(inner, (dict, list)) for inner in value.values()):
        names = tuple(value)
        if sum(map(len, names)) <= SHARED_LENGTH:
            return flat_node(names)
    nodes: _Nodes = {}
    for name, inner in value.items():
        if isinstance(inner, (dict, list)):
            nodes[f"f:{name}"] = _whole(inner, place_of(schema, name), depth + 1)
        else:
            nodes[f"f:{name}"] = _ITSELF
    return shared_node(nodes)


def _whole_list(value: list[Any], schema: MergeSchema, depth: int) -> FieldSet:
    nodes: _Nodes = {}
    for item in value:
        text = item_text(item, schema)
        if text is not None:
            # Duplicate items have no fields of their own.
            nodes[text] = _ITSELF if text in nodes else _whole(item, schema.items, depth + 1)
    return wrap_nodes(nodes)


def _compare_as(shape: Shape, old: Any, new: Any, schema: MergeSchema, depth: int) -> tuple[_Node, _Node, _Node]:
    if is_leaf(shape, old, new, schema):
        return _MODIFIED
    found = _Found()
    if shape == "map":
        _compare_maps(_map(old), _map(new), schema, depth, found)
    else:
        _compare_items(_list(old), _list(new), schema, depth, found)
    return found.nodes()


class _Found:
    """Three field sets under construction: added, modified, removed."""

    __slots__ = ("_added", "_modified", "_removed")

    def __init__(self) -> None:
        self._added: _Nodes = {}
        self._modified: _Nodes = {}
        self._removed: _Nodes = {}

    def put(self, text: str, nodes: tuple[_Node, _Node, _Node]) -> None:
        if nodes is _UNCHANGED:
            return
        added, modified, removed = nodes
        if added is not _NOTHING:
            self._added[text] = added
        if modified is not _NOTHING:
            self._modified[text] = modified
        if removed is not _NOTHING:
            self._removed[text] = removed

    def nodes(self) -> tuple[_Node, _Node, _Node]:
        return (
            (False, make_field_set(self._added)),
            (False, make_field_set(self._modified)),
            (False, make_field_set(self._removed)),
        )


def _map(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _compare_maps(old: dict[str, Any], new: dict[str, Any], schema: MergeSchema, depth: int, found: _Found) -> None:
    for name, value in old.items():
        other = new.get(name, ABSENT)
        if value is not other:
            found.put(f"f:{name}", _compare(value, other, place_of(schema, name), depth + 1))
    for name, value in new.items():
        if name not in old:
            found.put(f"f:{name}", _compare(ABSENT, value, place_of(schema, name), depth + 1))


def _compare_items(old: list[Any], new: list[Any], schema: MergeSchema, depth: int, found: _Found) -> None:
    before, after = _by_text(old, schema), _by_text(new, schema)
    for text in before | after:
        left, right = before.get(text, ()), after.get(text, ())
        if len(left) > 1 and len(right) > 1:
            if not quickly_equal(left, right):
                found.put(text, _MODIFIED)
        elif len(left) > 1:
            # Duplicate items had no fields of their own.
            added = _whole(right[0], schema.items, depth + 1) if right else _NOTHING
            found.put(text, (added, _NOTHING, _ITSELF))
        elif len(right) > 1:
            removed = _whole(left[0], schema.items, depth + 1) if left else _NOTHING
            found.put(text, (_ITSELF, _NOTHING, removed))
        else:
            one, other = left[0] if left else ABSENT, right[0] if right else ABSENT
            found.put(text, _compare(one, other, schema.items, depth + 1))


def _by_text(items: list[Any], schema: MergeSchema) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        text = item_text(item, schema)
        if text is not None:
            found.setdefault(text, []).append(item)
    return found
