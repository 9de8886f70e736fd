"""Integers as Go's ``strconv`` parses them: 64 bits, without Python's underscores and spaces."""

import re
from typing import Final

from steersman.golang.quotes import quoted

_SIGNED: Final = re.compile(r"[+-]?([0-9]+)")
_UNSIGNED: Final = re.compile(r"([0-9]+)")
#: More digits than 64 bits have; Python cannot convert thousands.
_DIGITS_MAX: Final = 20


def parse_int(text: str, *, function: str = "ParseInt") -> int:
    """A signed integer. Raises ValueError with the message of Go's ``function``."""
    return _parsed(text, _SIGNED, -(2**63), 2**63 - 1, function)


def parse_uint(text: str) -> int:
    """An unsigned integer. Raises ValueError with Go's message."""
    return _parsed(text, _UNSIGNED, 0, 2**64 - 1, "ParseUint")


def _parsed(text: str, form: re.Pattern[str], least: int, most: int, function: str) -> int:
    why = "invalid syntax"
    if found := form.match(text):
        digits = found[1].lstrip("0") or "0"
        number = int(digits) if len(digits) <= _DIGITS_MAX else 2**64
        signed = -number if text[0] == "-" else number
        is_whole = found.end() == len(text)
        if is_whole and least <= signed <= most:
            return signed
        # Go counts from the left: too many digits are a problem before a character that is none.
        if is_whole or number >= 2**64:
            why = "value out of range"
    raise ValueError(f"strconv.{function}: parsing {quoted(text)}: {why}")
