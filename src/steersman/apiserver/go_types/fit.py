"""A fast check that nearly all bodies pass: whether a tree is already in the form of its kind's types.

Guarantees
- A tree that fits is stored as sent: it has no unknown fields and no nulls, all types are right and all values have the
  server's printed form. Other trees are decoded with care.
- It also counts fields, to detect duplicates: see `field_count`.
"""

from __future__ import annotations

import math
import re
from typing import Any, cast

from steersman.apiserver.go_types import scalars
from steersman.apiserver.go_types.shapes import Shape

_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
#: Possessive: backtracking would cost memory for each group.
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?")
_INT32 = 2**31
_INT64 = 2**63
#: The count of a mismatch; any sum with it stays below zero.
NOT = -(2**62)


def field_count(raw: bytes, count: int) -> bool:
    """Whether a text holds exactly this many fields: if its tree has fewer, some are duplicates."""
    colons = raw.count(b":")
    if colons == count:
        return True
    # Match by match: the pieces between very many texts would take far more memory than the body.
    return colons - sum(raw.count(b":", *found.span()) for found in _STRINGS.finditer(raw)) == count


def count_fields(value: Any) -> int:
    """The number of fields in a tree."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return len(fields) + sum(count_fields(inner) for inner in fields.values() if isinstance(inner, (dict, list)))
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return sum(count_fields(item) for item in items if isinstance(item, (dict, list)))
    return 0


def fits(shape: Shape, value: Any) -> int:  # noqa: C901, PLR0911, PLR0912 - one branch a kind is the quickest
    """The number of fields of a value, or a negative number if it does not fit."""
    kind = shape.kind
    if kind == "string":
        return 0 if type(value) is str else NOT
    if kind == "struct":
        if type(value) is not dict:
            return NOT
        members = cast("dict[str, Any]", value)
        fields = shape.fields
        count = len(members)
        for name, inner in members.items():
            place = fields.get(name)
            if place is None or (not inner and place.omitted):
                return NOT
            if place.shape.kind == "string":
                # Inlined: most members are strings.
                if type(inner) is not str:
                    return NOT
            else:
                count += fits(place.shape, inner)
        return count
    if kind == "list":
        if type(value) is not list:
            return NOT
        items = cast("list[Any]", value)
        item_shape = shape.inner
        return sum(fits(item_shape, item) for item in items)
    if kind == "map":
        if type(value) is not dict:
            return NOT
        entries = cast("dict[str, Any]", value)
        value_shape = shape.inner
        count = len(entries)
        for inner in entries.values():
            count += fits(value_shape, inner)
        return count
    if kind == "int":
        limit = _INT32 if shape.go == "int32" else _INT64
        return 0 if type(value) is int and -limit <= value < limit else NOT
    if kind == "bool":
        return 0 if type(value) is bool else NOT
    return _special(shape, value)


def _special(shape: Shape, value: Any) -> int:  # noqa: PLR0911 - one return a kind
    match shape.kind:
        case "int-or-string":
            return 0 if type(value) is str or (type(value) is int and -_INT32 <= value < _INT32) else NOT
        case "any":
            return NOT if value is None else count_fields(value)
        case "quantity" | "time" | "micro" if type(value) is str:
            try:
                printed = (
                    scalars.quantity(value)
                    if shape.kind == "quantity"
                    else scalars.time(value, micro=shape.kind == "micro")
                )
            except ValueError:
                return NOT
            return 0 if printed == value else NOT
        case "bytes":
            return 0 if type(value) is str and _BASE64.fullmatch(value) else NOT
        case "float":
            return 0 if type(value) in {int, float} and math.isfinite(value) else NOT
        case _:
            return NOT
