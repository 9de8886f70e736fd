"""The encoded form of Kubernetes' own types.

Guarantees
- `canonical` returns the tree that results from decoding and encoding an object as Kubernetes' own type: null and empty
  values that such a type omits are gone, those that it always writes are present, quantities, times and numbers are
  printed as by the server, and fields are in the server's order. Unknown fields are gone.
- In a canonical tree, ``get`` suffices to read a field: an absent field was not given, or was zero.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from steersman.apiserver.errors import too_large
from steersman.apiserver.registry.builtin.types.trees import Tree
from steersman.objects import MicroTime, Quantity, format_time, parse_time

META = "meta.v1.ObjectMeta"
#: How many items of a list are very many.
_MANY = 1_000
#: What no stored object is longer than, in bytes.
_STORED_MAX = 3 * 1024 * 1024
_SCALARS = {"string": "", "int": 0, "bool": False, "float": 0.0, "intstr": 0, "quantity": "0", "bytes": None}


class _Field(NamedTuple):
    name: str
    type: str
    #: Whether a zero value is omitted.
    omitted: bool
    convert: Callable[[Any], Any]


@cache
def _document() -> dict[str, list[str]]:
    raw = (Path(__file__).parents[1] / "data" / "shapes.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, list[str]])


@cache
def _fields(definition: str, *, in_place: bool) -> tuple[_Field, ...]:
    found: list[_Field] = []
    for row in _document()[definition]:
        name, type_, *omit = row.split(" ")
        found.append(_Field(name, type_, _is_omitted(type_, "".join(omit)), _converter(type_, in_place=in_place)))
    return tuple(found)


def _is_omitted(type_: str, omit: str) -> bool:
    """Whether a zero value is omitted: a struct that is not a pointer is written even if it is empty."""
    if "z" in omit:
        return True
    return "e" in omit and (type_.startswith(("*", "[]", "{}")) or type_ in {"string", "int", "bool", "float", "bytes"})


@cache
def _converter(type_: str, *, in_place: bool) -> Callable[[Any], Any]:
    if type_.startswith("*"):
        return _converter(type_[1:], in_place=in_place)
    if type_.startswith("[]"):
        return _list_converter(type_[2:], in_place=in_place)
    if type_.startswith("{}"):
        return _map_converter(type_[2:], in_place=in_place)
    simple = _CONVERTERS.get(type_)
    if simple is not None:
        return simple
    if type_ in _SCALARS or type_ in {"raw", "duration"}:
        return _same
    return lambda value: canonical(cast("Tree", value), type_, in_place=in_place) if isinstance(value, dict) else value


def _list_converter(element: str, *, in_place: bool) -> Callable[[Any], Any]:
    convert = _converter(element, in_place=in_place)

    def converted(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        given = cast("list[Any]", value)
        made = given if in_place else given.copy()
        # Of very many empty items one is made: each of them breaks the same rules.
        blank = zero(element) if len(made) > _MANY and "." in element else None
        if blank and len(made) * len(msgspec.json.encode(blank)) > _STORED_MAX:
            raise too_large("etcdserver: request is too large")
        # One after the other, so that a long list is never there twice.
        for index, item in enumerate(made):
            if blank and (item is None or item == {}):
                made[index] = blank
            else:
                made[index] = zero(element) if item is None else convert(item)
        return made or None

    return converted


def _map_converter(element: str, *, in_place: bool) -> Callable[[Any], Any]:
    convert = _rounded if element == "quantity" else _converter(element, in_place=in_place)

    def converted(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        given = cast("Tree", value)
        made = given if in_place else given.copy()
        for key, item in made.items():
            made[key] = _element_zero(element) if item is None else convert(item)
        return made or None

    return converted


def _element_zero(element: str) -> Any:
    return "" if element == "bytes" else zero(element)


def _same(value: Any) -> Any:
    return value


def _quantity(value: Any) -> Any:
    try:
        return Quantity(str(value)).printed()
    except ValueError:
        return value


def _rounded(value: Any) -> Any:
    """A quantity of a resource list, rounded up to thousandths."""
    try:
        quantity = Quantity(str(value))
        exact = quantity.as_fraction() * 1000
        if exact.denominator == 1:
            return quantity.printed()
        return Quantity.exact(Fraction(ceil(exact), 1000), format=quantity.format).canonical()
    except ValueError:
        return value


def _time(value: Any) -> Any:
    try:
        return format_time(parse_time(value)) if isinstance(value, str) else value
    except ValueError:
        return value


def _micro_time(value: Any) -> Any:
    try:
        return format_time(MicroTime.parse(value)) if isinstance(value, str) else value
    except ValueError:
        return value


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "quantity": _quantity,
    "time": _time,
    "microtime": _micro_time,
    "int": _whole,
    "intstr": _whole,
}


def zero(type_: str) -> Any:
    """The encoded value of an unset field of this type."""
    if type_.startswith(("*", "[]", "{}")) or type_ in {"time", "microtime", "raw"}:
        return None
    if type_ == "duration":
        return "0s"
    if type_ in _SCALARS:
        return _SCALARS[type_]
    return canonical({}, type_)


def canonical(tree: Tree, definition: str, *, in_place: bool = False) -> Tree:
    """The tree as the type of this definition (``core.v1.PodSpec``) would write it.

    The given tree is not changed, unless ``in_place``: then it is used up, and a large tree is not in memory twice.
    """
    made: Tree = {}
    for name, type_, omitted, convert in _fields(definition, in_place=in_place):
        value = tree.get(name)
        if value is not None:
            value = convert(value)
        if value is None:
            if not omitted:
                made[name] = zero(type_)
        elif not (omitted and type_ in _SCALARS and not value):
            made[name] = value
    return made


def empty(definition: str) -> Tree:
    """The encoded empty value of this type."""
    return canonical({}, definition)


def knows(definition: str) -> bool:
    """Whether there is a shape for this definition."""
    return definition in _document()
