"""What a controller remembers for the person on call: totals, and of each key the last run.

Guarantees
- Bounded: the keys that ran last are kept, and of those that ran earlier the ones that failed stay longer.
- Nothing here holds an object or a traceback: an error is kept as words.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from steersman.controller.causes import Causes, Request
from steersman.controller.queue_state import QueueStatistics
from steersman.controller.sources import SourceStatistics

#: The result of a run, in the words that dashboards of controllers know, and two more.
Label: TypeAlias = Literal["success", "requeue", "requeue_after", "error", "conflict", "terminal_error"]

KEY_LIMIT = 4096


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The last run of one request."""

    request: Request
    reconcile_id: str
    causes: Causes
    result: Label
    finished: datetime
    seconds: float
    #: How long it was ready before it ran.
    waited: float
    writes: int
    #: Failures in a row, this run included.
    failures: int
    #: What failed last, and when; kept after a success.
    last_error: str = ""
    last_error_at: datetime | None = None
    #: In how many seconds it runs again; None if nothing asks for it, 0 if it is ready or runs.
    next_run: float | None = None


class ControllerStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """All that a page about a controller shows."""

    name: str
    concurrency: int
    #: Whether it reconciles: all sources have told what was there at the start.
    working: bool
    active: int
    results: dict[Label, int]
    timeouts: int
    #: Causes that were echoes of one's own writes and made no run.
    echoes: int
    busy_seconds: float
    queue: QueueStatistics
    sources: tuple[SourceStatistics, ...]
    #: The last runs, the newest first.
    keys: tuple[KeyRecord, ...]


class Records:
    """Counts and remembers runs."""

    def __init__(self, limit: int = KEY_LIMIT) -> None:
        self._limit = limit
        self._good: OrderedDict[Request, KeyRecord] = OrderedDict()
        self._bad: OrderedDict[Request, KeyRecord] = OrderedDict()
        self.results: Counter[Label] = Counter()
        self.timeouts = 0
        self.busy_seconds = 0.0

    def get(self, request: Request) -> KeyRecord | None:
        """The last run of a request, if it is remembered."""
        return self._good.get(request) or self._bad.get(request)

    def add(self, record: KeyRecord) -> KeyRecord:
        """Remember a run; the record with the last error from before, if this run had none."""
        before = self.get(record.request)
        if before is not None and not record.last_error:
            record = msgspec.structs.replace(record, last_error=before.last_error, last_error_at=before.last_error_at)
        self.results[record.result] += 1
        self.busy_seconds += record.seconds
        self._good.pop(record.request, None)
        self._bad.pop(record.request, None)
        place = self._bad if record.result in {"error", "terminal_error"} else self._good
        place[record.request] = record
        while len(place) > self._limit // 2:
            place.popitem(last=False)
        return record

    def newest(self) -> list[KeyRecord]:
        """The remembered runs, the newest first."""
        return sorted((*self._good.values(), *self._bad.values()), key=lambda each: each.finished, reverse=True)
