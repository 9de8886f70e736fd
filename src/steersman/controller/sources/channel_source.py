"""Events from outside the cluster: processes, webhooks of other systems, your own timers.

Guarantees
- `send` never waits and never loses an event, even before the controller runs and between two of its terms. The number
  of held events is bounded by the number of different requests.
- Debounce, per request: the first event goes out at once. Those that follow within ``debounce`` seconds go out together
  at the end of that time, and so on. So there is at most one every ``debounce`` seconds, and the last event always goes
  out.
- With ``max_delay``, a burst becomes one request: it goes out after ``debounce`` seconds without another event, and at
  most ``max_delay`` seconds after the first event of the burst.
- The request itself always goes out. Its different causes reach the reconciler up to the limit of `Causes`; the rest
  are counted.
- The reconcile that an event causes links to the span in which the event was sent.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
from collections.abc import Callable

from steersman.controller.causes import NO_CAUSES, Cause, Causes, Request
from steersman.controller.sources.source import Emit, SourceStatistics
from steersman.controller.targets import Target, as_request
from steersman.telemetry import current_traceparent

_log = logging.getLogger("steersman.controller")


class Debouncer:
    """Decides which requests may go out now. Pure: time is passed in."""

    def __init__(self, seconds: float) -> None:
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"debounce must be a non-negative number of seconds (got {seconds})")
        self._seconds = seconds
        #: Requests that may go out, and those that must wait.
        self._free: dict[Request, Causes] = {}
        self._held: dict[Request, Causes] = {}
        #: When each request may go out again; requests without recent events are absent.
        self._timers: list[tuple[float, Request]] = []
        self._closed: set[Request] = set()

    def __len__(self) -> int:
        return len(self._free) + len(self._held)

    def put(self, request: Request, cause: Cause, now: float | None = None) -> None:  # noqa: ARG002 - see Batcher
        """Hold an event until `release` returns it."""
        place = self._held if request in self._closed else self._free
        place[request] = place.get(request, NO_CAUSES).plus(cause)

    def release(self, now: float) -> list[tuple[Request, Causes]]:
        """The requests that may go out now."""
        while self._timers and self._timers[0][0] <= now:
            _, request = heapq.heappop(self._timers)
            self._closed.discard(request)
            if (held := self._held.pop(request, None)) is not None:
                self._free[request] = held
        out, self._free = list(self._free.items()), {}
        if self._seconds:
            for request, _ in out:
                self._closed.add(request)
                heapq.heappush(self._timers, (now + self._seconds, request))
        return out

    def next_release(self, now: float) -> float | None:
        """When to call `release` again if no event arrives."""
        if self._free:
            return now
        return self._timers[0][0] if self._held else None


class Batcher:
    """Collects the events of a request until it is quiet, or has waited for the maximum delay. Pure."""

    def __init__(self, quiet: float, max_delay: float) -> None:
        if not 0 < quiet <= max_delay < float("inf"):
            raise ValueError(
                f"max_delay needs debounce > 0 and debounce <= max_delay (got debounce={quiet}, max_delay={max_delay})"
            )
        self._quiet = quiet
        self._max_delay = max_delay
        self._held: dict[Request, Causes] = {}
        #: When each held request goes out, and its latest time.
        self._due: dict[Request, tuple[float, float]] = {}
        #: One for each held request, not later than it is due: another event moves only `_due`.
        self._timers: list[tuple[float, Request]] = []

    def __len__(self) -> int:
        return len(self._held)

    def put(self, request: Request, cause: Cause, now: float | None = None) -> None:
        """Hold an event until `release` returns it. Without a time, it may go out at once."""
        self._held[request] = self._held.get(request, NO_CAUSES).plus(cause)
        begun = self._due.get(request)
        latest = begun[1] if begun else -math.inf if now is None else now + self._max_delay
        due = latest if now is None else min(now + self._quiet, latest)
        self._due[request] = (due, latest)
        if begun is None:
            heapq.heappush(self._timers, (due, request))

    def release(self, now: float) -> list[tuple[Request, Causes]]:
        """The requests that may go out now."""
        out: list[tuple[Request, Causes]] = []
        while self._timers and self._timers[0][0] <= now:
            _, request = heapq.heappop(self._timers)
            due, _ = self._due[request]
            if due > now:
                heapq.heappush(self._timers, (due, request))
                continue
            del self._due[request]
            out.append((request, self._held.pop(request)))
        return out

    def next_release(self, now: float) -> float | None:  # noqa: ARG002 - as of a Debouncer
        """When to call `release` again if no event arrives."""
        return self._timers[0][0] if self._timers else None


class ChannelSource:
    """A source that the program feeds: ``processes.send("default/web", "exited with 1")``.

    A blueprint's sources and its reconciler are made once and serve every term in which this program leads. A subclass that
    keeps external state resets it at the beginning of `run`, before it calls ``super().run``.

    ``debounce`` limits how often one object is reconciled: at once, then at most every ``debounce`` seconds. With
    ``max_delay``, the source waits until no event came for ``debounce`` seconds, at most ``max_delay`` seconds, and
    sends one request.
    """

    def __init__(self, name: str, *, debounce: float = 0.0, max_delay: float | None = None) -> None:
        if not name:
            raise ValueError("a channel source needs a name, which identifies its events in logs and causes")
        self.name = name
        self._debouncer = Debouncer(debounce) if max_delay is None else Batcher(debounce, max_delay)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._events = self._emitted = self._failures = 0
        self._last_failure = ""

    def send(self, target: Target, note: str = "") -> None:
        """Reconcile an object; ``note`` says why. Call it on the loop's own thread, or use `send_threadsafe`."""
        self._put(as_request(target), note, current_traceparent())

    def send_threadsafe(self, target: Target, note: str = "") -> None:
        """Like `send`, from any thread, once the controller runs."""
        if self._loop is None:
            raise RuntimeError(
                f"channel source {self.name}: its controller is not running yet; send from the loop's thread"
            )
        # Read the span here: it belongs to the calling thread.
        self._loop.call_soon_threadsafe(self._put, as_request(target), note, current_traceparent())

    def _put(self, request: Request, note: str, trace: str) -> None:
        self._events += 1
        cause = Cause(what="external", note=f"{self.name}: {note}" if note else self.name, trace=trace)
        # Events sent before the controller runs have already waited.
        self._debouncer.put(request, cause, self._loop.time() if self._loop is not None else None)
        self._news.set()

    async def run(self, emit: Emit, started: Callable[[], None]) -> None:
        """Emit until cancelled."""
        loop = self._loop = asyncio.get_running_loop()
        self._flush(emit, loop.time())
        started()
        try:
            while True:
                self._news.clear()
                due = self._debouncer.next_release(loop.time())
                try:
                    async with asyncio.timeout_at(due):
                        await self._news.wait()
                except TimeoutError:
                    pass
                self._flush(emit, loop.time())
        finally:
            self._loop = None

    def statistics(self) -> SourceStatistics:
        """The counters of this source."""
        return SourceStatistics(
            name=self.name,
            started=self._loop is not None,
            events=self._events,
            filtered=0,
            emitted=self._emitted,
            failures=self._failures,
            last_failure=self._last_failure,
            pending=len(self._debouncer),
        )

    def _flush(self, emit: Emit, now: float) -> None:
        for request, causes in self._debouncer.release(now):
            try:
                for cause in causes:
                    emit(request, cause, 0)
            except (TypeError, ValueError) as error:
                # The sender named an object that cannot exist.
                self._failures += 1
                self._last_failure = f"{request}: {error}"
                _log.error("source %s: rejected a request: %s", self.name, self._last_failure)
            else:
                self._emitted += 1
