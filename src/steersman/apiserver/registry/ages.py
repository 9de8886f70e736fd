"""Ages and durations as tables show them: ``45s``, ``3m12s``, ``5d``."""

from __future__ import annotations

from datetime import timedelta

from steersman.aio import utc_now
from steersman.objects import parse_time


def since(moment: str | None) -> str:
    """How long ago a moment was; ``<unknown>`` without one."""
    if not moment:
        return "<unknown>"
    try:
        return human(utc_now() - parse_time(moment))
    except ValueError:
        return "<invalid>"


def human(duration: timedelta) -> str:  # noqa: PLR0911 - one return a magnitude reads best
    """A duration with as much precision as a reader needs."""
    # Truncate toward zero: a clock that is a second behind must not make an age invalid.
    seconds = int(duration.total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        rest = seconds % 60
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = seconds // 3600
    if hours < 8:
        rest = minutes % 60
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    return _days(hours)


def _days(hours: int) -> str:
    if hours < 192:
        days, rest = divmod(hours, 24)
        return f"{days}d{rest}h" if rest else f"{days}d"
    days = hours // 24
    if days < 730:
        return f"{days}d"
    years, rest = divmod(days, 365)
    return f"{years}y{rest}d" if years < 8 and rest else f"{years}y"
