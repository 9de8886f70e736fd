"""Records for the on-call engineer: totals, and the last reconcile of each key.

Guarantees
- Bounded: the most recent keys are kept; among older ones, those that failed stay longer.
- No object and no traceback is held: an error is kept as text.
"""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict
from collections.abc import Callable
from datetime import datetime
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from steersman.controller.causes import Causes, Request
from steersman.controller.queue.state import QueueStatistics
from steersman.controller.sources.source import SourceStatistics

#: The result of a reconcile, in the terms of controller dashboards, and two more.
ResultLabel: TypeAlias = Literal["success", "requeue", "requeue_after", "error", "conflict", "terminal_error"]

#: The results of failed reconciles.
FAILURES: frozenset[ResultLabel] = frozenset({"error", "terminal_error"})

KEY_LIMIT = 4096
#: Number of failing keys shown beside the newest keys.
FAILING_LIMIT = 1000

#: The state of a key in a controller's queue: "idle" means not queued.
KeyState: TypeAlias = Literal["running", "ready", "delayed", "idle"]


class QueuePlace(NamedTuple):
    """The state of a key, and the seconds until it runs: 0 if it is running or ready, None if it is not queued."""

    state: KeyState
    next_run: float | None


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The last reconcile of one request."""

    request: Request
    reconcile_id: str
    causes: Causes
    result: ResultLabel
    finished: datetime
    seconds: float
    #: How long it was ready before it ran.
    waited: float
    writes: int
    #: Consecutive failures, including this reconcile.
    failures: int
    #: The last error and its time; kept after a success.
    last_error: str = ""
    last_error_at: datetime | None = None
    #: It failed because it exceeded its timeout.
    timed_out: bool = False
    #: It failed with an exception that suggests a bug in the program, such as a TypeError.
    crashed: bool = False
    #: The span of the reconcile, as a W3C traceparent; empty without tracing.
    trace: str = ""
    #: Why the key is throttled: every reconcile writes, and these fields keep changing; empty otherwise.
    loop: str = ""
    #: Seconds until it runs again; None if it is not queued, 0 if it is ready or running.
    next_run: float | None = None


class ControllerStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of a controller."""

    name: str
    concurrency: int
    #: Whether it is reconciling: all sources have delivered the objects present at the start.
    working: bool
    active: int
    results: dict[ResultLabel, int]
    timeouts: int
    #: Causes that were echoes of own writes and triggered no reconcile.
    echoes: int
    busy_seconds: float
    queue: QueueStatistics
    sources: tuple[SourceStatistics, ...]
    #: The last reconciles, newest first, and all that failed.
    keys: tuple[KeyRecord, ...]
    #: When the controller was made; its counters start then.
    since: datetime | None = None
    #: Keys that are throttled because every reconcile of them writes.
    looping: int = 0
    #: What it reconciles: ``apps/v1 Deployment``; empty if unknown.
    kind: str = ""


class Records:
    """Counts and remembers reconciles."""

    def __init__(self, limit: int = KEY_LIMIT) -> None:
        self._limit = limit
        self._good: OrderedDict[Request, KeyRecord] = OrderedDict()
        self._bad: OrderedDict[Request, KeyRecord] = OrderedDict()
        self.results: Counter[ResultLabel] = Counter()
        self.timeouts = 0
        self.busy_seconds = 0.0

    def get(self, request: Request) -> KeyRecord | None:
        """The last reconcile of a request; None if it is not remembered."""
        return self._good.get(request) or self._bad.get(request)

    def add(self, record: KeyRecord) -> KeyRecord:
        """Remember a reconcile. Returns the record with the previous error if this reconcile had none."""
        request = record.request
        before = self.get(request)
        if before is not None and before.last_error and not record.last_error:
            record = msgspec.structs.replace(record, last_error=before.last_error, last_error_at=before.last_error_at)
        self.results[record.result] += 1
        self.busy_seconds += record.seconds
        self.timeouts += record.timed_out
        failed = record.result in FAILURES
        place, other = (self._bad, self._good) if failed else (self._good, self._bad)
        if before is not None:
            other.pop(request, None)
        place[request] = record
        place.move_to_end(request)
        if len(place) > self._limit // 2:
            place.popitem(last=False)
        return record

    def drop(self, matches: Callable[[Request], bool]) -> None:
        """Forget the reconciles of some requests. The counts stay."""
        for records in (self._good, self._bad):
            for request in [each for each in records if matches(each)]:
                del records[request]

    def newest(self, keys: int) -> list[KeyRecord]:
        """The last reconciles of ``keys`` keys, newest first, and of up to `FAILING_LIMIT` failing keys; none if 0."""
        if keys <= 0:
            return []
        # Both are already ordered by time.
        good, bad = reversed(self._good.values()), reversed(self._bad.values())
        shown = list(islice(heapq.merge(good, bad, key=lambda record: record.finished, reverse=True), keys))
        there = {record.request for record in shown}
        older = (record for record in reversed(self._bad.values()) if record.request not in there)
        failing = len(self._bad.keys() & there)
        return [*shown, *islice(older, max(0, FAILING_LIMIT - failing))]
