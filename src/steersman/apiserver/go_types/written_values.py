"""JSON values as written: with duplicate fields, in the order of the text, and with the digits of each number.

Guarantee: `parse_pairs` and `as_pairs` lose nothing of a text or a tree.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, cast

import msgspec

from steersman.aio import collector_paused

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
