"""``text.format([...])``: the clauses of Google's strings extension, version 2, in American English.

Guarantees
- `formatted` returns the text, or raises `CelError` with the server's message.
- `format_issue` checks a format text against the types of its arguments before anything runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final, cast

from steersman.cel.library.times import printed_duration, printed_timestamp
from steersman.cel.values import (
    CelError,
    Duration,
    Listing,
    Mapped,
    Timestamp,
    TypeName,
    Uint,
    map_find,
    map_keys,
    type_name,
)
from steersman.golang import printed_number, quoted

_CLAUSE: Final = re.compile(r"%(?:%|(?P<precision>\.[0-9]*)?(?P<letter>.)?)", re.DOTALL)
_ACCEPTED: Final = {
    "d": ({"int", "uint"}, "decimal clause can only be used on integers"),
    "f": ({"double", "string"}, "fixed-point clause can only be used on doubles"),
    "e": ({"double", "string"}, "scientific clause can only be used on doubles"),
    "b": ({"int", "uint", "bool"}, "only integers and bools can be formatted as binary"),
    "x": ({"int", "uint", "string", "bytes"}, "only integers, byte buffers, and strings can be formatted as hex"),
    "X": ({"int", "uint", "string", "bytes"}, "only integers, byte buffers, and strings can be formatted as hex"),
    "o": ({"int", "uint"}, "octal clause can only be used on integers"),
    "s": (
        {"list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"},
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
    ),
}
_KINDS: Final = {"google.protobuf.Duration": "duration", "google.protobuf.Timestamp": "timestamp", "null_type": "null"}
_PLACES: Final = str.maketrans("+-0123456789", "⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PRECISION: Final = 6
#: Go does not parse a longer precision. It does not take a greater one for a number, so an argument is left over.
_PRECISION_DIGITS: Final = 18
_PRECISION_MAX: Final = 10_000_009


def formatted(text: str, args: Any) -> str:
    """The text with its arguments inserted."""
    values = iter(list(args))
    count = len(list(args))
    printed = 0

    def clause(found: re.Match[str]) -> str:
        nonlocal printed
        if found[0] == "%%":
            return "%"
        if printed >= count:
            raise CelError(f"index {printed} out of range")
        printed += 1
        return _printed_clause(found, next(values))

    return _CLAUSE.sub(clause, text)


def _printed_clause(found: re.Match[str], value: Any) -> str:
    said = _clause_issue(found)
    if said:
        raise CelError(said)
    letter = found["letter"]
    kind = _KINDS.get(type_name(value), type_name(value))
    accepted, sentence = _ACCEPTED[letter]
    precision = int(found["precision"][1:]) if found["precision"] else _PRECISION
    words = letter in "fe" and value in {"NaN", "Infinity", "-Infinity"} if isinstance(value, str) else False
    if kind not in accepted or (letter in "fe" and kind == "string" and not words):
        raise CelError(f"error during formatting: {sentence}, was given {type_name(value)}")
    if words:
        value = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}[cast("str", value)]
    if letter in "fe" and precision > _PRECISION_MAX:
        return f"%!(NOVERB)%!(EXTRA float64={printed_number(cast('float', value))})"
    return _PRINTERS[letter](value, precision)


def _clause_issue(found: re.Match[str]) -> str:
    precision, letter = found["precision"], found["letter"]
    if letter is None:
        if precision is None:
            return "unexpected end of string"
        return "could not parse formatting clause: error while parsing precision: could not find end of precision specifier"
    if precision == ".":
        return (
            "could not parse formatting clause: error while parsing precision: error while converting precision to "
            'integer: strconv.Atoi: parsing "": invalid syntax'
        )
    if precision is not None and len(precision.lstrip(".0")) > _PRECISION_DIGITS:
        return (
            "could not parse formatting clause: error while parsing precision: error while converting precision to "
            f'integer: strconv.Atoi: parsing "{precision[1:]}": value out of range'
        )
    if letter not in _ACCEPTED:
        return f'could not parse formatting clause: unrecognized formatting clause "{letter}"'
    return ""


def format_issue(text: str, kinds: list[str], names: list[str]) -> tuple[int, str] | None:
    """The problem: which argument (-1: the call), and the message. `kinds` are the argument types, ``dyn`` if unknown."""
    asked = 0
    for found in _CLAUSE.finditer(text):
        if found[0] == "%%":
            continue
        if found["letter"] is None and found["precision"] is None:
            return -1, "unexpected end of string"
        if asked >= len(kinds):
            return -1, f"index {asked} out of range"
        said = _clause_issue(found)
        if said:
            return -1, said
        accepted, sentence = _ACCEPTED[found["letter"]]
        if kinds[asked] != "dyn" and kinds[asked] not in accepted:
            return asked, f"error during formatting: {sentence}, was given {names[asked]}"
        asked += 1
    if len(kinds) > asked:
        return -1, f"too many arguments supplied to string.format (expected {asked}, got {len(kinds)})"
    return None


def _special(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    return None if math.isfinite(value) else "∞" if value > 0 else "-∞"


def _fixed(value: float, precision: int) -> str:
    return _special(value) or f"{value:,.{precision}f}"


def _scientific(value: float, precision: int) -> str:
    special = _special(value)
    if special is not None:
        return special
    mantissa, _, power = f"{value:.6e}".partition("e")
    printed = f"{mantissa}\u00a0×\u00a010{power.removeprefix('+').translate(_PLACES)}"  # noqa: RUF001 - as the server prints
    return printed.rjust(precision)


def _hex(value: Any, *, upper: bool) -> str:
    if isinstance(value, str):
        value = value.encode()
    made = value.hex() if isinstance(value, bytes) else f"{'-' if value < 0 else ''}{abs(value):x}"
    return made.upper() if upper else made


def _text(value: Any) -> str:  # noqa: C901, PLR0911 - one answer for each kind
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise CelError("error during formatting: could not convert argument") from None
        case float():
            return printed_number(value)
        case Duration():
            return printed_duration(value)
        case Timestamp():
            return printed_timestamp(value)
        case TypeName():
            return value.name
        case list() | Listing():
            return f"[{', '.join(_nested(item) for item in cast('list[Any]', value))}]"
        case dict() | Mapped():
            pairs = sorted((_key(key), _nested(map_find(value, key).get())) for key in map_keys(value))
            return "{" + ", ".join(f"{key}:{inner}" for key, inner in pairs) + "}"
        case _:
            return str(value)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return quoted(key)
    if isinstance(key, bool | int | Uint):
        return _text(key)
    raise CelError(f"error during formatting: no formatting function for map key of type {type_name(key)}")


def _nested(value: Any) -> str:  # noqa: PLR0911 - one answer for each kind
    """A value inside a list or a map."""
    match value:
        case str():
            return quoted(value)
        case bytes():
            return f"b{quoted(value.decode(errors='replace'))}"
        case float():
            special = {"NaN": '"NaN"', "+Inf": '"+Inf"', "-Inf": '"-Inf"'}.get(printed_number(value))
            return special or f"{value:.6f}"
        case Duration():
            return f'duration("{printed_duration(value)}")'
        case Timestamp():
            return f'timestamp("{printed_timestamp(value)}")'
        case TypeName():
            return f"type({value.name})"
        case _:
            return _text(value)


_PRINTERS: Final[dict[str, Callable[[Any, int], str]]] = {
    "s": lambda value, _: _text(value),
    "d": lambda value, _: str(int(value)),
    "f": _fixed,
    "e": _scientific,
    "b": lambda value, _: f"{int(value):b}",
    "x": lambda value, _: _hex(value, upper=False),
    "X": lambda value, _: _hex(value, upper=True),
    "o": lambda value, _: f"{int(value):o}",
}
