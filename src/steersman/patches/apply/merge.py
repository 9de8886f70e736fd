"""The merge: an applied configuration merged into the live object, as by server-side apply.

Guarantees:

- Values of the configuration win; fields that it does not mention stay. Atomic lists and maps are replaced as a whole,
  sets and map lists merge by item, maps by key.
- Items of the live list keep their order, and so do those of the configuration; if they contradict each other, the
  configuration's order wins. Duplicates in the live list are replaced when the item is applied.
- Unchanged parts are the same objects as in the live object, and so is the whole if nothing changes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from steersman.patches.applied_fields import item_text
from steersman.patches.errors import MAX_DEPTH, TooDeep
from steersman.patches.merge_schema import DEDUCED, MergeSchema
from steersman.patches.trees import quickly_equal

ABSENT: Final = object()
"""Stands for an absent value; null is a value."""

Shape: TypeAlias = Literal["map", "list", "scalar"]


def merge_applied(live: Mapping[str, Any], applied: Mapping[str, Any], schema: MergeSchema) -> dict[str, Any]:
    """Merge an applied object into the live one."""
    return cast("dict[str, Any]", _merge(live, applied, schema, 0))


def shape_of(value: Any, schema: MergeSchema) -> Shape:
    """The shape of a value: by its type or, for null, by its schema."""
    if isinstance(value, dict) and schema.allows_map:
        return "map"
    if isinstance(value, list) and schema.allows_list:
        return "list"
    if value is not None and not isinstance(value, (dict, list)) and schema.allows_scalar:
        return "scalar"
    return "map" if schema.allows_map else "scalar" if schema.allows_scalar else "list"


def is_leaf(shape: Shape, left: Any, right: Any, schema: MergeSchema) -> bool:
    """Whether two values are one field without parts: scalars, atomic values, and values empty on both sides."""
    if shape == "scalar" or (not _filled(left, shape) and not _filled(right, shape)):
        return True
    return schema.is_atomic_map if shape == "map" else schema.list_type == "atomic"


def _filled(value: Any, shape: Shape) -> bool:
    return isinstance(value, dict if shape == "map" else list) and bool(cast("dict[str, Any] | list[Any]", value))


def place_of(schema: MergeSchema, name: str) -> MergeSchema:
    """The schema of a field; an undeclared one is deduced from the value."""
    return schema.places[name] or DEDUCED


def _merge(live: Any, applied: Any, schema: MergeSchema, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise TooDeep
    if live is ABSENT:
        return applied
    if live is applied or quickly_equal(live, applied):
        return live
    shape = shape_of(applied if applied is not None else live, schema)
    if (live is not None and shape_of(live, schema) != shape) or is_leaf(shape, live, applied, schema):
        return applied
    if applied is None:
        # Null says nothing about the content of a map or a list.
        return live
    if shape == "map":
        return _merge_maps(live or {}, applied, schema, depth)
    return _merge_lists(live or [], applied, schema, depth)


def _merge_maps(live: dict[str, Any], applied: dict[str, Any], schema: MergeSchema, depth: int) -> dict[str, Any]:
    merged = live
    for name, value in applied.items():
        before = live.get(name, ABSENT)
        if value == before and isinstance(value, str):
            # A fast path: most applied fields are unchanged strings.
            continue
        after = _merge(before, value, place_of(schema, name), depth + 1)
        if after is not before:
            if merged is live:
                merged = dict(live)
            merged[name] = after
    return merged


def _merge_lists(live: list[Any], applied: list[Any], schema: MergeSchema, depth: int) -> list[Any]:
    merged = list(_merge_items(live, applied, schema, depth))
    if len(merged) == len(live) and all(one is other for one, other in zip(merged, live, strict=True)):
        return live
    return merged


def _merge_items(live: list[Any], applied: list[Any], schema: MergeSchema, depth: int) -> Iterator[Any]:
    ours = {text: item for item in applied if (text := item_text(item, schema)) is not None}
    names = [item_text(item, schema) for item in live]
    if names == list(ours):
        for before, item in zip(live, ours.values(), strict=True):
            yield _merge(before, item, schema.items, depth + 1)
        return
    theirs = _indexed(names, live)
    for place in _woven(names, list(ours)):
        if isinstance(place, int):
            yield live[place]
        else:
            yield _merge(theirs.get(place, ABSENT), ours[place], schema.items, depth + 1)


def _woven(live: list[str | None], applied: list[str]) -> Iterator[int | str]:
    """The order of two merged lists: the position of a live-only item, or the name of an applied one."""
    present, wanted = set(live), set(applied)
    # Items of both lists, in their resulting order.
    anchors = [text for text in applied if text in present]
    anchored = 0
    index = 0
    for text in applied:
        anchor = anchors[anchored] if anchored < len(anchors) else None
        # Live items come first, up to the next common one; those that are placed elsewhere are skipped.
        while index < len(live) and live[index] != text and live[index] != anchor:
            if live[index] not in wanted:
                yield index
            elif anchor is None:
                # No more common items: an applied one takes the place of a moved one.
                index += 1
                break
            index += 1
        if index < len(live) and live[index] == text:
            index += 1
        yield text
        anchored += text == anchor
    yield from (rest for rest in range(index, len(live)) if live[rest] not in wanted)


def _indexed(names: list[str | None], items: list[Any]) -> dict[str | None, Any]:
    """Items by name; duplicates have no value to merge with."""
    found: dict[str | None, Any] = {}
    for text, item in zip(names, items, strict=True):
        found[text] = ABSENT if text in found else item
    return found
