"""Durations as Go's ``time`` package parses and prints them, in nanoseconds."""

import re
from typing import Final

from steersman.golang.quotes import quoted_bytes

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # the micro sign
    "μs": 10**3,  # the Greek letter
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_TERM: Final = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>[^0-9.]*)")
#: More digits than any duration has; Python cannot convert thousands.
_DIGITS_MAX: Final = 30
#: The nanoseconds of the longest duration, which is negative.
_MOST: Final = 2**63


def duration_nanoseconds(text: str) -> int:
    """The nanoseconds of a text such as ``1h30m``, ``-1.5s`` or ``300ms``. Raises ValueError with Go's message."""
    negative = text.startswith("-")
    terms = text[1:] if text[:1] in {"+", "-"} else text
    if terms == "0":
        return 0
    total = at = 0
    while at < len(terms) or not terms:
        term = _TERM.match(terms, at)
        if term is None or not (term["whole"] or term["fraction"]):
            raise _invalid(text)
        whole, fraction = term["whole"].lstrip("0"), (term["fraction"] or "")[:_DIGITS_MAX]
        if len(whole) > _DIGITS_MAX or int(whole or 0) > _MOST:
            raise _invalid(text)
        if not term["unit"]:
            raise ValueError(f"time: missing unit in duration {quoted_bytes(text)}")
        unit = _UNITS.get(term["unit"])
        if unit is None:
            raise ValueError(f"time: unknown unit {quoted_bytes(term['unit'])} in duration {quoted_bytes(text)}")
        total += int(whole or 0) * unit + int(fraction or 0) * unit // 10 ** len(fraction)
        if total > _MOST:
            raise _invalid(text)
        at = term.end()
    if total == _MOST and not negative:
        raise _invalid(text)
    return -total if negative else total


def _invalid(text: str) -> ValueError:
    return ValueError(f"time: invalid duration {quoted_bytes(text)}")


def printed_duration(nanoseconds: int) -> str:
    """A duration as text: ``1h30m0s``, ``1.5s``, ``300ms``, ``0s``."""
    if nanoseconds == 0:
        return "0s"
    sign, amount = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    for unit in ("ns", "µs", "ms"):
        if amount < 1000 * _UNITS[unit]:
            return f"{sign}{_decimal(amount, _UNITS[unit])}{unit}"
    minutes, rest = divmod(amount, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    printed = f"{_decimal(rest, _UNITS['s'])}s"
    if hours or minutes:
        printed = f"{minutes}m{printed}"
    return f"{sign}{hours}h{printed}" if hours else f"{sign}{printed}"


def _decimal(amount: int, unit: int) -> str:
    whole, part = divmod(amount, unit)
    digits = f"{part:0{len(str(unit)) - 1}d}".rstrip("0") if part else ""
    return f"{whole}.{digits}" if digits else f"{whole}"
