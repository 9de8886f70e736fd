"""Validation of CronJob schedules, with the messages of the server's parser."""

from __future__ import annotations

from collections.abc import Mapping
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from steersman.golang import duration_nanoseconds, parse_int

_MONTHS = {
    name: index
    for index, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], start=1
    )
}
_DAYS = {name: index for index, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
#: The minimum and maximum of each field, and the names of numbers.
_FIELDS: tuple[tuple[int, int, Mapping[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_NICKNAMES = {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
_EVERY = "@every "


class _Wrong(Exception):
    """Why a schedule is invalid."""


def schedule_problem(schedule: str) -> str:
    """Why a schedule is invalid; empty if it is valid."""
    try:
        _parse(schedule)
    except _Wrong as wrong:
        return str(wrong)
    return ""


def _parse(schedule: str) -> None:
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        zone, space, rest = schedule.partition("=")[2].partition(" ")
        if not space:
            start = schedule.index("=") + 1
            raise _Wrong("invalid schedule format: runtime error: slice bounds out of range [:-1]" if start else "")
        why = zone_problem(zone)
        if why:
            raise _Wrong(f"provided bad location {zone}: {why}")
        schedule = rest.strip()
    if schedule.startswith("@"):
        _nickname(schedule)
        return
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        raise _Wrong(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for text, (least, most, names) in zip(fields, _FIELDS, strict=True):
        for part in filter(None, text.split(",")):
            _range(part, least, most, names)


def _nickname(schedule: str) -> None:
    if schedule in _NICKNAMES:
        return
    if not schedule.startswith(_EVERY):
        raise _Wrong(f"unrecognized descriptor: {schedule}")
    try:
        duration_nanoseconds(schedule.removeprefix(_EVERY))
    except ValueError as error:
        raise _Wrong(f"failed to parse duration {schedule}: {error}") from None


def _range(text: str, least: int, most: int, names: Mapping[str, int]) -> None:
    span, *steps = text.split("/")
    low, *high = span.split("-")
    if low in {"*", "?"}:
        start, end = least, most
    else:
        start = end = _number(low, names)
        if len(high) == 1:
            end = _number(high[0], names)
        elif high:
            raise _Wrong(f"too many hyphens: {text}")
    step = 1
    if len(steps) == 1:
        step = _number(steps[0], {})
        end = end if high else most
    elif steps:
        raise _Wrong(f"too many slashes: {text}")
    if start < least:
        raise _Wrong(f"beginning of range ({start}) below minimum ({least}): {text}")
    if end > most:
        raise _Wrong(f"end of range ({end}) above maximum ({most}): {text}")
    if start > end:
        raise _Wrong(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise _Wrong(f"step of range should be a positive number: {text}")


def _number(text: str, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    try:
        number = parse_int(text, function="Atoi")
    except ValueError as error:
        raise _Wrong(f"failed to parse int from {text}: {error}") from None
    if number < 0:
        raise _Wrong(f"negative number ({number}) not allowed: {text}")
    return number


def zone_problem(zone: str) -> str:
    """Why a time zone is invalid; empty if it is valid."""
    if zone in {"", "UTC", "Local"}:
        return ""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"unknown time zone {zone}"
    return ""
