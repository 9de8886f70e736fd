"""The queue as a pure state machine: which request runs next, when, and why.

Invariants
1. A request is in at most one of three places: *delayed* until a time, *ready*, or *running*.
2. A request is taken only when it is ready, and is running until `done`: one at a time per request.
3. What is added while its request runs is remembered and enters when the run is done: it runs once more, not twice.
4. Adds of one request collapse: the earliest time, the highest priority and all causes win, and the others are not run
   for again.
5. Nothing is dropped: after an add there is a take of that request with the cause, once its time has come.
6. After `retry` the request waits for its backoff. Another add shortens the wait to no less than the smaller of that
   backoff and ``hold`` seconds, so that a failing request never runs hot, whatever events come in.
7. A retry is taken with the causes of the run before it, so what began it is known however often it is tried.
8. The number of things held is bounded by the number of different requests.

The order among ready requests is that of `FairLine`. Time and chance are passed in; time must not run backwards.
"""

from __future__ import annotations

import heapq
from random import Random  # noqa: TID251 - the type alone; chance is passed in
from typing import Any

import msgspec

from steersman.aio import Backoff
from steersman.controller.causes import NO_CAUSES, Cause, Causes, Request
from steersman.controller.fair_line import FairLine

#: For what is there at the start and for looks that are due though nothing changed.
LOW_PRIORITY = -100
#: Priorities lie between this and its negative.
PRIORITY_LIMIT = 1000


class QueueOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a queue delays and orders."""

    #: The delays after the first, second, ... failure of one request, in seconds.
    initial: float = 0.02
    factor: float = 2.0
    maximum: float = 300.0
    jitter: float = 0.2
    #: The longest that a request in backoff is kept from running when something new happens to it.
    hold: float = 1.0
    #: After how many seconds a request of low priority gets its share ...
    patience: float = 5.0
    #: ... which is one of this many turns.
    share: int = 4

    def __post_init__(self) -> None:
        self.backoff()
        if not 0 <= self.hold <= self.maximum:
            raise ValueError(f"hold lies between 0 and maximum ({self.maximum:g} s); got {self.hold:g}")

    def backoff(self) -> Backoff:
        """The delays of one request."""
        return Backoff(initial=self.initial, factor=self.factor, maximum=self.maximum, jitter=self.jitter)


class Taken(msgspec.Struct, frozen=True):
    """A request to work on, why, and how many seconds it was ready before it was taken."""

    request: Request
    causes: Causes
    waited: float
    priority: int = 0


class QueueStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue holds and has done."""

    ready: int
    delayed: int
    running: int
    #: Ready requests by priority, the highest first.
    by_priority: dict[int, int]
    #: Requests in backoff after a failure; not those that asked to run again.
    failing: int
    adds: int
    takes: int
    retries: int
    #: Ready for the longest time, and how many seconds.
    oldest: tuple[tuple[Request, float], ...]
    #: Running for the longest time, and how many seconds.
    longest_running: tuple[tuple[Request, float], ...]
    #: For how many seconds all that run have been running, added up.
    unfinished: float = 0.0
    #: Requests in backoff because they asked to run again.
    requeued: int = 0


class _Backoff:
    """What is known of a request that is tried again."""

    __slots__ = ("delays", "failures", "hold")

    def __init__(self, delays: Backoff) -> None:
        self.delays = delays
        #: Before this time nothing makes it run.
        self.hold = 0.0
        #: Failures in a row; a run that only asked to run again is none.
        self.failures = 0


class _Entry:
    """What is known of one request that waits or runs."""

    __slots__ = ("causes", "delayed", "due", "priority", "ready_at", "running_priority", "started", "taken")

    def __init__(self) -> None:
        self.causes: Causes = NO_CAUSES
        #: Why the present run happens.
        self.taken: Causes = NO_CAUSES
        #: When it may run next; None if nothing was added since it was taken.
        self.due: float | None = None
        #: Whether it waits for that time.
        self.delayed = False
        self.priority = -PRIORITY_LIMIT
        self.ready_at = 0.0
        self.running_priority = 0
        #: When the present run began; None if it does not run.
        self.started: float | None = None


class QueueState:
    """The state, and every step of it."""

    def __init__(self, options: QueueOptions | None = None) -> None:
        self.options = options or QueueOptions()
        self._entries: dict[Request, _Entry] = {}
        self._line = FairLine(patience=self.options.patience, share=self.options.share)
        # Entries of the heap whose time is no longer that of their request are skipped; see `_delay`.
        self._timers: list[tuple[float, int, Request]] = []
        self._sequence = 0
        self._delayed = 0
        self._running = 0
        #: Requests that failed, or asked to run again, and did not end well since.
        self._backoffs: dict[Request, _Backoff] = {}
        self._adds = self._takes = self._retries = 0

    def add(self, request: Request, cause: Cause, *, now: float, priority: int = 0, after: float = 0.0) -> None:
        """Let the request run, not before ``after`` seconds from now."""
        if not -PRIORITY_LIMIT <= priority <= PRIORITY_LIMIT:
            raise ValueError(f"a priority lies between -{PRIORITY_LIMIT} and {PRIORITY_LIMIT}; got {priority}")
        if not 0 <= after < float("inf"):
            raise ValueError(f"{request} cannot run after {after} seconds; give a finite number, 0 or more")
        self._adds += 1
        entry = self._entries.get(request)
        if entry is None:
            entry = self._entries[request] = _Entry()
        entry.causes = entry.causes.plus(cause)
        entry.priority = max(entry.priority, priority)
        due = now + after
        if (backoff := self._backoffs.get(request)) is not None:
            due = max(due, backoff.hold)
        if entry.started is not None:
            entry.due = due if entry.due is None else min(entry.due, due)
        elif request in self._line:
            self._line.push(request, entry.priority, now)
        else:
            self._schedule(request, entry, due, now)

    def advance(self, now: float) -> None:
        """Make ready whose time has come."""
        while self._timers and self._timers[0][0] <= now:
            due, _, request = heapq.heappop(self._timers)
            if self._is_live(due, request):
                entry = self._entries[request]
                entry.delayed = False
                self._delayed -= 1
                entry.ready_at = now
                self._line.push(request, entry.priority, now)

    def take(self, now: float) -> Taken | None:
        """Begin the next run, or None if nothing is ready."""
        self.advance(now)
        request = self._line.pop(now)
        if request is None:
            return None
        entry = self._entries[request]
        taken = Taken(request, entry.causes, now - entry.ready_at, entry.priority)
        entry.running_priority = entry.priority
        entry.taken = entry.causes
        entry.causes, entry.due, entry.priority = NO_CAUSES, None, -PRIORITY_LIMIT
        entry.started = now
        self._running += 1
        self._takes += 1
        return taken

    def done(self, request: Request, *, now: float) -> None:
        """End the run; what was added meanwhile enters now."""
        entry = self._entries.get(request)
        if entry is None or entry.started is None:
            raise ValueError(f"{request} is not running, so it cannot be done; call done once for every take")
        entry.started, entry.taken = None, NO_CAUSES
        self._running -= 1
        if entry.due is None:
            del self._entries[request]
        else:
            self._schedule(request, entry, entry.due, now)

    def retry(
        self, request: Request, cause: Cause, *, now: float, rng: Random, at_least: float = 0.0, failed: bool = True
    ) -> float:
        """Let the request run again after its backoff, which grows; return the seconds.

        The causes of the present run go on to the next. ``failed`` is false if the run itself asked for it.
        """
        self._retries += 1
        backoff = self._backoffs.get(request)
        if backoff is None:
            backoff = self._backoffs[request] = _Backoff(self.options.backoff())
        backoff.failures = backoff.failures + 1 if failed else 0
        delay = max(backoff.delays.next_delay(rng), at_least)
        backoff.hold = now + min(delay, self.options.hold)
        entry = self._entries.get(request)
        if entry is not None and entry.started is not None:
            priority = entry.running_priority
            if entry.due is not None:
                # What came during the run may end the backoff early, but not before the hold is over.
                entry.due = max(entry.due, backoff.hold)
            came, entry.causes = entry.causes, entry.taken.carried()
            self.add(request, cause, now=now, priority=priority, after=delay)
            entry.causes = entry.causes.joined(came)
        else:
            self.add(request, cause, now=now, after=delay)
        return delay

    def forget(self, request: Request) -> None:
        """The request succeeded: its next failure backs off from the start."""
        self._backoffs.pop(request, None)

    def failures(self, request: Request) -> int:
        """How often the request failed in a row."""
        backoff = self._backoffs.get(request)
        return backoff.failures if backoff else 0

    def is_running(self, request: Request) -> bool:
        """Whether the request was taken and is not done."""
        entry = self._entries.get(request)
        return entry is not None and entry.started is not None

    def due(self, request: Request) -> float | None:
        """When the request may run next, or None if nothing asks for it."""
        entry = self._entries.get(request)
        return entry.due if entry else None

    @property
    def ready(self) -> int:
        """How many could be taken now."""
        return len(self._line)

    @property
    def busy(self) -> bool:
        """Whether a request is ready, runs or is tried again; one that only waits for its time does not count."""
        return bool(self._line) or self._running > 0 or bool(self._backoffs)

    @property
    def next_due(self) -> float | None:
        """When the next delayed request gets ready."""
        while self._timers and not self._is_live(self._timers[0][0], self._timers[0][2]):
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def statistics(self, now: float, *, longest: int = 10) -> QueueStatistics:
        """Count, and name those that wait and run for the longest time."""
        waiting = [(request, now - self._entries[request].ready_at) for request in self._line.waiting()]
        running = [(request, now - e.started) for request, e in self._entries.items() if e.started is not None]
        failing = sum(1 for backoff in self._backoffs.values() if backoff.failures)
        return QueueStatistics(
            ready=len(self._line),
            delayed=self._delayed,
            running=self._running,
            by_priority=self._line.depths(),
            failing=failing,
            requeued=len(self._backoffs) - failing,
            adds=self._adds,
            takes=self._takes,
            retries=self._retries,
            oldest=tuple(heapq.nlargest(longest, waiting, key=_seconds)),
            longest_running=tuple(heapq.nlargest(longest, running, key=_seconds)),
            unfinished=sum(seconds for _, seconds in running),
        )

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
            # Adds that came earlier than what was waiting left their old times behind.
            live = {r: (d, s, r) for d, s, r in self._timers if self._is_live(d, r)}
            self._timers = list(live.values())
            heapq.heapify(self._timers)

    def _is_live(self, due: float, request: Request) -> bool:
        entry = self._entries.get(request)
        return entry is not None and entry.delayed and entry.due == due


def _seconds(pair: tuple[Any, float]) -> float:
    return pair[1]
