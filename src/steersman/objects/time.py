"""Times and durations in Kubernetes' formats.

Guarantees:

- `format_time` prints a time in UTC with second precision (metav1.Time), or with exactly six fractional digits for a
  `MicroTime` (metav1.MicroTime). It truncates, never rounds up, so no printed time lies in the future.
- `parse_time` parses any RFC 3339 time, with any fraction and offset, into an aware UTC datetime.
- `parse_duration` and `format_duration` parse and print Go durations ("1h30m0s"), exact to the microsecond.
- Invalid text raises ``ValueError`` naming it.
"""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final, Self, SupportsIndex

from steersman.golang import duration_nanoseconds, printed_duration

_RFC3339: Final = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})[Tt]"
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]+))?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<offset_hours>[0-9]{2}):(?P<offset_minutes>[0-9]{2}))"
)


class MicroTime(datetime):
    """A datetime that prints with exactly six fractional digits (metav1.MicroTime, as in Leases and Events).

    Otherwise it is a datetime: it compares with datetimes, and adding a timedelta gives a `MicroTime`.
    """

    __slots__ = ()

    @classmethod
    def of(cls, moment: datetime) -> Self:
        """Convert an aware datetime."""
        utc = _in_utc(moment)
        return cls(utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond, tzinfo=UTC)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an RFC 3339 time."""
        return cls.of(parse_time(text))

    def __str__(self) -> str:
        # Printing a naive time by mistake should show it, not raise.
        return super().__str__() if self.tzinfo is None else format_time(self)

    # Pickle and copy rebuild a datetime through this; it must stay the subclass.
    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[object, ...]:
        return (type(self).of, (datetime.combine(self.date(), self.timetz()),))


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise ValueError(f"the time {moment.isoformat()} has no time zone; add one, such as tzinfo=datetime.UTC")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"the time {moment.isoformat()} is outside the years 1 to 9999 in UTC") from None


def format_time(moment: datetime) -> str:
    """Format a time as Kubernetes does: ``2026-01-31T12:00:00Z``, a `MicroTime` as ``2026-01-31T12:00:00.000000Z``."""
    utc = _in_utc(moment)
    timespec = "microseconds" if isinstance(moment, MicroTime) else "seconds"
    return utc.replace(tzinfo=None).isoformat(timespec=timespec) + "Z"


def parse_time(text: str) -> datetime:
    """Parse an RFC 3339 time into an aware UTC datetime; digits past the microsecond are truncated."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"not an RFC 3339 time: {_shown(text)}; write one such as 2026-01-31T12:00:00Z")
    micros = int((match["fraction"] or "")[:6].ljust(6, "0"))
    zone = UTC
    try:
        if match["sign"]:
            if int(match["offset_minutes"]) > 59:
                raise ValueError("offset minutes must be in 0..59")  # noqa: TRY301 - worded like datetime's own
            offset = timedelta(hours=int(match["offset_hours"]), minutes=int(match["offset_minutes"]))
            zone = timezone(-offset if match["sign"] == "-" else offset)
        date = (int(match["year"]), int(match["month"]), int(match["day"]))
        clock = (int(match["hour"]), int(match["minute"]), int(match["second"]))
        return _in_utc(datetime(*date, *clock, micros, tzinfo=zone))
    except ValueError as error:
        raise ValueError(f"not an RFC 3339 time: {_shown(text)}: {error}") from None


def parse_duration(text: str) -> timedelta:
    """Parse a Go duration such as ``1h30m``, ``-1.5s`` or ``300ms``; digits past the microsecond are truncated."""
    try:
        nanoseconds = duration_nanoseconds(text)
    except ValueError:
        raise ValueError(
            f"not a duration: {_shown(text)}; write numbers with the units h, m, s, ms, us or ns, such as 1h30m or "
            "300ms, up to 292 years"
        ) from None
    micros = timedelta(microseconds=abs(nanoseconds) // 1_000)
    return -micros if nanoseconds < 0 else micros


def format_duration(duration: timedelta) -> str:
    """Format a duration as Go does: ``1h30m0s``, ``1.5s``, ``300ms``, ``0s``."""
    return printed_duration(duration // timedelta(microseconds=1) * 1_000)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:80]}...")
