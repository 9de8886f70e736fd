"""Compares a JSON tree with the class that shall hold it: fields that the class lacks, and values of the wrong type.

Guarantees
- One walk finds every problem, each with its path and the place of its line.
- A value is accepted if decoding accepts it: constraints, required fields and closed sets of values are not checked.
- No message shows a value: it may be secret.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from typing import Any, Union, cast, get_args, get_origin

import msgspec
from msgspec import Raw

from steersman.objects import (
    Struct,
    declared_hints,
    decode_custom,
    is_struct,
    loosen,
    nearest,
    unwrap,
    wire_names,
)

#: Called with the list or mapping, the index or key in it, the path, and what is wrong there.
Report = Callable[[Any, str | int, str, str], None]
#: A type in a message of msgspec.
_QUOTED = re.compile("`([^`]*)`")
_NAMES = {
    "dict": "a mapping",
    "list": "a list",
    "str": "a string",
    "bool": "a boolean",
    "int": "an integer",
    "float": "a number",
}


def check_shape(
    cls: type[Struct], tree: dict[str, Any], report: Report, *, path: str = "", strict: bool = True
) -> None:
    """Report the fields of a tree that do not fit a class; without ``strict``, fields that it lacks are accepted."""
    _Walk(report, strict=strict).struct(cls, tree, path)


class _Walk:
    def __init__(self, report: Report, *, strict: bool) -> None:
        self._report = report
        self._strict = strict

    def struct(self, cls: type[Struct], tree: dict[str, Any], path: str) -> None:
        hints = {wire: declared_hints(cls)[name] for name, wire in wire_names(cls).items()}
        for key, value in tree.items():
            inner = f"{path}.{key}" if path else key
            if key in hints:
                self._value(hints[key], value, (tree, key, inner))
            elif self._strict:
                meant = nearest(key, hints)
                self._report(tree, key, inner, "unknown field" + (f"; did you mean {meant}?" if meant else ""))

    def _value(self, hint: Any, value: Any, at: tuple[Any, str | int, str]) -> None:
        kind = unwrap(hint)[0]
        if value is None or kind in {Any, object, Raw, type(None)}:
            return  # null means absent, as it does to the server
        union = get_origin(kind) in {Union, types.UnionType}
        members = get_args(kind) if union else (kind,)
        fitting = [member for member in members if _holds(member, value)]
        if not fitting:
            self._wrong_type(members, value, at)
        elif isinstance(value, dict):
            self._mapping(fitting[0], cast("dict[str, Any]", value), at[2])
        elif isinstance(value, list):
            (item,) = get_args(fitting[0]) or (Any,)
            for index, each in enumerate(cast("list[Any]", value)):
                self._member(item, each, (cast("Any", value), index, f"{at[2]}[{index}]"))
        else:
            self._scalar(kind, value, at)

    def _mapping(self, kind: Any, value: dict[str, Any], path: str) -> None:
        if is_struct(kind):
            self.struct(kind, value, path)
            return
        inner = (get_args(kind) or (Any, Any))[1]
        for key, each in value.items():
            self._member(inner, each, (value, key, f"{path}[{key}]"))

    def _member(self, hint: Any, value: Any, at: tuple[Any, str | int, str]) -> None:
        """Check an item of a list or of a map, which unlike a field cannot be absent."""
        kind, _, may_be_null = unwrap(hint)
        if value is None and not may_be_null and kind not in {Any, object, Raw}:
            self._report(*at, "expected a value, got null; remove it")
        else:
            self._value(hint, value, at)

    def _scalar(self, kind: Any, value: Any, at: tuple[Any, str | int, str]) -> None:
        try:
            msgspec.convert(value, type=loosen(kind), dec_hook=decode_custom)
        except (msgspec.ValidationError, ValueError, TypeError) as error:
            words = str(error).partition(" - at ")[0]
            words = _QUOTED.sub(lambda found: _NAMES.get(found[1], found[1]), words[:1].lower() + words[1:])
            quote = "; quote it" if words.startswith(f"expected {_NAMES['str']}, got") else ""
            self._report(*at, words + quote)

    def _wrong_type(self, members: tuple[Any, ...], value: Any, at: tuple[Any, str | int, str]) -> None:
        expected = dict.fromkeys(_expected(member) for member in members)
        given = _NAMES.get(type(value).__name__, "another value")
        self._report(*at, f"expected {' or '.join(expected)}, got {given}")


def _holds(kind: Any, value: Any) -> bool:
    """Whether a type of a field can hold lists, mappings or scalars, whichever the value is."""
    if kind in {Any, object}:
        return True
    if isinstance(value, dict):
        return is_struct(kind) or kind is dict or get_origin(kind) is dict
    if isinstance(value, list):
        return kind is list or get_origin(kind) is list
    return not (is_struct(kind) or kind in {dict, list} or get_origin(kind) in {dict, list})


def _expected(kind: Any) -> str:
    if is_struct(kind) or kind is dict or get_origin(kind) is dict:
        return "a mapping"
    if kind is list or get_origin(kind) is list:
        return "a list"
    return _NAMES.get(getattr(loosen(kind), "__name__", ""), "a string")
