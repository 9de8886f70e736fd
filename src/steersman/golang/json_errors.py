"""The messages of Go's JSON decoder about invalid JSON, or JSON of an unexpected type."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from steersman.golang.json_syntax import json_syntax_problem

_NAMES: dict[Any, str] = {list: "array", str: "string", bool: "bool", dict: "object"}


#: A text or, in a group, a number.
_SCALARS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|(-?[0-9]++(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+)', re.DOTALL)


def cannot_unmarshal(given: str, go_type: str, field: str = "") -> str:
    """The problem of a JSON value of another type than Go's; ``given`` is the `json_type` of the value."""
    return f"json: cannot unmarshal {given} into Go {f'struct field {field}' if field else 'value'} of type {go_type}"


def json_problem(body: bytes, error: Exception, into: str, *, untyped: str = "") -> str:
    """The problem with a text; ``into`` is Go's target type, and ``untyped`` its field that any value fits."""
    wrong = json_syntax_problem(body)
    if wrong is not None:
        return wrong
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return too_large_number(body, untyped) or str(error)
    return cannot_unmarshal(json_type(tree), into) if tree is not None else str(error)


def too_large_number(body: bytes, field: str = "") -> str:
    """Go's message about the first number in a valid JSON text that does not fit a double; empty if all fit.

    ``field`` is where Go decodes such numbers, if that is a field of a struct.
    """
    # Match by match: a copy without texts would take far more memory than the body.
    for found in _SCALARS.finditer(body):
        if found[1] and math.isinf(float(found[1])):
            return cannot_unmarshal(f"number {found[1].decode()}", "float64", field)
    return ""


def json_type(value: Any) -> str:
    """Go's name for an unexpected JSON value."""
    for type_, name in _NAMES.items():
        if isinstance(value, type_):
            return name
    return "number"
