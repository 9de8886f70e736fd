"""Messages of Go's ``time.Parse`` about RFC 3339 times."""

import re

from steersman.golang.quotes import quoted_bytes

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
_HOURS_MAX, _MINUTES_MAX = 24, 60


def time_problem(text: str, *, micro: bool) -> str:  # noqa: C901, PLR0911 - one return a problem
    """The message about an invalid time; ``micro`` requires six fractional digits."""
    layout, rest = _MICROS if micro else _SECONDS, text
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
    fraction = re.match(r"[.,][0-9]{6}" if micro else r"[.,][0-9]+", rest)
    if fraction is not None:
        rest = rest[fraction.end() :]
    elif micro:
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
