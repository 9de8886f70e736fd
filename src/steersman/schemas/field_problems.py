"""Validation problems, with kube-apiserver's wording.

Guarantees
- A `FieldProblem` has the path, the reason and the message of a cause in a server's Status.
- `invalid` turns problems into the same error as a server's 422 answer, so that one `except` catches both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any, Literal, TypeVar, cast

import msgspec

from steersman.objects.errors import Invalid
from steersman.objects.status import ApiStatus, StatusCause, StatusDetails

Reason = Literal[
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueNotFound",
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
]

_WORDS: dict[str, str] = {
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotFound": "Not found",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueRequired": "Required value",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueTypeInvalid": "Invalid value",
}
#: Reasons whose message does not repeat the value.
_WITHOUT_VALUE = frozenset({"FieldValueForbidden", "FieldValueRequired", "FieldValueTooLong"})
_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_FOR_HTML = re.compile(r"[<>&\u2028\u2029]")
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
#: A longer value is truncated in a message; the server prints it in full.
_SHOWN_MAX = 1024
_Item = TypeVar("_Item")
#: The maximum number of problems for one object. Rules over many items stop there.
PROBLEMS_MAX = 1000


class FieldProblem(msgspec.Struct, frozen=True, order=True):
    """One reason why a value is rejected: ``spec.ports[0].name``, a sentence, and Kubernetes' reason."""

    path: str
    message: str
    reason: Reason = "FieldValueInvalid"

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def problem(path: str, reason: Reason, value: Any = "", detail: str = "") -> FieldProblem:
    """A problem with the server's wording: its kind, the value, and what is expected."""
    said = _WORDS[reason]
    if reason not in _WITHOUT_VALUE:
        said = f"{said}: {shown(value)}"
    return FieldProblem(path, f"{said}: {detail}" if detail else said, reason)


def until_enough(items: Iterable[_Item], problems: Sequence[FieldProblem]) -> Iterator[tuple[int, _Item]]:
    """Enumerate items until the check that walks them has found `PROBLEMS_MAX` problems.

    A body of 100,000 empty items would otherwise cost several problems for each, of which the answer lists the first ones.
    """
    for numbered in enumerate(items):
        if len(problems) >= PROBLEMS_MAX:
            return
        yield numbered


def enough(problems: Iterable[FieldProblem]) -> list[FieldProblem]:
    """Collect the first `PROBLEMS_MAX` problems of a check."""
    return list(islice(problems, PROBLEMS_MAX))


def invalid(problems: Sequence[FieldProblem], *, group: str, kind: str, name: str, tried: str) -> Invalid:
    """The error that a server would answer for the same object."""
    printed = [str(found) for found in problems]
    subject = f'{f"{kind}.{group}" if group else kind} "{name}" is invalid: '
    status = ApiStatus(
        status="Failure",
        message=subject + (printed[0] if len(printed) == 1 else f"[{', '.join(printed)}]"),
        reason="Invalid",
        details=StatusDetails(
            name=name,
            group=group,
            kind=kind,
            causes=tuple(StatusCause(reason=p.reason, message=p.message, field=p.path) for p in problems),
        ),
        code=422,
    )
    return Invalid(status, tried=tried)


def shown(value: Any) -> str:
    """A JSON value as printed in a message."""
    match value:
        case str():
            return quoted(value)
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number(value)
        case _:
            printed = msgspec.json.encode(_plain(value), order="deterministic").decode()
            return _cut(_FOR_HTML.sub(lambda sign: f"\\u{ord(sign[0]):04x}", printed))


def quoted(text: str) -> str:
    """A quoted text, as by Go's ``%q``."""
    return '"' + "".join(map(_escaped, _cut(text))) + '"'


def _escaped(character: str) -> str:
    code = ord(character)
    if code in _ESCAPES:
        return _ESCAPES[code]
    if character.isprintable():
        return character
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float) -> str:
    """A number as Go's ``%v`` prints it: an integer in full, a float in the fewest digits that keep it."""
    if isinstance(value, int) and _INT64_MIN <= value <= _INT64_MAX:
        return str(value)
    if not math.isfinite(value):
        return f"{value:+}"
    exact = Decimal(repr(float(value))).normalize()
    sign, digits, _ = exact.as_tuple()
    power = exact.adjusted()
    if -4 <= power < 6:
        return f"{exact:f}"
    mantissa = "".join(map(str, digits))
    point = "." if len(mantissa) > 1 else ""
    return f"{'-' * sign}{mantissa[0]}{point}{mantissa[1:]}e{power:+03d}"


def _plain(value: Any) -> Any:
    """A JSON value whose numbers print as in Go: whole floats without a fraction."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in cast("list[Any]", value)]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
