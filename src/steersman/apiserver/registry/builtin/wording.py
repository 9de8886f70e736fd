"""Problems with kube-apiserver's wording: each function makes the cause of one of the server's own checks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from steersman.schemas import FieldProblem
from steersman.schemas.field_problems import number, quoted

IMMUTABLE = "field is immutable"
NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than zero"


class Raw(str):
    """A value that a message prints unchanged."""

    __slots__ = ()


_FOR_HTML = re.compile(r"[<>&\u2028\u2029]")
#: Texts are quoted in pieces of this length, because quoting truncates long ones.
_PIECE = 1000


def escaped(text: str) -> str:
    """JSON with HTML characters escaped, as by the server's encoder."""
    return _FOR_HTML.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def shown(value: Any) -> str:
    """A value as printed in a message, in full."""
    match value:
        case Raw():
            return str(value)
        case None:
            return "null"
        case str():
            pieces = (value[start : start + _PIECE] for start in range(0, len(value), _PIECE))
            return f'"{"".join(quoted(piece)[1:-1] for piece in pieces)}"'
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number(value)
        case _:
            return escaped(json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False))


def invalid(path: str, value: Any, detail: str) -> FieldProblem:
    """The problem of an invalid value."""
    said = f"Invalid value: {shown(value)}"
    return FieldProblem(path, f"{said}: {detail}" if detail else said, "FieldValueInvalid")


def invalid_without_value(path: str, detail: str) -> FieldProblem:
    """The problem of an invalid value that is not printed."""
    return FieldProblem(path, f"Invalid value: {detail}", "FieldValueInvalid")


def required(path: str, detail: str = "") -> FieldProblem:
    """The problem of a missing value."""
    return FieldProblem(path, f"Required value: {detail}" if detail else "Required value", "FieldValueRequired")


def forbidden(path: str, detail: str) -> FieldProblem:
    """The problem of a value that is not allowed."""
    return FieldProblem(path, f"Forbidden: {detail}", "FieldValueForbidden")


def duplicate(path: str, value: Any) -> FieldProblem:
    """The problem of a duplicate value."""
    return FieldProblem(path, f"Duplicate value: {shown(value)}", "FieldValueDuplicate")


def missing(path: str, value: str, detail: str = "") -> FieldProblem:
    """The problem of a name without an object."""
    said = f"Not found: {shown(value)}"
    return FieldProblem(path, f"{said}: {detail}" if detail else said, "FieldValueNotFound")


def unsupported(path: str, value: Any, supported: Iterable[str]) -> FieldProblem:
    """The problem of a value outside the supported ones."""
    words = ", ".join(quoted(known) for known in supported)
    said = f"Unsupported value: {shown(value)}"
    return FieldProblem(path, f"{said}: supported values: {words}" if words else said, "FieldValueNotSupported")


def too_long(path: str, longest: int) -> FieldProblem:
    """The problem of a text or total that is too long."""
    return FieldProblem(path, f"Too long: may not be more than {longest} bytes", "FieldValueTooLong")


def too_many(path: str, count: int, most: int) -> FieldProblem:
    """The problem of a list with too many items."""
    items = "item" if most == 1 else "items"
    return FieldProblem(path, f"Too many: {count}: must have at most {most} {items}", "FieldValueTooMany")


def each(path: str, value: Any, messages: Iterable[str]) -> list[FieldProblem]:
    """A problem for each message about one value."""
    return [invalid(path, value, message) for message in messages]


def not_negative(path: str, value: int | None) -> list[FieldProblem]:
    """Check that a count is not negative."""
    return [invalid(path, value, NEGATIVE)] if value is not None and value < 0 else []


def unchanged(path: str, new: Any, old: Any, *, printed: Any = None) -> list[FieldProblem]:
    """Check that a field is unchanged."""
    return [] if new == old else [invalid(path, new if printed is None else printed, IMMUTABLE)]
