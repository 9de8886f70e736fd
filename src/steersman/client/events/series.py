"""Series of similar events: creates the first, writes the second as a series, then updates its count now and then.

Guarantees
- Pure: no IO and no clock. The caller passes the time, in seconds of any monotonic clock.
- Memory is bounded, however many objects and reasons there are.
- An object gets at most `BURST` new events at once and one more every `REFILL_SECONDS`. Events above that are dropped,
  or only counted if they belong to a series.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, Literal, TypeAlias, TypeVar

#: How many events about one object may be written at once, and how many seconds allow one more.
BURST = 25
REFILL_SECONDS = 300.0

#: A series without an event for this long is over; the next occurrence starts a new one.
SERIES_QUIET_SECONDS = 360.0

#: An ongoing series is written again after this long.
SERIES_REFRESH_SECONDS = 1800.0

#: The maximum number of series, and of objects with an allowance, in memory.
CAPACITY = 4096

T = TypeVar("T")

#: What to do with an occurrence: create an event, write its series, only count it, or drop it.
Verdict: TypeAlias = Literal["create", "write", "count", "drop"]


class Series(Generic[T]):
    """Similar events; `content` is what the caller needs to write them."""

    __slots__ = ("content", "count", "last_at", "written", "written_at")

    def __init__(self, content: T, now: float) -> None:
        self.content = content
        self.count = 1
        self.last_at = now
        #: The count last written, and when.
        self.written = 1
        self.written_at = now

    def mark_written(self, now: float) -> None:
        """Record that the current count is being written."""
        self.written = self.count
        self.written_at = now


class Allowance:
    """A token bucket per object."""

    def __init__(self) -> None:
        self._full_at: OrderedDict[Hashable, float] = OrderedDict()

    def take(self, subject: Hashable, now: float) -> bool:
        """Take a token; returns whether one was available."""
        full_at = max(self._full_at.pop(subject, -math.inf), now) + REFILL_SECONDS
        allowed = full_at - now <= BURST * REFILL_SECONDS
        self._full_at[subject] = full_at if allowed else full_at - REFILL_SECONDS
        if len(self._full_at) > CAPACITY:
            self._full_at.popitem(last=False)
        return allowed


class SeriesLog(Generic[T]):
    """All ongoing series."""

    def __init__(self) -> None:
        self._series: OrderedDict[Hashable, Series[T]] = OrderedDict()
        self._allowance = Allowance()

    def __len__(self) -> int:
        return len(self._series)

    def observe(self, subject: Hashable, key: Hashable, content: T, now: float) -> tuple[Verdict, Series[T]]:
        """Record an occurrence about `subject`; occurrences with the same `key` form a series."""
        series = self._series.get(key)
        if series is None:
            series = Series(content, now)
            if not self._allowance.take(subject, now):
                return "drop", series
            self._series[key] = series
            if len(self._series) > CAPACITY:
                # evict the least recently active series; its unwritten count is lost
                self._series.popitem(last=False)
            return "create", series
        self._series.move_to_end(key)
        series.count += 1
        series.last_at = now
        if series.written == 1 and self._allowance.take(subject, now):
            series.mark_written(now)
            return "write", series
        return "count", series

    def take_due(self, now: float, *, all_of_them: bool = False) -> Iterator[Series[T]]:
        """Yield the series whose count must be written now, and drop those that are over."""
        for key, series in list(self._series.items()):
            over = now - series.last_at >= SERIES_QUIET_SECONDS
            if over:
                del self._series[key]
            behind = series.count > series.written
            if behind and (over or all_of_them or now - series.written_at >= SERIES_REFRESH_SECONDS):
                series.mark_written(now)
                yield series
