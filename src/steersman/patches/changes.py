"""Changes between two states of an object, field by field: what server-side apply says an update took, gave and removed.

Guarantees:

- Fields are told apart as their schema merges them: list items by key or value, atomic lists and maps as one field.
- A field that came or went is named together with everything in it; one whose value differs is named alone.
- States that are equal have no changes, and cost no more than finding that out.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from steersman.patches.applied_set import item_text
from steersman.patches.errors import MAX_DEPTH, TooDeep
from steersman.patches.field_set import EMPTY, FieldSet, make_field_set
from steersman.patches.merge_schema import MergeSchema
from steersman.patches.merging import ABSENT, Shape, is_leaf, place_of, shape_of

__all__ = ["Changes", "changes_between"]


class Changes(NamedTuple):
    """What became of an object."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


_Node: TypeAlias = tuple[bool, FieldSet]
_Nodes: TypeAlias = dict[str, _Node]
_NOTHING: Final[_Node] = (False, EMPTY)
_ITSELF: Final[_Node] = (True, EMPTY)
_UNCHANGED: Final = (_NOTHING, _NOTHING, _NOTHING)


def changes_between(old: Mapping[str, Any], new: Mapping[str, Any], schema: MergeSchema) -> Changes:
    """Find what was added, modified and removed on the way from one state to another."""
    return Changes(*(below for _, below in _compare(old, new, schema, 0)))


def _compare(old: Any, new: Any, schema: MergeSchema, depth: int) -> tuple[_Node, _Node, _Node]:
    """The nodes of one place in the three sets: what came, what is different, what went."""
    if depth > MAX_DEPTH:
        raise TooDeep
    if old is new or (type(old) is type(new) and old == new):
        return _UNCHANGED
    left, right = shape_of(old, schema), shape_of(new, schema)
    if old is ABSENT:
        left = right
    elif new is ABSENT or new is None:
        right = left
    elif old is None:
        left = right
    if left == right:
        return _compare_as(right, old, new, schema, depth)
    # the value changed its shape: the old one went, the new one came, and the field itself is another
    went, came = _compare_as(left, old, new, schema, depth), _compare_as(right, old, new, schema, depth)
    added, modified, removed = ((one[0] or other[0], one[1] | other[1]) for one, other in zip(went, came, strict=True))
    return added, modified, removed


def _compare_as(shape: Shape, old: Any, new: Any, schema: MergeSchema, depth: int) -> tuple[_Node, _Node, _Node]:
    if is_leaf(shape, old, new, schema):
        return _leaf(old, new)
    found = _Found()
    if shape == "map":
        _compare_maps(_map(old), _map(new), schema, depth, found)
    else:
        _compare_items(_list(old), _list(new), schema, depth, found)
    added, modified, removed = (make_field_set(nodes) for nodes in found.sets)
    return (old is ABSENT, added), (False, modified), (new is ABSENT and old is not ABSENT, removed)


class _Found:
    """Three sets under construction: added, modified, removed."""

    __slots__ = ("sets",)

    def __init__(self) -> None:
        self.sets: tuple[_Nodes, _Nodes, _Nodes] = ({}, {}, {})

    def put(self, text: str, nodes: tuple[_Node, _Node, _Node]) -> None:
        for kept, (member, below) in zip(self.sets, nodes, strict=True):
            if member or below.nodes:
                kept[text] = (member, below)


def _leaf(old: Any, new: Any) -> tuple[_Node, _Node, _Node]:
    if old is ABSENT:
        return _ITSELF, _NOTHING, _NOTHING
    if new is ABSENT:
        return _NOTHING, _NOTHING, _ITSELF
    if _same(old, new):
        return _UNCHANGED
    return _NOTHING, _ITSELF, _NOTHING


def _same(left: Any, right: Any) -> bool:
    """Whether two values are equal: 1 and 1.0 are, 1 and true are not."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _map(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _compare_maps(old: dict[str, Any], new: dict[str, Any], schema: MergeSchema, depth: int, found: _Found) -> None:
    for name, value in old.items():
        found.put(f"f:{name}", _compare(value, new.get(name, ABSENT), place_of(schema, name), depth + 1))
    for name, value in new.items():
        if name not in old:
            found.put(f"f:{name}", _compare(ABSENT, value, place_of(schema, name), depth + 1))


def _compare_items(old: list[Any], new: list[Any], schema: MergeSchema, depth: int, found: _Found) -> None:
    before, after = _by_text(old, schema), _by_text(new, schema)
    for text in before | after:
        left, right = before.get(text, ()), after.get(text, ())
        if len(left) > 1 and len(right) > 1:
            if left != right:
                found.put(text, (_NOTHING, _ITSELF, _NOTHING))
        elif len(left) > 1:
            # what was there several times had no fields of its own
            added = _compare(ABSENT, right[0], schema.items, depth + 1)[0] if right else _NOTHING
            found.put(text, (added, _NOTHING, _ITSELF))
        elif len(right) > 1:
            removed = _compare(left[0], ABSENT, schema.items, depth + 1)[2] if left else _NOTHING
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
