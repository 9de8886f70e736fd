"""The queue as a pure state machine: which request runs next, when, and why.

Invariants
1. A request is in at most one of three places: *delayed* until a time, *ready*, or *running*.
2. A request is taken only when it is ready, and is running until `done`: one at a time per request.
3. An add while its request runs is remembered and takes effect when the run is done: it runs once more, not twice.
4. Adds of one request collapse: the earliest time, the highest priority and all causes apply, in one run.
5. Nothing is dropped except by `drop`: every add leads to a take of that request with the cause, once it is due.
6. After `retry` the request waits for its backoff. Another add shortens the wait to no less than the smaller of that
   backoff and ``hold`` seconds, so a failing request never runs hot, whatever events come in. It never shortens the
   wait below what the server asked for (``at_least``, at most `AT_LEAST_MAX` seconds).
7. A retry is taken with the causes of the run before it, so the original cause is known after any number of retries.
8. A throttled request runs at its time, whatever is added before.
9. Memory is bounded by the number of different requests.
10. The cost of statistics does not depend on the number of waiting requests.

`FairQueue` orders the ready requests. Time and randomness are passed in; time must not run backwards.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random  # noqa: TID251 - the type alone; chance is passed in

import msgspec

from steersman.aio import Backoff
from steersman.controller.causes import NO_CAUSES, Cause, Causes, Request
from steersman.controller.queue.fairness import FairQueue
from steersman.controller.targets import check_request

#: For objects present at the start and for resyncs.
LOW_PRIORITY = -100
#: Priorities range from the negative of this to this.
PRIORITY_LIMIT = 1000

#: Longest wait that a server can ask for, in seconds.
AT_LEAST_MAX = 300.0
#: Number of throttles above which those of requests that are not queued are dropped.
_THROTTLES = 4096


class QueueOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The delays and the order of a queue."""

    #: The delays after consecutive failures of one request, in seconds.
    initial: float = 0.02
    factor: float = 2.0
    maximum: float = 300.0
    jitter: float = 0.2
    #: The longest that backoff delays a request when a new event arrives for it.
    hold: float = 1.0
    #: Seconds after which a request of low priority gets its share ...
    patience: float = 5.0
    #: ... which is one of this many turns.
    share: int = 4

    def __post_init__(self) -> None:
        self.backoff()
        if not 0 <= self.hold <= self.maximum:
            raise ValueError(f"hold must be between 0 and maximum ({self.maximum:g} s) (got {self.hold:g})")

    def backoff(self) -> Backoff:
        """The backoff of one request."""
        return Backoff(initial=self.initial, factor=self.factor, maximum=self.maximum, jitter=self.jitter)


class Taken(msgspec.Struct, frozen=True):
    """A request to reconcile, its causes, and how many seconds it was ready before it was taken."""

    request: Request
    causes: Causes
    waited: float
    priority: int = 0


class QueueStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The content and the counters of a queue."""

    ready: int
    delayed: int
    running: int
    #: Ready requests by priority, highest first.
    by_priority: dict[int, int]
    #: Requests in backoff after a failure, without those that asked to run again.
    failing: int
    adds: int
    takes: int
    retries: int
    #: The requests that have been ready longest, with their seconds.
    oldest: tuple[tuple[Request, float], ...]
    #: The requests that have been running longest, with their seconds.
    longest_running: tuple[tuple[Request, float], ...]
    #: The total seconds that all running requests have been running.
    unfinished: float = 0.0
    #: Requests in backoff because they asked to run again.
    requeued: int = 0
    #: Requests delayed because they run hot.
    throttled: int = 0


class _Backoff:
    """The backoff of one request."""

    __slots__ = ("delays", "failures", "hold")

    def __init__(self, delays: Backoff) -> None:
        self.delays = delays
        #: Until this time, no add makes it run.
        self.hold = 0.0
        #: Consecutive failures; a run that only asked to run again does not count.
        self.failures = 0


class _Entry:
    """One waiting or running request."""

    __slots__ = ("causes", "delayed", "due", "priority", "ready_at", "running_priority", "started", "taken")

    def __init__(self) -> None:
        self.causes: Causes = NO_CAUSES
        #: The causes of the current run.
        self.taken: Causes = NO_CAUSES
        #: When it may run next; None if nothing was added since it was taken.
        self.due: float | None = None
        #: Whether it waits for that time.
        self.delayed = False
        self.priority = -PRIORITY_LIMIT
        self.ready_at = 0.0
        self.running_priority = 0
        #: When the current run began; None if it is not running.
        self.started: float | None = None


class QueueState:
    """The state, and every step of it."""

    def __init__(self, options: QueueOptions | None = None) -> None:
        self.options = options or QueueOptions()
        self._entries: dict[Request, _Entry] = {}
        self._line = FairQueue(patience=self.options.patience, share=self.options.share)
        # Heap entries whose time no longer matches their request are skipped; see `_delay`.
        self._timers: list[tuple[float, int, Request]] = []
        self._sequence = 0
        self._delayed = 0
        #: When each run began: as many entries as busy workers.
        self._running: dict[Request, float] = {}
        #: Until this time, nothing makes a hot request run.
        self._throttles: dict[Request, float] = {}
        #: How many of the backoffs follow a failure.
        self._failing = 0
        #: Requests that failed, or asked to run again, and have not succeeded since.
        self._backoffs: dict[Request, _Backoff] = {}
        self._adds = self._takes = self._retries = 0

    def add(self, request: Request, cause: Cause, *, now: float, priority: int = 0, after: float = 0.0) -> None:
        """Queue the request to run after ``after`` seconds. An invalid request changes nothing."""
        check_request(request)
        if not -PRIORITY_LIMIT <= priority <= PRIORITY_LIMIT:
            raise ValueError(f"priority must be between -{PRIORITY_LIMIT} and {PRIORITY_LIMIT} (got {priority})")
        if not 0 <= after < float("inf"):
            raise ValueError(f"{request} cannot run after {after} seconds; pass a finite, non-negative number")
        self._adds += 1
        entry = self._entries.get(request)
        if entry is None:
            entry = self._entries[request] = _Entry()
        entry.causes = entry.causes.plus(cause)
        entry.priority = max(entry.priority, priority)
        due = now + after
        if (backoff := self._backoffs.get(request)) is not None:
            due = max(due, backoff.hold)
        if (throttle := self._throttles.get(request)) is not None:
            due = max(due, throttle)
        if entry.started is not None:
            entry.due = due if entry.due is None else min(entry.due, due)
        elif request in self._line:
            self._line.push(request, entry.priority, now)
        else:
            self._schedule(request, entry, due, now)

    def advance(self, now: float) -> None:
        """Make the requests ready that are due."""
        while self._timers and self._timers[0][0] <= now:
            due, _, request = heapq.heappop(self._timers)
            if self._is_live(due, request):
                entry = self._entries[request]
                entry.delayed = False
                self._delayed -= 1
                entry.ready_at = now
                self._line.push(request, entry.priority, now)

    def take(self, now: float) -> Taken | None:
        """Begin the next run; None if no request is ready."""
        self.advance(now)
        request = self._line.pop(now)
        if request is None:
            return None
        self._throttles.pop(request, None)
        entry = self._entries[request]
        taken = Taken(request, entry.causes, now - entry.ready_at, entry.priority)
        entry.running_priority = entry.priority
        entry.taken = entry.causes
        entry.causes, entry.due, entry.priority = NO_CAUSES, None, -PRIORITY_LIMIT
        entry.started = now
        self._running[request] = now
        self._takes += 1
        return taken

    def done(self, request: Request, *, now: float) -> None:
        """End the run; requests added meanwhile enter now."""
        entry = self._entries.get(request)
        if entry is None or entry.started is None:
            raise ValueError(f"{request} is not running, so it cannot be done; call done() once for every take()")
        entry.started, entry.taken = None, NO_CAUSES
        del self._running[request]
        if entry.due is None:
            del self._entries[request]
        else:
            self._schedule(request, entry, entry.due, now)

    def retry(
        self, request: Request, cause: Cause, *, now: float, rng: Random, at_least: float = 0.0, failed: bool = True
    ) -> float:
        """Queue the request again after its backoff, which grows. Returns the seconds.

        The causes of the current run carry over. ``failed`` is false if the run itself asked for it.
        """
        self._retries += 1
        backoff = self._backoffs.get(request)
        if backoff is None:
            backoff = self._backoffs[request] = _Backoff(self.options.backoff())
        self._failing += failed - bool(backoff.failures)
        backoff.failures = backoff.failures + 1 if failed else 0
        # A server that asks for a day must not take an object out of control for a day.
        at_least = min(at_least, AT_LEAST_MAX)
        delay = max(backoff.delays.next_delay(rng), at_least)
        # Nothing shortens the time that the server asked for.
        backoff.hold = now + max(min(delay, self.options.hold), at_least)
        entry = self._entries.get(request)
        if entry is not None and entry.started is not None:
            priority = entry.running_priority
            if entry.due is not None:
                # An event during the run may end the backoff early, but not before the hold is over.
                entry.due = max(entry.due, backoff.hold)
            came, entry.causes = entry.causes, entry.taken.carried()
            self.add(request, cause, now=now, priority=priority, after=delay)
            entry.causes = entry.causes.joined(came)
        else:
            self.add(request, cause, now=now, after=delay)
        return delay

    def forget(self, request: Request) -> None:
        """Reset the backoff after a success."""
        backoff = self._backoffs.pop(request, None)
        if backoff is not None and backoff.failures:
            self._failing -= 1

    def throttle(self, request: Request, *, until: float) -> None:
        """Keep the request from running before a time, including what was added since its run began."""
        if len(self._throttles) > _THROTTLES:
            self._throttles = {request: when for request, when in self._throttles.items() if request in self._entries}
        self._throttles[request] = until
        entry = self._entries.get(request)
        if entry is not None and entry.started is not None and entry.due is not None:
            entry.due = max(entry.due, until)

    def drop(self, matches: Callable[[Request], bool]) -> None:
        """Remove requests, with their backoffs and throttles. Those that run end as they would, and do not run again."""
        for request in [request for request in self._entries if matches(request)]:
            entry = self._entries[request]
            if entry.started is not None:
                entry.causes, entry.due, entry.priority = NO_CAUSES, None, -PRIORITY_LIMIT
                continue
            self._line.remove(request)
            self._delayed -= entry.delayed
            del self._entries[request]
        for request in [request for request in self._backoffs if matches(request)]:
            self.forget(request)
        for request in [request for request in self._throttles if matches(request)]:
            del self._throttles[request]

    def runs(self, matches: Callable[[Request], bool]) -> bool:
        """Whether one of these requests is running."""
        return any(matches(request) for request in self._running)

    def failures(self, request: Request) -> int:
        """The number of consecutive failures of the request."""
        backoff = self._backoffs.get(request)
        return backoff.failures if backoff else 0

    def is_running(self, request: Request) -> bool:
        """Whether the request was taken and is not done."""
        entry = self._entries.get(request)
        return entry is not None and entry.started is not None

    def due(self, request: Request) -> float | None:
        """When the request may run next; None if it is not queued."""
        entry = self._entries.get(request)
        return entry.due if entry else None

    @property
    def ready(self) -> int:
        """The number of requests that could be taken now."""
        return len(self._line)

    @property
    def busy(self) -> bool:
        """Whether a request is ready, running or in backoff. One that only waits for its time does not count."""
        return bool(self._line) or bool(self._running) or bool(self._backoffs) or self._throttled() > 0

    @property
    def next_due(self) -> float | None:
        """When the next delayed request becomes ready."""
        while self._timers and not self._is_live(self._timers[0][0], self._timers[0][2]):
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def statistics(self, now: float, *, longest: int = 10) -> QueueStatistics:
        """The counters, and the requests that have waited or run longest. The cost does not grow with the queue."""
        waiting = [(request, now - self._entries[request].ready_at) for request in self._line.longest(longest)]
        running = [(request, now - started) for request, started in self._running.items()]
        return QueueStatistics(
            ready=len(self._line),
            delayed=self._delayed,
            running=len(self._running),
            by_priority=self._line.depths(),
            failing=self._failing,
            requeued=len(self._backoffs) - self._failing,
            throttled=self._throttled(),
            adds=self._adds,
            takes=self._takes,
            retries=self._retries,
            oldest=tuple(waiting),
            longest_running=tuple(heapq.nlargest(longest, running, key=lambda pair: pair[1])),
            unfinished=sum(seconds for _, seconds in running),
        )

    def _throttled(self) -> int:
        """The number of throttled requests that wait for their time; they are few."""
        return sum(1 for request in self._throttles if request in self._entries)

    def _schedule(self, request: Request, entry: _Entry, due: float, now: float) -> None:
        """Put a request that is neither ready nor running where its time says."""
        if entry.delayed:
            if entry.due is not None and entry.due <= due:
                return
            entry.delayed = False
            self._delayed -= 1
        entry.due = due
        if due <= now:
            entry.ready_at = now
            self._line.push(request, entry.priority, now)
        else:
            entry.delayed = True
            self._delay(request, due)

    def _delay(self, request: Request, due: float) -> None:
        self._delayed += 1
        self._sequence += 1
        heapq.heappush(self._timers, (due, self._sequence, request))
        if len(self._timers) > 2 * self._delayed + 64:
            # Adds with an earlier time left outdated timers behind.
            live = {r: (d, s, r) for d, s, r in self._timers if self._is_live(d, r)}
            self._timers = list(live.values())
            heapq.heapify(self._timers)

    def _is_live(self, due: float, request: Request) -> bool:
        entry = self._entries.get(request)
        return entry is not None and entry.delayed and entry.due == due
