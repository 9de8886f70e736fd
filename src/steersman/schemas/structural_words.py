"""Problems of a CustomResourceDefinition's schema, with kube-apiserver's wording and values in full.

Guarantee: `whole` prints a JSON value as Go's encoder does: sorted keys, HTML characters escaped, numbers in Go's form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard, cast

from steersman.schemas.field_problems import FieldProblem, number, quoted

_FOR_HTML = re.compile(r"[<>&\u2028\u2029]")
#: Texts are quoted in pieces of this length, because quoting truncates long ones.
_PIECE = 1000
#: Between these, Go's encoder writes a float without an exponent.
_PLAIN_FROM, _PLAIN_TO = 1e-6, 1e21


def is_schema(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether a part of a schema is a single schema, not a list, a boolean or absent."""
    return isinstance(value, dict)


def whole(value: Any) -> str:
    """A JSON value as Go's encoder prints it."""
    return _FOR_HTML.sub(lambda sign: f"\\u{ord(sign[0]):04x}", _written(value))


def _written(value: Any) -> str:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return f"{{{','.join(f'{_text(name)}:{_written(members[name])}' for name in sorted(members))}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_written, cast('list[Any]', value)))}]"
    if isinstance(value, float):
        return float_text(value)
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def float_text(value: float) -> str:
    """A float as Go's encoder prints it."""
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_TO:
        printed = f"{value:.17f}" if float(f"{value:.17f}") == value and "e" in repr(value) else repr(value)
        return str(int(value)) if value.is_integer() else printed.rstrip("0")
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa.removesuffix('.0')}e{exponent[0]}{exponent[1:].lstrip('0')}"


def shown(value: Any) -> str:
    """A value as printed in a message, in full."""
    if isinstance(value, str):
        pieces = (value[start : start + _PIECE] for start in range(0, len(value), _PIECE))
        return f'"{"".join(quoted(piece)[1:-1] for piece in pieces)}"'
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(value)
    return whole(value)


def invalid(path: str, value: Any, detail: str) -> FieldProblem:
    """The problem of an invalid value."""
    return FieldProblem(path, f"Invalid value: {shown(value)}: {detail}", "FieldValueInvalid")


def invalid_as(path: str, printed: str, detail: str) -> FieldProblem:
    """The problem of an invalid value that is already printed."""
    return FieldProblem(path, f"Invalid value: {printed}: {detail}", "FieldValueInvalid")


def required(path: str, detail: str = "") -> FieldProblem:
    """The problem of a missing value."""
    return FieldProblem(path, f"Required value: {detail}" if detail else "Required value", "FieldValueRequired")


def forbidden(path: str, detail: str) -> FieldProblem:
    """The problem of a value that is not allowed."""
    return FieldProblem(path, f"Forbidden: {detail}", "FieldValueForbidden")


def unsupported(path: str, value: str, supported: Iterable[str]) -> FieldProblem:
    """The problem of a value outside the supported ones."""
    words = ", ".join(quoted(known) for known in supported)
    return FieldProblem(path, f"Unsupported value: {shown(value)}: supported values: {words}", "FieldValueNotSupported")


def duplicate(path: str, value: Any) -> FieldProblem:
    """The problem of a duplicate value."""
    return FieldProblem(path, f"Duplicate value: {shown(value)}", "FieldValueDuplicate")


def too_many(path: str, count: int, most: int) -> FieldProblem:
    """The problem of a list with too many items."""
    return FieldProblem(path, f"Too many: {count}: must have at most {most} items", "FieldValueTooMany")
