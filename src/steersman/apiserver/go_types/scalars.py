"""Scalars with their own decoders in Go: quantities and times, with Go's messages for invalid ones."""

from __future__ import annotations

import re
from functools import lru_cache

from steersman.golang import time_problem
from steersman.objects import Quantity, format_time, parse_time

# Possessive quantifiers avoid backtracking, which would be quadratic.
_QUANTITY = re.compile(r"[+-]?[0-9]*+\.?[0-9]*+[eEinumkKMGTP]*+[-+]?[0-9]*+")
_FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_MICRO_DIGITS = re.compile(r"[.,][0-9]{6}(?![0-9])")


@lru_cache(maxsize=4096)
def quantity(text: str) -> str:
    """A quantity in its printed form. Raises ValueError with Go's message if it is invalid."""
    text = text.strip()
    try:
        return str(Quantity(text).printed())
    except ValueError:
        is_formed = text and _QUANTITY.fullmatch(text)
        raise ValueError("unable to parse quantity's suffix" if is_formed else _FORMAT_WRONG) from None


@lru_cache(maxsize=4096)
def time(text: str, *, micro: bool = False) -> str:
    """A time in its printed form: UTC, truncated to the second or microsecond.

    Raises ValueError with Go's message if it is invalid.
    """
    if micro and _MICRO_DIGITS.search(text) is None:
        raise ValueError(time_problem(text, micro=True))
    try:
        moment = parse_time(text if text.isupper() else "")
    except ValueError:
        raise ValueError(time_problem(text, micro=micro)) from None
    printed = format_time(moment)
    return f"{printed[:-1]}.{moment.microsecond:06}Z" if micro else printed
