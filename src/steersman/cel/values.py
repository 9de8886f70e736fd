"""The values of expressions: equality, order and arithmetic as in CEL.

bool, int, float, str, bytes and None represent themselves; lists and maps of an expression are Python's. This module
has the rest.

Guarantees
- Integers have 64 bits. An overflow raises `CelError`, as does every other operation without a result.
- Numbers of different types compare by value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1
#: 0001-01-01 and 9999-12-31, in nanoseconds.
_EARLIEST: Final = -62135596800 * 10**9
_LATEST: Final = 253402300799 * 10**9 + 999_999_999


class CelError(Exception):
    """An operation failed; ``&&``, ``||``, ``all`` and ``exists`` may ignore it."""


class Aborted(Exception):
    """An expression on which the server itself fails: its evaluation stops."""


class CostExceeded(Exception):
    """An expression exceeded its cost limit."""


class Uint(int):
    """An unsigned integer."""

    __slots__ = ()


class Duration:
    """A duration in nanoseconds."""

    __slots__ = ("nanoseconds",)

    def __init__(self, nanoseconds: int) -> None:
        if not INT_MIN <= nanoseconds <= INT_MAX:
            raise CelError("integer overflow")
        self.nanoseconds = nanoseconds


class Timestamp:
    """A moment: nanoseconds since 1970, and its UTC offset in seconds."""

    __slots__ = ("nanoseconds", "offset")

    def __init__(self, nanoseconds: int, offset: int = 0) -> None:
        if not _EARLIEST <= nanoseconds <= _LATEST:
            raise CelError("timestamp overflow")
        self.nanoseconds = nanoseconds
        self.offset = offset


class Maybe:
    """An optional value."""

    __slots__ = ("held",)

    def __init__(self, *held: Any) -> None:
        self.held = held

    def get(self) -> Any:
        """The value. Raises `CelError` if there is none."""
        if not self.held:
            raise CelError("optional.none() dereference")
        return self.held[0]


NOTHING: Final = Maybe()


class TypeName:
    """A type as a value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Listing:
    """A list in the validated object."""

    __slots__ = ()
    #: Whether ``x in list`` fails if an item cannot be compared and no other is equal.
    search_raises = True

    def get(self, index: Any) -> Any:
        """One item, by an index within the list: an int, or another number without a fraction."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def equals(self, other: Any) -> bool:
        """Whether another list is equal."""
        raise NotImplementedError

    def plus(self, other: Any) -> Any:
        """The concatenation of both lists."""
        raise NotImplementedError


class JoinedList(list[Any]):
    """A list that an expression makes of a list in the validated object, and that compares by content as that does."""

    __slots__ = ()

    def equals(self, other: Any) -> bool:
        """Whether another list is equal."""
        raise NotImplementedError

    def plus(self, other: Any) -> Any:
        """The concatenation of both lists."""
        raise NotImplementedError


class Mapped:
    """A map or an object in the validated object."""

    __slots__ = ()

    def find(self, key: Any) -> Maybe:
        """The value of a key."""
        raise NotImplementedError

    def size(self) -> int:
        """The number of entries."""
        raise NotImplementedError

    def keys(self) -> list[Any]:
        """The keys that expressions see."""
        raise NotImplementedError

    def equals(self, other: Any) -> bool:
        """Whether another map is equal."""
        raise NotImplementedError


class MadeObject(dict[str, Any]):
    """An object that an expression makes: ``Object.spec{replicas: 3}``."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind


class Opaque:
    """A value of a library, with its own type and equality."""

    __slots__ = ()
    type_name = ""
    #: Its size in cost computations.
    length = 1

    def equals(self, other: Any) -> bool:
        """Whether another value of the same type is equal."""
        raise NotImplementedError


def no_overload(function: str = "", args: tuple[Any, ...] | None = None) -> CelError:
    """The error for an operation that does not exist for these values."""
    if not function:
        return CelError("no such overload")
    if args is None:
        return CelError(f"no such overload: {function}")
    return CelError(f"no such overload: {function}({', '.join(type_name(arg) for arg in args)})")


def unfit(function: str, value: Any) -> CelError:
    """The error for an operator or function that does not exist for its first value."""
    return no_overload() if isinstance(value, str | Duration | Timestamp) else no_overload(function)


_TYPE_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    Maybe: "optional_type",
    TypeName: "type",
    list: "list",
    dict: "map",
}


def type_name(value: Any) -> str:
    """The name of a value's type."""
    kind = value.__class__
    known = _TYPE_NAMES.get(kind)
    if known is not None:
        return known
    if isinstance(value, Opaque):
        return value.type_name
    return "list" if isinstance(value, list | Listing) else "map" if isinstance(value, Mapped) else "unknown"


def is_number(value: Any) -> bool:
    """Whether a value is an int, a uint or a double."""
    kind = value.__class__
    return kind is int or kind is float or kind is Uint


def equal(one: Any, two: Any) -> bool:  # noqa: PLR0911 - one answer for each kind
    """Whether two values are equal. Raises if their types have no equality."""
    if one is None or two is None:
        return one is two
    kind = one.__class__
    if kind is str or kind is bytes or kind is bool:
        return kind is type(two) and one == two
    if is_number(one):
        return is_number(two) and one == two
    if kind is list:
        return _lists_equal(one, two)
    if kind is dict:
        return _maps_equal(one, two)
    if isinstance(one, Duration | Timestamp):
        return type(two) is kind and one.nanoseconds == two.nanoseconds
    if isinstance(one, Maybe):
        if not isinstance(two, Maybe) or len(one.held) != len(two.held):
            return False
        return not one.held or equal(one.held[0], two.held[0])
    if isinstance(one, TypeName):
        return isinstance(two, TypeName) and one.name == two.name
    return one.equals(two)


def elements(value: Any) -> list[Any] | Listing | None:
    """A list of either sort; None for any other value."""
    return cast("list[Any]", value) if isinstance(value, list | Listing) else None


def _lists_equal(one: list[Any], two: Any) -> bool:
    others = elements(two)
    if others is None or len(one) != len(others):
        return False
    for mine, other in zip(one, others, strict=True):
        try:
            if not equal(mine, other):
                return False
        except CelError:
            continue
    return True


def _maps_equal(one: dict[Any, Any], two: Any) -> bool:
    if not isinstance(two, dict | Mapped) or len(one) != map_size(two):
        return False
    for key, value in one.items():
        try:
            other = map_find(two, key)
        except CelError:
            return False
        if not other.held:
            return False
        try:
            if not equal(value, other.held[0]):
                return False
        except CelError:
            # As in a list: values that cannot be compared do not differ.
            continue
    return True


def map_find(value: Any, key: Any) -> Maybe:
    """The value of a key in a map of either sort."""
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value)
        return Maybe(entries[key]) if isinstance(key, str | int | float) and key in entries else NOTHING
    return cast("Mapped", value).find(key)


def map_size(value: Any) -> int:
    """The number of entries of a map of either sort."""
    return len(cast("dict[Any, Any]", value)) if isinstance(value, dict) else cast("Mapped", value).size()


def map_keys(value: Any) -> list[Any]:
    """The keys of a map of either sort."""
    return list(cast("dict[Any, Any]", value)) if isinstance(value, dict) else cast("Mapped", value).keys()


def compare(one: Any, two: Any) -> int:
    """-1, 0 or 1. Raises if the types have no order."""
    kind = one.__class__
    other = two.__class__
    if is_number(one) and is_number(two):
        if one != one or two != two:  # noqa: PLR0124 - NaN alone differs from itself
            raise CelError("NaN values cannot be ordered")
        return (one > two) - (one < two)
    if kind is not other:
        raise no_overload()
    if kind is str or kind is bytes or kind is bool:
        return (one > two) - (one < two)
    if kind is Duration or kind is Timestamp:
        return (one.nanoseconds > two.nanoseconds) - (one.nanoseconds < two.nanoseconds)
    raise no_overload()


_ORDERED: Final = (bool, int, Uint, float, str, bytes, Duration, Timestamp)


def is_ordered(value: Any) -> bool:
    """Whether a value's type has an order."""
    return type(value) in _ORDERED


def size(value: Any) -> int:
    """The length of a string, bytes, a list or a map."""
    if isinstance(value, str | bytes | list | dict):
        return len(cast("str", value))
    if isinstance(value, Mapped):
        return value.size()
    if isinstance(value, Listing):
        return len(value)
    raise unfit("size", value)


def cost_size(value: Any) -> int:
    """The size of a value in cost computations."""
    if isinstance(value, str | bytes | list | dict):
        return len(cast("str", value))
    if isinstance(value, Mapped):
        return value.size()
    if isinstance(value, Listing):
        return len(value)
    if isinstance(value, Maybe) and value.held:
        return cost_size(value.held[0])
    return value.length if isinstance(value, Opaque) else 1


def _checked_int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise CelError("integer overflow")
    return value


def _checked_uint(value: int) -> Uint:
    if not 0 <= value <= UINT_MAX:
        raise CelError("unsigned integer overflow")
    return Uint(value)


class Growing(list[Any]):
    """The accumulator list of a comprehension: adding changes it in place, because nothing else sees it before the end."""


def _joined(one: list[Any] | Listing, two: Any) -> Any:
    if isinstance(one, JoinedList | Listing):
        return one.plus(two)
    if not one or not len(two):
        return one or two
    return [*one, *two]


def add(one: Any, two: Any) -> Any:  # noqa: C901, PLR0911 - one answer for each kind
    """``one + two``."""
    kind = one.__class__
    if kind is type(two):
        if kind is int:
            return _checked_int(one + two)
        if kind is str or kind is float or kind is bytes:
            return one + two
        if kind is Uint:
            return _checked_uint(int(one) + int(two))
        if kind is Duration:
            return Duration(one.nanoseconds + two.nanoseconds)
    if kind is Growing:
        cast("Growing", one).extend(two)
        return one
    if isinstance(one, list | Listing):
        if elements(two) is None:
            raise no_overload()
        return _joined(cast("list[Any]", one), two)
    if isinstance(one, Timestamp) and isinstance(two, Duration):
        return Timestamp(one.nanoseconds + two.nanoseconds, one.offset)
    if isinstance(one, Duration) and isinstance(two, Timestamp):
        return Timestamp(one.nanoseconds + two.nanoseconds, two.offset)
    raise no_overload() if is_ordered(one) and kind is not bool else unfit("_+_", one)


def subtract(one: Any, two: Any) -> Any:
    """``one - two``."""
    kind = one.__class__
    if kind is type(two):
        if kind is int:
            return _checked_int(one - two)
        if kind is float:
            return one - two
        if kind is Uint:
            return _checked_uint(int(one) - int(two))
        if kind is Duration:
            return Duration(one.nanoseconds - two.nanoseconds)
        if kind is Timestamp:
            if not INT_MIN <= one.nanoseconds - two.nanoseconds <= INT_MAX:
                raise CelError("duration overflow")
            return Duration(one.nanoseconds - two.nanoseconds)
    if kind is Timestamp and isinstance(two, Duration):
        return Timestamp(one.nanoseconds - two.nanoseconds, one.offset)
    raise no_overload() if is_number(one) else unfit("_-_", one)


def multiply(one: Any, two: Any) -> Any:
    """``one * two``."""
    kind = one.__class__
    if kind is type(two):
        if kind is int:
            return _checked_int(one * two)
        if kind is float:
            return one * two
        if kind is Uint:
            return _checked_uint(int(one) * int(two))
    raise no_overload() if is_number(one) else unfit("_*_", one)


def divide(one: Any, two: Any) -> Any:
    """``one / two``, integers toward zero."""
    kind = one.__class__
    if kind is type(two):
        if kind is float:
            if two == 0:
                return math.nan if one == 0 or one != one else math.copysign(math.inf, one) * math.copysign(1, two)  # noqa: PLR0124
            return one / two
        if kind is int or kind is Uint:
            if two == 0:
                raise CelError("division by zero")
            quotient = abs(int(one)) // abs(int(two))
            if kind is Uint:
                return Uint(quotient)
            return _checked_int(quotient if (one < 0) == (two < 0) else -quotient)
    raise no_overload() if is_number(one) else unfit("_/_", one)


def modulo(one: Any, two: Any) -> Any:
    """``one % two``, with the sign of the first."""
    kind = one.__class__
    if kind is type(two) and kind in {int, Uint}:
        if two == 0:
            raise CelError("modulus by zero")
        if one == INT_MIN and two == -1:
            raise CelError("integer overflow")
        rest = abs(int(one)) % abs(int(two))
        return Uint(rest) if kind is Uint else rest if one >= 0 else -rest
    raise no_overload() if kind in {int, Uint} else unfit("_%_", one)


def negate(one: Any) -> Any:
    """``-one``."""
    kind = one.__class__
    if kind is int:
        return _checked_int(-one)
    if kind is float:
        return -one
    if kind is Duration:
        return Duration(-one.nanoseconds)
    raise no_overload() if kind is bool else unfit("-_", one)


def one(call: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function of one value, for the tables."""
    return call


def two(call: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A function of two values, for the tables."""
    return call


ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
}
