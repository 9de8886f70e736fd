"""Durations and timestamps: parsed, printed and taken apart as in Go."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final
from zoneinfo import ZoneInfo

from steersman.cel.values import CelError, Duration, Timestamp
from steersman.golang import duration_nanoseconds

_WORDS: Final = re.compile(r"(\d+)\s*([A-Za-zµ]+)")
_WORD_UNITS: Final = {
    **dict.fromkeys(("ns", "nano"), 1),
    **dict.fromkeys(("us", "µs", "micro"), 10**3),
    **dict.fromkeys(("ms", "milli"), 10**6),
    **dict.fromkeys(("s", "sec"), 10**9),
    **dict.fromkeys(("m", "min"), 60 * 10**9),
    **dict.fromkeys(("h", "hr", "hour"), 3600 * 10**9),
    **dict.fromkeys(("d", "day"), 86400 * 10**9),
    **dict.fromkeys(("w", "wk", "week"), 7 * 86400 * 10**9),
}
_MOMENT: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt](\d{1,2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:([Zz])|([+-])(\d{2}):(\d{2}))"
)
#: More digits than any duration has; Python cannot convert thousands.
_DIGITS_MAX: Final = 30
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def read_duration(text: str) -> Duration | None:
    """Go's ``time.ParseDuration``; None if the text is invalid."""
    try:
        return Duration(duration_nanoseconds(text))
    except ValueError:
        return None


def read_schema_duration(text: str) -> Duration | None:
    """A value of the format ``duration``: Go's, or words as in ``3 days``."""
    known = read_duration(text)
    if known is not None:
        return known
    total, found = 0, False
    for amount, word in _WORDS.findall(text):
        unit = _WORD_UNITS.get(word.lower()) or _WORD_UNITS.get(word.lower().removesuffix("s"))
        if unit is None:
            return None
        total, found = total + int(amount[:_DIGITS_MAX]) * unit, True
    return Duration(total) if found else None


def read_timestamp(text: str) -> Timestamp | None:
    """An RFC 3339 timestamp; None if the text is invalid."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    try:
        whole = datetime(max(year, 1), month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    fraction = int(((found[7] or "") + "0" * 9)[:9])
    offset = 0
    if found[9]:
        offset = (int(found[10]) * 3600 + int(found[11]) * 60) * (1 if found[9] == "+" else -1)
    seconds = _seconds(whole) - offset
    if year == 0:
        raise CelError("timestamp overflow")
    return Timestamp(seconds * 10**9 + fraction, offset)


def read_date(text: str) -> Timestamp | None:
    """A date, as its first moment in UTC."""
    return read_timestamp(f"{text}T00:00:00Z")


def _seconds(moment: datetime) -> int:
    passed = moment - _EPOCH
    return passed.days * 86400 + passed.seconds


def _moment(stamp: Timestamp, zone: timezone | ZoneInfo) -> datetime:
    return (_EPOCH + timedelta(seconds=stamp.nanoseconds // 10**9)).astimezone(zone)


def printed_timestamp(stamp: Timestamp, *, utc: bool = False) -> str:
    """A timestamp in RFC 3339, with as many fractional digits as it has."""
    offset = 0 if utc else stamp.offset
    moment = _moment(stamp, timezone(timedelta(seconds=offset)))
    fraction = f".{stamp.nanoseconds % 10**9:09d}".rstrip("0").rstrip(".")
    zone = "Z" if not offset else f"{'+' if offset > 0 else '-'}{abs(offset) // 3600:02d}:{abs(offset) // 60 % 60:02d}"
    return f"{moment.year:04d}{moment:-%m-%dT%H:%M:%S}{fraction}{zone}"


def printed_duration(duration: Duration) -> str:
    """A duration in seconds."""
    seconds = duration.nanoseconds / 10**9
    text = (
        f"{seconds:.9f}".rstrip("0").rstrip(".") if duration.nanoseconds % 10**9 else f"{duration.nanoseconds // 10**9}"
    )
    return f"{text}s"


def _zone(name: str) -> timezone | ZoneInfo:
    hours, colon, minutes = name.partition(":")
    if colon:
        try:
            offset = int(hours) * 60 + (-int(minutes) if name.startswith("-") else int(minutes))
        except ValueError as error:
            raise CelError(f'strconv.Atoi: parsing "{hours}": invalid syntax') from error
        try:
            return timezone(timedelta(minutes=offset))
        except (ValueError, OverflowError) as error:
            # Go accepts such offsets; Python rejects offsets of a day or more.
            raise CelError(f"unknown time zone {name}") from error
    if name in {"", "UTC"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:
        raise CelError(f"unknown time zone {name}") from error


def part_of_timestamp(function: str, stamp: Timestamp, zone: str = "UTC") -> int:  # noqa: PLR0911 - one answer for each kind
    """The result of a ``get`` function of a timestamp."""
    moment = _moment(stamp, _zone(zone))
    match function:
        case "getFullYear":
            return moment.year
        case "getMonth":
            return moment.month - 1
        case "getDayOfYear":
            return moment.timetuple().tm_yday - 1
        case "getDayOfMonth":
            return moment.day - 1
        case "getDate":
            return moment.day
        case "getDayOfWeek":
            return moment.isoweekday() % 7
        case "getHours":
            return moment.hour
        case "getMinutes":
            return moment.minute
        case "getSeconds":
            return moment.second
        case _:
            return stamp.nanoseconds % 10**9 // 10**6


_DURATION_PARTS: Final = {
    "getHours": 3600 * 10**9,
    "getMinutes": 60 * 10**9,
    "getSeconds": 10**9,
    "getMilliseconds": 10**6,
}


def part_of_duration(function: str, duration: Duration) -> int:
    """A duration in whole units, truncated toward zero."""
    whole = abs(duration.nanoseconds) // _DURATION_PARTS[function]
    return whole if duration.nanoseconds >= 0 else -whole
