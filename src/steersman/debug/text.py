"""Numbers and times as text, for the debug page and ``steersman explain``."""

from __future__ import annotations

from datetime import datetime


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 key``, ``2 keys``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """A duration with at most two units: ``4 ms``, ``1.5 s``, ``42 s``, ``5 min 3 s``, ``3 h 20 min``, ``4 d 2 h``."""
    seconds = max(0.0, seconds)
    if seconds < 0.0005:
        return "<1 ms" if seconds else "0 ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, size, below, smaller in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit} {rest} {below}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def stamp(moment: datetime) -> str:
    """A moment in full, as in logs."""
    zone = moment.strftime("%Z") or "no zone"
    return f"{moment.strftime('%Y-%m-%d %H:%M:%S')} {zone}"


def percent(part: int, whole: int) -> str:
    """A share in percent. Only zero is shown as 0%."""
    if not part or not whole:
        return "0%"
    share = 100 * part / whole
    return "<0.1%" if share < 0.1 else f"{share:.1f}%" if share < 10 else f"{share:.0f}%"


def next_run(seconds: float | None) -> str:
    """The next run as text: ``now``, ``in 5 s`` or ``when something changes``."""
    if seconds is None:
        return "when something changes"
    return f"in {duration(seconds)}" if seconds > 0 else "now"
