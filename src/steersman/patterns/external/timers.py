"""When the next call of each object is due. Pure.

Guarantees
- An object has at most one timer; setting another replaces it.
- Of timers for the same moment, the one that was set first comes first.
- Memory is bounded by the number of objects.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from steersman.patterns.external.entries import Entry


class Timers:
    """The timers of the entries. ``Entry.timer_at`` is the time of an entry's timer."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = entries
        #: Time, number and uid. A timer that its entry has replaced is skipped.
        self._heap: list[tuple[float, int, str]] = []
        self._sequence = 0

    def __len__(self) -> int:
        """How many timers are kept, with those that were replaced."""
        return len(self._heap)

    def set(self, entry: Entry, when: float | None, now: float) -> None:
        """Set or remove the timer of an entry. A timer that is due keeps its turn."""
        timer = entry.timer_at
        if when == timer or (when is not None and timer is not None and timer <= now >= when):
            return
        entry.timer_at = when
        if when is None:
            return
        self._sequence += 1
        heapq.heappush(self._heap, (when, self._sequence, entry.key.uid))
        if len(self._heap) > 2 * len(self._entries) + 64:
            self._heap = [timer for timer in self._heap if self._owner(timer) is not None]
            heapq.heapify(self._heap)

    def take(self, now: float) -> Entry | None:
        """Remove the first timer that is due, and return its entry; None if no timer is due."""
        due = self.next_due()
        if due is None or due > now:
            return None
        entry = self._owner(heapq.heappop(self._heap))
        assert entry is not None, "next_due has skipped replaced timers"
        entry.timer_at = None
        return entry

    def next_due(self) -> float | None:
        """The time of the first timer; None without timers."""
        while self._heap and self._owner(self._heap[0]) is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _owner(self, timer: tuple[float, int, str]) -> Entry | None:
        """The entry of a timer; None if the entry is gone or has another timer."""
        entry = self._entries.get(timer[2])
        return entry if entry is not None and entry.timer_at == timer[0] else None
