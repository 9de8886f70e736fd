"""The functions, operators and types of expressions in a CRD: those of kube-apiserver 1.37.

Guarantees
- `functions()` has every overload with the server's name, types and order: CEL's own, the extensions for strings,
  lists, sets, optionals and two-variable comprehensions, and Kubernetes' libraries for lists, regular expressions,
  URLs, addresses, quantities, named formats and semantic versions.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from steersman.cel import types as t
from steersman.cel.types import Type, params_of, read_type, split_types

_ORDERED: Final = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE: Final = ("int", "uint", "double", "duration")
_NUMBERS: Final = ("int", "uint", "double")

_OF_TIMES: Final = {
    "getFullYear": "timestamp_to_year",
    "getMonth": "timestamp_to_month",
    "getDayOfYear": "timestamp_to_day_of_year",
    "getDayOfMonth": "timestamp_to_day_of_month",
    "getDate": "timestamp_to_day_of_month_1_based",
    "getDayOfWeek": "timestamp_to_day_of_week",
    "getHours": "timestamp_to_hours",
    "getMinutes": "timestamp_to_minutes",
    "getSeconds": "timestamp_to_seconds",
    "getMilliseconds": "timestamp_to_milliseconds",
}
_OF_DURATIONS: Final = ("Hours", "Minutes", "Seconds", "Milliseconds")
NAMED_FORMATS: Final = tuple(
    """
    dns1123Label dns1123Subdomain dns1035Label qualifiedName dns1123LabelPrefix dns1123SubdomainPrefix
    dns1035LabelPrefix labelValue uri uuid byte date datetime
    """.split()  # noqa: SIM905
)
#: Names that denote types in an expression.
TYPE_NAMES: Final[dict[str, Type]] = {
    **{name: read_type(name) for name in ("bool", "bytes", "double", "int", "string", "uint")},
    "google.protobuf.Duration": t.DURATION,
    "google.protobuf.Timestamp": t.TIMESTAMP,
    "list": t.list_of(t.DYN),
    "map": t.map_of(t.DYN, t.DYN),
    "null_type": t.NULL,
    "type": t.TYPE,
    "optional_type": t.optional_of(t.param("V")),
    "net.IP": t.IP,
    "net.CIDR": t.CIDR,
}


class Overload(NamedTuple):
    """One way to call a function."""

    id: str
    member: bool
    args: tuple[Type, ...]
    result: Type
    params: frozenset[Type]


@cache
def functions() -> dict[str, list[Overload]]:
    """All functions with their overloads.

    A line of ``declarations.txt`` is: function overload(parameters) result.
    A dot before the overload marks a method, whose first parameter is the target.
    """
    table = (files("steersman.cel") / "declarations.txt").read_text(encoding="utf-8")
    found: dict[str, list[Overload]] = {}
    for line in [*table.splitlines(), *_comparisons(), *_of_lists(), *_of_times(), *_of_formats()]:
        function, _, rest = line.partition(" ")
        name, _, signature = rest.partition("(")
        end = _closing(signature)
        inside, result = signature[:end], signature[end + 1 :]
        args = tuple(read_type(part) for part in split_types(inside))
        kind = read_type(result)
        params = frozenset(params_of([*args, kind]))
        overload = Overload(name.removeprefix("."), name.startswith("."), args, kind, params)
        found.setdefault(function, []).append(overload)
    return found


def _closing(signature: str) -> int:
    """The index of the closing parenthesis of the parameters."""
    depth = 1
    for at, sign in enumerate(signature):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return at
    raise ValueError(signature)


def _comparisons() -> list[str]:
    lines: list[str] = []
    names = {"int": "int64", "uint": "uint64"}
    for sign, name in {"<": "less", "<=": "less_equals", ">": "greater", ">=": "greater_equals"}.items():
        for one in _ORDERED:
            lines.append(f"_{sign}_ {name}_{names.get(one, one)}({one}, {one}) bool")
            if one in _NUMBERS:
                lines += [
                    f"_{sign}_ {name}_{names.get(one, one)}_{names.get(two, two)}({one}, {two}) bool"
                    for two in _NUMBERS
                    if two != one
                ]
    return lines


def _of_lists() -> list[str]:
    return [
        *(f"isSorted .list_{kind}_is_sorted_bool(list({kind})) bool" for kind in _COMPARABLE),
        *(f"sum .list_{kind}_sum_{kind}(list({kind})) {kind}" for kind in _SUMMABLE),
        *(f"max .list_{kind}_max_{kind}(list({kind})) {kind}" for kind in _COMPARABLE),
        *(f"min .list_{kind}_min_{kind}(list({kind})) {kind}" for kind in _COMPARABLE),
        *(f"sort .list_{kind}_sort(list({kind})) list({kind})" for kind in _COMPARABLE),
        *(
            f"@sortByAssociatedKeys .list_{kind}_sortByAssociatedKeys(list(T), list({kind})) list(T)"
            for kind in _COMPARABLE
        ),
    ]


def _of_times() -> list[str]:
    lines: list[str] = []
    for function, overload in _OF_TIMES.items():
        lines.append(f"{function} .{overload}(timestamp) int")
        lines.append(f"{function} .{overload}_with_tz(timestamp, string) int")
    lines += [f"get{part} .duration_to_{part.lower()}(duration) int" for part in _OF_DURATIONS]
    return lines


def _of_formats() -> list[str]:
    return [f"format.{name} format.{name}() Format" for name in NAMED_FORMATS]
