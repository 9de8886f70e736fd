"""What a controller remembers for the person on call: totals, and of each key the last run.

Guarantees
- Bounded: the keys that ran last are kept, and of those that ran earlier the ones that failed stay longer.
- Nothing here holds an object or a traceback: an error is kept as words.
"""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict
from datetime import datetime
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from steersman.controller.causes import Causes, Request
from steersman.controller.queue_state import QueueStatistics
from steersman.controller.sources import SourceStatistics

#: The result of a run, in the words that dashboards of controllers know, and two more.
Label: TypeAlias = Literal["success", "requeue", "requeue_after", "error", "conflict", "terminal_error"]

#: The results of runs that failed.
FAILED: frozenset[Label] = frozenset({"error", "terminal_error"})

KEY_LIMIT = 4096
#: Keys whose last run failed that are shown beside the newest.
FAILING_LIMIT = 1000

#: Where a controller's queue has a key: "idle" means that nothing asks for it.
KeyState: TypeAlias = Literal["running", "ready", "delayed", "idle"]


class Place(NamedTuple):
    """Where the queue has a key, and in how many seconds it runs: 0 if it runs or is ready, None if nothing asks for it."""

    state: KeyState
    next_run: float | None


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
    #: It failed because it took too long.
    timed_out: bool = False
    #: It failed with an exception that points to a mistake in the program, such as a TypeError.
    crashed: bool = False
    #: The span of the run, in W3C's form (traceparent); empty if nobody traces.
    trace: str = ""
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
    #: The last runs, the newest first, and all those that failed.
    keys: tuple[KeyRecord, ...]
    #: When the controller was made; what it counts, it counts from then on.
    since: datetime | None = None
    #: What it reconciles: ``apps/v1 Deployment``; empty if nobody said.
    kind: str = ""


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
        request = record.request
        before = self.get(request)
        if before is not None and before.last_error and not record.last_error:
            record = msgspec.structs.replace(record, last_error=before.last_error, last_error_at=before.last_error_at)
        self.results[record.result] += 1
        self.busy_seconds += record.seconds
        failed = record.result in FAILED
        place, other = (self._bad, self._good) if failed else (self._good, self._bad)
        if before is not None:
            other.pop(request, None)
        place[request] = record
        place.move_to_end(request)
        if len(place) > self._limit // 2:
            place.popitem(last=False)
        return record

    def newest(self, keys: int) -> list[KeyRecord]:
        """The last runs of so many keys, the newest first, and of every key that fails, up to `FAILING_LIMIT`; none of 0."""
        if keys <= 0:
            return []
        # Both are in the order of time already.
        good, bad = reversed(self._good.values()), reversed(self._bad.values())
        shown = list(islice(heapq.merge(good, bad, key=_finished, reverse=True), keys))
        there = {record.request for record in shown}
        older = (record for record in reversed(self._bad.values()) if record.request not in there)
        failing = len(self._bad.keys() & there)
        return [*shown, *islice(older, max(0, FAILING_LIMIT - failing))]


def _finished(record: KeyRecord) -> datetime:
    return record.finished
