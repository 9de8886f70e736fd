"""Problems of fields, in kube-apiserver's words: ``spec.replicas: Invalid value: -1: must be greater than ...``.

Guarantees
- A `FieldProblem` has the path, the reason and the message of a cause in a server's Status.
- `invalid_error` turns problems into the same error as a server's 422 answer, so that one `except` catches both.
- Values are printed as Go prints them: in full, but by `problem` at most their first 1,024 characters.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Literal, TypeVar

import msgspec

from steersman.errors import ApiStatus, Invalid, StatusCause, StatusDetails
from steersman.golang import cut, printed_json, printed_number, quoted, quoted_in_full

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

IMMUTABLE: Final = "field is immutable"
NEGATIVE: Final = "must be greater than or equal to 0"
NOT_POSITIVE: Final = "must be greater than zero"
#: The maximum number of problems for one object. Rules over many items stop there.
PROBLEMS_MAX: Final = 1000

_WORDS: Final[dict[Reason, str]] = {
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
_WITHOUT_VALUE: Final = frozenset({"FieldValueForbidden", "FieldValueRequired", "FieldValueTooLong"})
_Item = TypeVar("_Item")


class FieldProblem(msgspec.Struct, frozen=True, order=True):
    """One reason why a value is rejected: ``spec.ports[0].name``, a sentence, and Kubernetes' reason."""

    path: str
    message: str
    reason: Reason = "FieldValueInvalid"

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Printed(str):
    """A value that a message shows unchanged, because it is already printed."""

    __slots__ = ()


def problem(path: str, reason: Reason, value: Any = "", detail: str = "") -> FieldProblem:
    """A problem of any reason. A long value is cut."""
    return _problem(path, reason, "" if reason in _WITHOUT_VALUE else shown(value), detail)


def invalid(path: str, value: Any, detail: str) -> FieldProblem:
    """The problem of an invalid value."""
    return _problem(path, "FieldValueInvalid", shown_in_full(value), detail)


def invalid_without_value(path: str, detail: str) -> FieldProblem:
    """The problem of an invalid value that the message does not show."""
    return _problem(path, "FieldValueInvalid", "", detail)


def required(path: str, detail: str = "") -> FieldProblem:
    """The problem of a missing value."""
    return _problem(path, "FieldValueRequired", "", detail)


def forbidden(path: str, detail: str = "") -> FieldProblem:
    """The problem of a value that is not allowed."""
    return _problem(path, "FieldValueForbidden", "", detail)


def duplicate(path: str, value: Any, detail: str = "") -> FieldProblem:
    """The problem of a duplicate value."""
    return _problem(path, "FieldValueDuplicate", shown_in_full(value), detail)


def missing(path: str, value: str, detail: str = "") -> FieldProblem:
    """The problem of a name without an object."""
    return _problem(path, "FieldValueNotFound", shown_in_full(value), detail)


def unsupported(path: str, value: Any, supported: Iterable[str]) -> FieldProblem:
    """The problem of a value outside the supported ones."""
    words = ", ".join(map(quoted_in_full, supported))
    return _problem(path, "FieldValueNotSupported", shown_in_full(value), words and f"supported values: {words}")


def too_long(path: str, longest: int) -> FieldProblem:
    """The problem of a text or total that is too long."""
    return _problem(path, "FieldValueTooLong", "", f"may not be more than {longest} bytes")


def too_many(path: str, count: int, most: int) -> FieldProblem:
    """The problem of a list with too many items."""
    return _problem(path, "FieldValueTooMany", str(count), f"must have at most {most} item{'s' * (most != 1)}")


def each(path: str, value: Any, messages: Iterable[str]) -> list[FieldProblem]:
    """A problem for each message about one value."""
    return [invalid(path, value, message) for message in messages]


def not_negative(path: str, value: int | None) -> list[FieldProblem]:
    """Check that a count is not negative."""
    return [invalid(path, value, NEGATIVE)] if value is not None and value < 0 else []


def unchanged(path: str, new: Any, old: Any, *, printed: Any = None) -> list[FieldProblem]:
    """Check that a field is unchanged."""
    return [] if new == old else [invalid(path, new if printed is None else printed, IMMUTABLE)]


def until_enough(items: Iterable[_Item], problems: Sequence[FieldProblem]) -> Iterator[tuple[int, _Item]]:
    """Enumerate items until the check that walks them has found `PROBLEMS_MAX` problems.

    A body of 100,000 empty items would otherwise cost several problems for each, of which the answer lists the first ones.
    """
    for numbered in enumerate(items):
        if len(problems) >= PROBLEMS_MAX:
            return
        yield numbered


def repeated(
    items: Iterable[_Item], key: Callable[[_Item], Hashable] = lambda item: item
) -> Iterator[tuple[int, _Item]]:
    """Enumerate the items whose key an earlier one has, in one pass."""
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        name = key(item)
        if name in seen:
            yield index, item
        seen.add(name)


def enough(problems: Iterable[FieldProblem]) -> list[FieldProblem]:
    """Collect the first `PROBLEMS_MAX` problems of a check."""
    return list(islice(problems, PROBLEMS_MAX))


def invalid_error(problems: Sequence[FieldProblem], *, group: str, kind: str, name: str, tried: str) -> Invalid:
    """The client's error before a write, with the text of the server's own 422 (`apiserver.errors`)."""
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
    """A JSON value as a message shows it, cut if it is long."""
    return quoted(value) if isinstance(value, str) else cut(shown_in_full(value))


def shown_in_full(value: Any) -> str:
    """A JSON value as a message shows it."""
    match value:
        case Printed():
            return str(value)
        case str():
            return quoted_in_full(value)
        case int() | float() if not isinstance(value, bool):
            return printed_number(value)
        case _:
            return printed_json(value)


def _problem(path: str, reason: Reason, printed: str, detail: str) -> FieldProblem:
    return FieldProblem(path, ": ".join(part for part in (_WORDS[reason], printed, detail) if part), reason)
