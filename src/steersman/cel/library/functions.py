"""The functions of expressions by name, called with the target first.

Guarantees
- Each function returns what the server's returns, or raises `CelError` with its message.
- `guarded` checks arguments whose types are known only at run time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from steersman.cel.declarations import functions
from steersman.cel.library.lists import LISTS
from steersman.cel.library.network import NETWORK
from steersman.cel.library.resources import RESOURCES
from steersman.cel.library.texts import TEXTS
from steersman.cel.library.times import (
    part_of_duration,
    part_of_timestamp,
    printed_duration,
    printed_timestamp,
    read_duration,
    read_timestamp,
)
from steersman.cel.syntax.nodes import Call, Literal
from steersman.cel.types import Type
from steersman.cel.values import (
    INT_MAX,
    INT_MIN,
    NOTHING,
    UINT_MAX,
    CelError,
    Duration,
    Listing,
    Mapped,
    Maybe,
    Opaque,
    Timestamp,
    TypeName,
    Uint,
    map_find,
    map_keys,
    negate,
    no_overload,
    one,
    size,
    type_name,
    unfit,
)
from steersman.golang import printed_number

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
#: Functions that return constants for constants.
CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "dyn", "duration", "int", "string", "timestamp", "type", "uint"}
)


def _cannot(value: Any, wanted: str) -> CelError:
    return CelError(f"type conversion error from '{type_name(value)}' to '{wanted}'")


def _to_bool(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if value in _TRUE or value in _FALSE:
        return value in _TRUE
    raise _cannot(value, "bool")


def _to_bytes(value: Any) -> Any:
    return value if isinstance(value, bytes) else value.encode()


def _to_double(value: Any) -> Any:
    if not isinstance(value, str):
        return float(value)
    try:
        # Python would also accept spaces around a number and underscores in it.
        number = float("" if value.strip() != value or "_" in value else value)
    except ValueError:
        raise _cannot(value, "double") from None
    if math.isinf(number) and "inf" not in value.lower():
        raise _cannot(value, "double")
    return number


def _integer(text: str, wanted: str, least: int, most: int) -> int:
    digits = text[1:] if text[:1] in {"-", "+"} and least < 0 else text
    bare = digits.lstrip("0") or "0"
    # Python cannot convert thousands of digits.
    if not (digits.isascii() and digits.isdigit()) or len(bare) > len(str(UINT_MAX)):
        raise _cannot(text, wanted)
    number = -int(bare) if text[0] == "-" else int(bare)
    if not least <= number <= most:
        raise _cannot(text, wanted)
    return number


def _to_int(value: Any) -> Any:
    match value:
        case Duration():
            return value.nanoseconds
        case Timestamp():
            return value.nanoseconds // 10**9
        case str():
            return _integer(value, "int", INT_MIN, INT_MAX)
        case float():
            if not math.isfinite(value) or not INT_MIN < value < INT_MAX:
                raise CelError("integer overflow")
            return int(value)
        case _:
            if value > INT_MAX:
                raise CelError("integer overflow")
            return int(value)


def _to_uint(value: Any) -> Any:
    if isinstance(value, str):
        return Uint(_integer(value, "uint", 0, UINT_MAX))
    if isinstance(value, float) and not math.isfinite(value):
        raise CelError("unsigned integer overflow")
    if not 0 <= value <= UINT_MAX:
        raise CelError("unsigned integer overflow")
    return Uint(value)


def to_string(value: Any) -> Any:  # noqa: PLR0911 - one answer for each kind
    """``string(value)``."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
        case float():
            return printed_number(value)
        case Duration():
            return printed_duration(value)
        case Timestamp():
            return printed_timestamp(value)
        case _:
            return str(value)


def _to_duration(value: Any) -> Any:
    if isinstance(value, Duration):
        return value
    read = read_duration(value) if isinstance(value, str) else None
    if read is None:
        raise _cannot(value, "google.protobuf.Duration")
    return read


def _to_timestamp(value: Any) -> Any:
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, str):
        read = read_timestamp(value)
        if read is None:
            raise _cannot(value, "google.protobuf.Timestamp")
        return read
    return Timestamp(value * 10**9)


def _not(value: Any) -> Any:
    if value is True or value is False:
        return not value
    raise no_overload()


def _of_non_zero(value: Any) -> Any:
    if value is None or (isinstance(value, Duration) and not value.nanoseconds):
        return NOTHING
    if isinstance(value, Maybe):
        return Maybe(value) if value.held else NOTHING
    if isinstance(value, bool | int | float | str | bytes | list | dict):
        return Maybe(value) if value else NOTHING
    return Maybe(value)


def _map_insert(entries: Any, *more: Any) -> Any:
    pairs = [(key, map_find(more[0], key).get()) for key in map_keys(more[0])] if len(more) == 1 else [more]
    for key, value in pairs:
        if not isinstance(key, str | int | float):
            raise CelError(f"unsupported key type '{type_name(key)}' in map")
        if key in entries:
            raise CelError(f"insert failed: key {key} already exists")
        entries[key] = value
    return entries


def _part(function: str) -> Callable[..., Any]:
    def part(value: Any, *zone: str) -> Any:
        if isinstance(value, Duration):
            return part_of_duration(function, value)
        return part_of_timestamp(function, value, *zone)

    return part


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "!_": _not,
    "-_": negate,
    "size": size,
    "type": one(lambda value: TypeName(type_name(value))),
    "dyn": one(lambda value: value),
    "bool": _to_bool,
    "bytes": _to_bytes,
    "double": _to_double,
    "int": _to_int,
    "uint": _to_uint,
    "string": to_string,
    "duration": _to_duration,
    "timestamp": _to_timestamp,
    "optional.of": Maybe,
    "optional.none": lambda: NOTHING,
    "optional.ofNonZeroValue": _of_non_zero,
    "value": one(lambda value: value.get()),
    "hasValue": one(lambda value: bool(value.held)),
    "cel.@mapInsert": _map_insert,
    "@not_strictly_false": one(lambda value: value is not False),
    **{function: _part(function) for function in functions() if function.startswith("get") and "URL" not in function},
    **TEXTS,
    **LISTS,
    **NETWORK,
    **RESOURCES,
}

_UNGUARDED: Final = frozenset({"!_", "contains", "startsWith", "endsWith", "flatten"})
#: With a constant pattern they are compiled in advance, and then report one message for all invalid arguments.
_PATTERNS: Final = frozenset({"matches", "find", "findAll"})
_BY_TRAIT: Final = frozenset({"size", "matches", "-_", "sort"})
_PLAIN: Final[dict[str, type]] = {
    "bool": bool,
    "int": int,
    "uint": Uint,
    "double": float,
    "string": str,
    "bytes": bytes,
    "duration": Duration,
    "timestamp": Timestamp,
    "null": type(None),
    "type": TypeName,
}


def _is_a(value: Any, kind: Type) -> bool:
    plain = _PLAIN.get(kind.kind)
    if plain is not None:
        return type(value) is plain
    match kind.kind:
        case "list":
            # The first element of a list decides about its element type.
            return isinstance(value, list | Listing) and all(_is_a(first, kind.of[0]) for first in islice(value, 1))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        case "map":
            return isinstance(value, dict | Mapped)
        case "opaque" if kind.name == "optional_type":
            return isinstance(value, Maybe)
        case "opaque" | "struct":
            return isinstance(value, Opaque) and value.type_name == kind.name
        case _:
            return True


def guarded(node: Call, known: Callable[..., Any]) -> Callable[..., Any]:
    """A function that checks its arguments before it is called."""
    function = node.function
    meant = [overload.args for overload in functions()[function.removeprefix(".")] if overload.id in node.overloads]

    def call(*args: Any) -> Any:
        for kinds in meant:
            if len(kinds) == len(args) and all(map(_is_a, args, kinds)):
                return known(*args)
        if function in _UNGUARDED:
            raise no_overload()
        if function in _PATTERNS and len(node.args) and isinstance(node.args[0], Literal):
            raise no_overload()
        if function in _BY_TRAIT:
            raise unfit(function, args[0])
        raise no_overload(function, args)

    return call
