"""Scalars with their own decoders in Go: quantities, times and bytes, with Go's messages for invalid ones."""

from __future__ import annotations

import re
from functools import lru_cache

from steersman.golang import quoted_bytes
from steersman.objects import Quantity, format_time, parse_time

# Possessive quantifiers avoid backtracking, which would be quadratic.
_QUANTITY = re.compile(r"[+-]?[0-9]*+\.?[0-9]*+[eEinumkKMGTP]*+[-+]?[0-9]*+")
_FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_PAD = ord("=")
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/\r\n]")
_SECONDS = "2006-01-02T15:04:05Z07:00"
_MICROS = "2006-01-02T15:04:05.000000Z07:00"
#: The parts of a time in order, as in Go's layouts, and their numbers of digits.
_PARTS = [
    ("2006", 4),
    ("-", 0),
    ("01", 2),
    ("-", 0),
    ("02", 2),
    ("T", 0),
    ("15", 2),
    (":", 0),
    ("04", 2),
    (":", 0),
    ("05", 2),
]
_RANGES = {"01": (1, 12, "month"), "15": (0, 23, "hour"), "04": (0, 59, "minute"), "05": (0, 59, "second")}
_ZONE = re.compile(r"Z|[+-]([0-9]{2}):([0-9]{2})")
_MICRO_DIGITS = re.compile(r"[.,][0-9]{6}(?![0-9])")
_HOURS_MAX, _MINUTES_MAX = 24, 60


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
        raise ValueError(_time_words(text, _MICROS))
    try:
        moment = parse_time(text if text.isupper() else "")
    except ValueError:
        raise ValueError(_time_words(text, _MICROS if micro else _SECONDS)) from None
    printed = format_time(moment)
    return f"{printed[:-1]}.{moment.microsecond:06}Z" if micro else printed


def _time_words(text: str, layout: str) -> str:  # noqa: C901, PLR0911 - one return a problem
    rest = text
    for part, digits in _PARTS:
        if digits:
            found = rest[:digits]
            if len(found) < digits or not (found.isascii() and found.isdigit()):
                return _cannot(text, layout, rest, part)
            low, high, name = _RANGES.get(part, (0, 9999, ""))
            if not low <= int(found) <= high:
                return f"parsing time {quoted_bytes(text)}: {name} out of range"
            rest = rest[digits:]
        elif not rest.startswith(part):
            return _cannot(text, layout, rest, part)
        else:
            rest = rest[1:]
    fraction = re.match(r"[.,][0-9]{6}" if layout is _MICROS else r"[.,][0-9]+", rest)
    if fraction is not None:
        rest = rest[fraction.end() :]
    elif layout is _MICROS:
        return _cannot(text, layout, rest, ".000000")
    zone = _ZONE.match(rest)
    if zone is None:
        return _cannot(text, layout, rest, "Z07:00")
    if zone[1] and int(zone[1]) > _HOURS_MAX:
        return f"parsing time {quoted_bytes(text)}: time zone offset hour out of range"
    if zone[1] and int(zone[2]) > _MINUTES_MAX:
        return f"parsing time {quoted_bytes(text)}: time zone offset minute out of range"
    if rest[zone.end() :]:
        return f"parsing time {quoted_bytes(text)}: extra text: {quoted_bytes(rest[zone.end() :])}"
    return f"parsing time {quoted_bytes(text)}: day out of range"


def _cannot(text: str, layout: str, rest: str, part: str) -> str:
    return f'parsing time {quoted_bytes(text)} as "{layout}": cannot parse {quoted_bytes(rest)} as "{part}"'


def check_base64(text: str) -> None:
    """Raise ValueError with Go's message if a text is not base64; line ends within it are ignored."""
    data = text.encode()
    at = _last_quantum(data)
    while at < len(data):
        at = _quantum(data, at)


def _last_quantum(data: bytes) -> int:
    """The offset of the last four characters that can be checked before an error is found."""
    odd = _NOT_BASE64.search(data)
    at = odd.start() if odd is not None else len(data)
    breaks = data.count(b"\n", 0, at) + data.count(b"\r", 0, at)
    begun = (at - breaks) % 4
    while begun:
        at -= 1
        begun -= data[at] in _ALPHABET
    return at


def _quantum(data: bytes, at: int) -> int:
    """Decode four characters. Returns the offset of the next ones."""
    count = 0
    while count < 4:
        if at == len(data):
            if count == 0:
                return at
            raise _illegal(at - count)
        character = data[at]
        at += 1
        if character in _ALPHABET:
            count += 1
        elif character in b"\r\n":
            continue
        elif character != _PAD or count < 2:
            raise _illegal(at - 1)
        else:
            return _padding(data, at, count)
    return at


def _padding(data: bytes, at: int, count: int) -> int:
    def skipped(place: int) -> int:
        while place < len(data) and data[place] in b"\r\n":
            place += 1
        return place

    if count == 2:
        at = skipped(at)
        if at == len(data):
            raise _illegal(at)
        if data[at] != _PAD:
            raise _illegal(at - 1)
        at += 1
    at = skipped(at)
    if at < len(data):
        raise _illegal(at)
    return at


def _illegal(at: int) -> ValueError:
    return ValueError(f"illegal base64 data at input byte {at}")
