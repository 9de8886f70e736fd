"""Comparison: whether an object already matches an intent, as Kubernetes understands its values.

Guarantees:

- Values that mean the same are equal: quantities by amount ("1000m" is "1"), times by instant, bytes by content,
  int-or-string by text, a Secret's ``stringData`` by the resulting ``data``, null and an empty list or map as absent.
- Lists compare as they merge: by map key or as sets in any order, atomic lists item by item.
- Fields outside the schema compare as plain JSON. Values that may differ in meaning count as different: an error costs
  one needless request, never a missing one.
"""

import base64
import binascii
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, cast

from steersman.objects import Quantity, parse_time
from steersman.patches.applied_fields import item_text
from steersman.patches.errors import MAX_DEPTH, TooDeep
from steersman.patches.merge_schema import DEDUCED, MergeSchema, ValueKind
from steersman.patches.path_element import PathElement


def is_subset(intent: Mapping[str, Any], live: Mapping[str, Any], schema: MergeSchema | None = None) -> bool:
    """Whether a live object already holds every value of an intent, so that applying it would change none."""
    return difference(intent, live, schema) is None


def semantically_equal(left: Mapping[str, Any], right: Mapping[str, Any], schema: MergeSchema | None = None) -> bool:
    """Whether two objects mean the same."""
    return difference(left, right, schema, exact=True) is None


def difference(
    intent: Mapping[str, Any], live: Mapping[str, Any], schema: MergeSchema | None = None, *, exact: bool = False
) -> str | None:
    """The first place where a live object lacks a value of the intent or, with ``exact``, where the two differ.

    The place is a path such as ``.spec.containers[name="web"].image``; None means no difference.
    """
    if "Secret" in {intent.get("kind"), live.get("kind")} and "v1" in {
        intent.get("apiVersion"),
        live.get("apiVersion"),
    }:
        intent, live = _with_encoded_data(intent), _with_encoded_data(live)
    return _in_maps(intent, live, schema or DEDUCED, exact=exact, depth=0)


_SCALARS: Final = frozenset({str, int, float, bool})


def _in_values(ours: Any, theirs: Any, schema: MergeSchema, *, exact: bool, depth: int) -> str | None:
    if depth > MAX_DEPTH:
        raise TooDeep
    kind = cast("type[object]", type(ours))
    if kind is type(theirs) and kind in _SCALARS and ours == theirs:
        # Identical text has the same meaning; most values end here.
        return None
    if isinstance(ours, dict) and isinstance(theirs, dict):
        mine, others = cast("dict[str, Any]", ours), cast("dict[str, Any]", theirs)
        return _in_maps(mine, others, schema, exact=exact or schema.is_atomic_map, depth=depth)
    if isinstance(ours, list) and isinstance(theirs, list):
        return _in_lists(cast("list[Any]", ours), cast("list[Any]", theirs), schema, exact=exact, depth=depth)
    if isinstance(ours, (dict, list)) or isinstance(theirs, (dict, list)):
        return ""
    return None if _meaning(ours, schema.value_kind) == _meaning(theirs, schema.value_kind) else ""


def _in_maps(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], schema: MergeSchema, *, exact: bool, depth: int
) -> str | None:
    for name, value in ours.items():
        place = schema.field(name) or DEDUCED
        other = theirs.get(name)
        if value is None or other is None:
            if not (_is_absent(value, place) and _is_absent(other, place)):
                return f".{name}"
            continue
        found = _in_values(value, other, place, exact=exact, depth=depth + 1)
        if found is not None:
            return f".{name}{found}"
    if exact:
        for name, other in theirs.items():
            if name not in ours and not _is_absent(other, schema.field(name) or DEDUCED):
                return f".{name}"
    return None


def _is_absent(value: Any, schema: MergeSchema) -> bool:
    """Whether omitting a value means the same. An empty object with named fields counts as present: ``emptyDir: {}``."""
    return value is None or value == [] or (value == {} and schema.is_map)


def _in_lists(ours: list[Any], theirs: list[Any], schema: MergeSchema, *, exact: bool, depth: int) -> str | None:
    mine, others = _by_element(ours, schema), _by_element(theirs, schema)
    if mine is None or others is None:
        return _in_items(ours, theirs, schema, depth=depth)
    for element, item in mine.items():
        if element not in others:
            return _element_path(element)
        if schema.list_type == "map":
            found = _in_values(item, others[element], schema.items, exact=exact, depth=depth + 1)
            if found is not None:
                return f"{_element_path(element)}{found}"
    extra = next((element for element in others if element not in mine), None) if exact else None
    return None if extra is None else _element_path(extra)


def _by_element(items: list[Any], schema: MergeSchema) -> dict[Any, Any] | None:
    """The items of a set or map list by element; None for an atomic list, and for one with a duplicate or invalid item."""
    if schema.list_type == "atomic":
        return None
    indexed: dict[Any, Any] = {}
    for item in items:
        element = item_text(item, schema)
        if element is None:
            return None
        indexed[_meaning(item, schema.items.value_kind) if schema.list_type == "set" else element] = item
    return indexed if len(indexed) == len(items) else None


def _element_path(element: Any) -> str:
    if isinstance(element, str):
        return str(PathElement(element))
    meaning = element[1]
    return str(PathElement.value(meaning if isinstance(meaning, (str, int, float)) else str(meaning)))


def _in_items(ours: list[Any], theirs: list[Any], schema: MergeSchema, *, depth: int) -> str | None:
    if len(ours) != len(theirs):
        return ""
    for index, (item, other) in enumerate(zip(ours, theirs, strict=True)):
        found = _in_values(item, other, schema.items, exact=True, depth=depth + 1)
        if found is not None:
            return f"[{index}]{found}"
    return None


def _meaning(value: Any, kind: ValueKind) -> tuple[str, Any]:
    """The meaning of a scalar, in a form that compares and hashes. Text that is not of its kind represents itself."""
    if isinstance(value, bool):
        return ("boolean", value)
    try:
        match kind:
            case "quantity" if isinstance(value, (str, int, float)):
                amount = Quantity(Decimal(repr(value)) if isinstance(value, float) else value)
                return ("quantity", amount.as_fraction())
            case "time" | "seconds" if isinstance(value, str):
                moment = parse_time(value)
                return ("time", moment.replace(microsecond=0) if kind == "seconds" else moment)
            case "bytes" if isinstance(value, str):
                return ("bytes", base64.b64decode(value.translate(_NEWLINES), validate=True))
            case "int-or-string" if isinstance(value, (str, int)):
                return ("text", str(value))
            case _:
                pass
    except (ValueError, binascii.Error):
        pass
    return ("text" if isinstance(value, str) else "number" if isinstance(value, (int, float)) else "null", value)


_NEWLINES: Final[dict[int, None]] = {ord("\n"): None, ord("\r"): None}


def _with_encoded_data(secret: Mapping[str, Any]) -> Mapping[str, Any]:
    """A Secret with its ``stringData`` merged into ``data``, as the server does on every write."""
    texts: Any = secret.get("stringData")
    data: Any = secret.get("data") or {}
    if not isinstance(texts, dict) or not isinstance(data, dict):
        return secret
    encoded = {
        name: base64.b64encode(text.encode("utf-8", "surrogatepass")).decode() if isinstance(text, str) else text
        for name, text in cast("dict[str, Any]", texts).items()
    }
    return {name: value for name, value in secret.items() if name != "stringData"} | {"data": {**data, **encoded}}
