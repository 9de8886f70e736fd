"""JSON values as written: with duplicate fields, in the order of the text, and with the digits of each number.

Guarantees
- `parse_pairs` and `as_pairs` lose nothing of a text or a tree.
- `plain` and `drained` empty the value meanwhile: what was written and what is made of it are not in memory at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec

from steersman.aio import collector_paused

INT64 = 2**63
_Item = TypeVar("_Item")
#: The length of a number that is likely to repeat.
_SHORT = 8


class Pairs(list[tuple[str, Any]]):
    """An object as written: every field, including duplicates."""

    __slots__ = ()


class Number(str):
    """A number as written."""

    __slots__ = ()


_shared_number = lru_cache(maxsize=1024)(Number)


def _number(text: str) -> Number:
    # Many numbers are short and equal; each one of its own would take a hundred times its text in memory.
    return _shared_number(text) if len(text) <= _SHORT else Number(text)


def _printed_number(text: str) -> Number:
    return _number(repr(float(text)).removesuffix(".0"))


_decoder = json.JSONDecoder(object_pairs_hook=Pairs, parse_int=_number, parse_float=_number, parse_constant=_number)
_printed_decoder = json.JSONDecoder(object_pairs_hook=Pairs, parse_int=_number, parse_float=_printed_number)


def parse_pairs(text: bytes) -> Any:
    """A valid JSON text with all its fields and with numbers as written."""
    with collector_paused():
        try:
            return _decoder.decode(text.decode())
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
            return as_pairs(msgspec.json.decode(text))


def parse_printed(text: bytes) -> Any:
    """A text that msgspec encoded. Floats that are whole have no fraction, as in `as_pairs`."""
    with collector_paused():
        return _printed_decoder.decode(text.decode())


def as_pairs(tree: Any) -> Any:
    """A tree as if written with its fields in order."""
    if isinstance(tree, dict):
        members = cast("dict[str, Any]", tree)
        return Pairs((name, as_pairs(members[name])) for name in sorted(members))
    if isinstance(tree, list):
        return [as_pairs(item) for item in cast("list[Any]", tree)]
    if isinstance(tree, (int, float)) and not isinstance(tree, bool):
        return Number(repr(tree).removesuffix(".0"))
    return tree


def drained(values: list[_Item]) -> Iterator[_Item]:
    """The items of a list, which is emptied meanwhile."""
    for at, item in enumerate(values):
        values[at] = cast("_Item", None)
        yield item


def plain(written: Any) -> Any:
    """A tree as Go decodes it without a type: of duplicate fields the last counts. Empties what was written."""
    if isinstance(written, Pairs):
        return {name: plain(inner) for name, inner in drained(written)}
    if isinstance(written, list):
        return [plain(item) for item in drained(cast("list[Any]", written))]
    return number_value(written) if isinstance(written, Number) else written


def number_value(number: Number) -> int | float:
    """A number as Go decodes it without a type: an int64 if it is one."""
    if number.lstrip("-").isdigit() and -INT64 <= (whole := int(number)) < INT64:
        return whole
    value = float(number)
    return int(value) if value.is_integer() and abs(value) < INT64 else value
