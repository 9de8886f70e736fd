"""Events of the world outside: processes, webhooks of other systems, timers of one's own.

Guarantees
- `send` never waits and never loses an event, also before the controller runs and between two runs of it: what is held
  is bounded by the number of different requests.
- Debounce, per request: the first event goes out at once, those that follow within ``debounce`` seconds go out together
  at the end of that time, and so on: at most one every ``debounce`` seconds, and the last one is never swallowed.
- Nothing overflows: different causes of a request reach the reconciler up to the limit of `Causes`, and what is beyond it
  or says the same again is merged into those; the request itself always goes out.
- An event that is sent inside of a span is linked to by the reconcile that it causes.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

from steersman.controller.causes import NO_CAUSES, Cause, Causes, Request
from steersman.controller.mappers import Target, as_request
from steersman.controller.sources import Emit, SourceStatistics
from steersman.telemetry import current_traceparent


class Debouncer:
    """The pure part: which requests may go out now. Time is passed in."""

    def __init__(self, seconds: float) -> None:
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"debounce is a number of seconds, 0 or more; got {seconds}")
        self._seconds = seconds
        #: What may go out, and what must wait for its request's time.
        self._free: dict[Request, Causes] = {}
        self._held: dict[Request, Causes] = {}
        #: When each request may send again; those that sent nothing lately are not here.
        self._timers: list[tuple[float, Request]] = []
        self._closed: set[Request] = set()

    def __len__(self) -> int:
        return len(self._free) + len(self._held)

    def put(self, request: Request, cause: Cause) -> None:
        """Hold an event until `release` lets it out."""
        place = self._held if request in self._closed else self._free
        place[request] = place.get(request, NO_CAUSES).plus(cause)

    def release(self, now: float) -> list[tuple[Request, Causes]]:
        """What may go out now."""
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
        """When to call `release` again, if nothing else comes."""
        if self._free:
            return now
        return self._timers[0][0] if self._held else None


class ChannelSource:
    """A source that a program feeds: ``processes.send("default/web", "exited with 1")``.

    A plan's sources and its reconciler are made once and serve every term in which this program leads: a subclass that
    keeps something of the world outside resets it at the beginning of `run`, before it calls ``super().run``.
    """

    def __init__(self, name: str, *, debounce: float = 0.0) -> None:
        if not name:
            raise ValueError("a channel source needs a name, by which its events are known in logs and causes")
        self.name = name
        self._debouncer = Debouncer(debounce)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._events = self._emitted = 0

    def send(self, target: Target, note: str = "") -> None:
        """Let an object be reconciled; ``note`` says why. From the loop's own thread, see `send_threadsafe`."""
        self._put(as_request(target), note, current_traceparent())

    def send_threadsafe(self, target: Target, note: str = "") -> None:
        """The same from any thread, once the controller runs."""
        if self._loop is None:
            raise RuntimeError(
                f"channel source {self.name}: its controller does not run yet; send from the loop's thread"
            )
        # Read here: the span of the other thread is not under way in the loop's.
        self._loop.call_soon_threadsafe(self._put, as_request(target), note, current_traceparent())

    def _put(self, request: Request, note: str, trace: str) -> None:
        self._events += 1
        cause = Cause(what="external", note=f"{self.name}: {note}" if note else self.name, trace=trace)
        self._debouncer.put(request, cause)
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
        """What came through."""
        return SourceStatistics(
            name=self.name,
            started=self._loop is not None,
            events=self._events,
            filtered=0,
            emitted=self._emitted,
            failures=0,
        )

    def _flush(self, emit: Emit, now: float) -> None:
        for request, causes in self._debouncer.release(now):
            self._emitted += 1
            for cause in causes:
                emit(request, cause, 0)
