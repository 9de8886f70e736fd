"""The cost of calls at run time, by the sizes of their arguments and results.

Guarantees
- `charge_of` charges each function as kube-apiserver 1.37 does, so the limits on a rule and on an object stop the same
  rules here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from steersman.cel.library.resources import FORMAT_SIZES
from steersman.cel.syntax.nodes import Call
from steersman.cel.values import CelError, Listing, Mapped, cost_size, map_find, map_keys

Charge = Callable[[tuple[Any, ...], Any], int]
_TEXT: Final = 0.1
_PATTERN: Final = 0.25


def _scaled(size: float) -> int:
    return math.ceil(size * _TEXT)


def _matching(text: int, pattern: int) -> int:
    return math.ceil((1.0 + text) * _TEXT) * math.ceil(pattern * _PATTERN)


def traversal(value: Any) -> int:
    """The cost of traversing a value."""
    if isinstance(value, str):
        return int(len(value.encode()) * _TEXT)
    if isinstance(value, bytes):
        return int(len(value) * _TEXT)
    if isinstance(value, list | Listing):
        return sum(traversal(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, dict | Mapped):
        return sum(traversal(key) + traversal(map_find(value, key).get()) for key in map_keys(value))
    return 1


def _once(factor: float) -> Charge:
    return lambda args, _: math.ceil(cost_size(args[0]) * factor)


def _self_compared(at: int) -> Charge:
    def charge(args: tuple[Any, ...], _: Any) -> int:
        items = list(args[at])
        factor = 2.0 + (_TEXT if items and isinstance(items[0], str | bytes) else 0)
        return int(len(items) * len(items) * factor) + 11

    return charge


def _sets(factor: int) -> Charge:
    return lambda args, _: 1 + cost_size(args[0]) * cost_size(args[1]) * factor


def _contains_ip(args: tuple[Any, ...], _: Any) -> int:
    cost = _scaled(cost_size(args[0]) * 2)
    return cost + (_scaled(cost_size(args[1])) if isinstance(args[1], str) else 0)


def _contains_cidr(args: tuple[Any, ...], _: Any) -> int:
    size = cost_size(args[0])
    cost = _scaled(size * 2) + _scaled(size) + 1
    return cost + (_scaled(cost_size(args[1])) if isinstance(args[1], str) else 0)


def _ip(args: tuple[Any, ...], _: Any) -> int:
    return _scaled(cost_size(args[0])) if isinstance(args[0], str) else 1


def _validate(args: tuple[Any, ...], _: Any) -> int:
    return _matching(cost_size(args[1]), FORMAT_SIZES[args[0].name])


def _result_list(args: tuple[Any, ...], result: Any) -> int:  # noqa: ARG001 - one signature for all
    return cost_size(result) + 11


def _flatten(args: tuple[Any, ...], _: Any) -> int:
    return int(cost_size(args[0]) * (args[1] if len(args) == 2 else 1)) + 11


_BY_FUNCTION: Final[dict[str, Charge]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), lambda args, _: traversal(args[0])),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _once(_TEXT)),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _once(_TEXT)),
    **dict.fromkeys(("replace", "split"), _once(2 * _TEXT)),
    "ip": _ip,
    "ip.isCanonical": _once(2 * _TEXT),
    "join": lambda _, result: math.ceil(cost_size(result) * 2 * _TEXT),
    "find": lambda args, _: _matching(cost_size(args[0]), cost_size(args[1])),
    "findAll": lambda args, _: _matching(cost_size(args[0]), cost_size(args[1])),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "slice": _result_list,
    "reverse": _result_list,
    "lists.range": _result_list,
    "flatten": _flatten,
    "distinct": _self_compared(0),
    "sort": _self_compared(0),
    "@sortByAssociatedKeys": _self_compared(1),
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
}
_BY_OVERLOAD: Final[dict[str, Charge]] = {
    **dict.fromkeys(
        ("string_to_bytes", "bytes_to_string", "strings_quote", "string_format"),
        _once(_TEXT),
    ),
    **dict.fromkeys(("starts_with_string", "ends_with_string"), lambda args, _: _scaled(cost_size(args[1]))),
    "add_string": lambda args, _: _scaled(cost_size(args[0]) + cost_size(args[1])),
    "add_bytes": lambda args, _: _scaled(cost_size(args[0]) + cost_size(args[1])),
    **dict.fromkeys(("matches", "matches_string"), lambda args, _: _matching(cost_size(args[0]), cost_size(args[1]))),
    "contains_string": lambda args, _: _scaled(cost_size(args[0])) * _scaled(cost_size(args[1])),
}


def charge_of(node: Call) -> Charge | int:
    """The cost of a call without its arguments: a number, or a function that computes it."""
    known = _BY_FUNCTION.get(node.function)
    if known is None and len(node.overloads) == 1:
        known = _BY_OVERLOAD.get(node.overloads[0])
    if known is None:
        return 1
    reckon = known

    def charge(args: tuple[Any, ...], result: Any) -> int:
        try:
            return reckon(args, result)
        except (CelError, TypeError, AttributeError):
            # The function rejects these arguments: it fails, and costs what any call costs.
            return 1

    return charge
