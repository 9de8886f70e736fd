"""Numbers as kube-apiserver judges them: bounds, multiples and the ranges of formats.

The server holds a bound as a 64-bit float and a whole number as a 64-bit integer, and compares in the type of the
value. So ``minimum: 0.5`` admits the literal ``0``, and ``2.000000001`` is an integer. Agreement with the
server matters more than arithmetic here: the server stores what this module admits, and rejects what it rejects.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

from steersman.golang import printed_number
from steersman.objects.field_problems import FieldProblem, problem

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
#: Below this float, every whole number has its own float.
_SAFE_INTEGER = float(2**53 - 1)
_RELATIVE_ERROR = 1e-9
_INTEGER_BITS = {"int32": 32}


def is_whole(value: float) -> bool:
    """Whether the server treats a float as a whole number: exact, or a hair away from one."""
    if not math.isfinite(value) or abs(value) > _SAFE_INTEGER:
        return False
    size = abs(value)
    rounded = math.floor(size)
    if size - rounded >= 0.5:
        rounded += 1
    return size == rounded or abs(size - rounded) < _RELATIVE_ERROR * rounded


def as_read(value: Any) -> Any:
    """A value as the server reads it from JSON: an integer beyond 64 bits becomes a float, possibly infinite."""
    if not isinstance(value, int) or _INT64_MIN <= value <= _INT64_MAX:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf


def number_problems(
    schema: Mapping[str, Any], types: tuple[str, ...], format_: str, value: float, path: str
) -> list[FieldProblem]:
    """All problems of a number, given the types and the enforced format of its schema."""
    kind = types[0] if len(types) == 1 and types[0] in {"integer", "number"} else ""
    check = _Bounds(kind, format_ if kind else "", value, path)
    check.in_range(value, "Checked")
    if schema.get("multipleOf") is not None:
        check.multiple_of(float(schema["multipleOf"]))
    if schema.get("minimum") is not None:
        check.minimum(float(schema["minimum"]), exclusive=bool(schema.get("exclusiveMinimum")))
    if schema.get("maximum") is not None:
        check.maximum(float(schema["maximum"]), exclusive=bool(schema.get("exclusiveMaximum")))
    return check.problems


class _Bounds:
    """The checks of one number. Bounds that do not fit its type are compared as floats, and are problems themselves."""

    def __init__(self, kind: str, format_: str, value: float, path: str) -> None:
        self.kind, self.format, self.value, self.path = kind, format_, value, path
        self.problems: list[FieldProblem] = []

    def in_range(self, number_: float, what: str) -> bool:
        if not math.isfinite(number_):
            fits = False
        elif self.kind == "integer":
            bits = _INTEGER_BITS.get(self.format, 64)
            fits = number_ == int(number_) and -(2 ** (bits - 1)) <= number_ < 2 ** (bits - 1)
        else:
            fits = self.format != "float" or _fits_float32(number_)
        if not fits:
            of = f"with format {self.format}" if self.format else "(default format)"
            said = f"{what} value must be of type {self.kind or 'number'} {of} in {self.path}"
            self.problems.append(problem(self.path, "FieldValueInvalid", "", said))
        return fits

    def _native(self, bound: float, what: str) -> tuple[float, float]:
        """Value and bound in the type in which the server compares them."""
        if self.in_range(bound, what) and isinstance(self.value, int):
            return self.value, _as_int64(bound)
        return float(self.value), bound

    def _report(self, said: str, value: float, bound: float) -> None:
        printed = str(bound) if isinstance(bound, int) else printed_number(bound)
        self.problems.append(
            problem(self.path, "FieldValueInvalid", value, f"{self.path} in body should be {said} {printed}")
        )

    def minimum(self, bound: float, *, exclusive: bool) -> None:
        value, least = self._native(bound, "Minimum boundary")
        if value < least or (exclusive and value == least):
            self._report("greater than" if exclusive else "greater than or equal to", value, least)

    def maximum(self, bound: float, *, exclusive: bool) -> None:
        value, most = self._native(bound, "Maximum boundary")
        if value > most or (exclusive and value == most):
            self._report("less than" if exclusive else "less than or equal to", value, most)

    def multiple_of(self, bound: float) -> None:
        value, factor = self._native(bound, "MultipleOf")
        if factor <= 0:
            said = f"factor MultipleOf declared for {self.path} must be positive: {printed_number(factor)}"
            self.problems.append(problem(self.path, "FieldValueInvalid", factor, said))
        elif isinstance(value, int) and isinstance(factor, int):
            if value % factor:
                self._report("a multiple of", value, factor)
        elif not is_whole(1 / factor * value if factor < 1 else value / factor):
            self._report("a multiple of", value, factor)


def _as_int64(bound: float) -> int:
    """A bound as the server converts it: without its fraction; if it is too large, the smallest integer."""
    return int(bound) if _INT64_MIN <= bound <= _INT64_MAX - 512 else _INT64_MIN


def _fits_float32(value: float) -> bool:
    try:
        struct.pack("<f", value)
    except OverflowError:
        return False
    return True
