"""Retries of events whose mapper failed. Pure: time and randomness are passed in.

Guarantees
- One entry per object: later events are merged into it. It keeps the first state that was not mapped, the latest state,
  and the last ``STATES_LIMIT`` between, so a success reaches every target.
- While an object exists, its mapper is retried with growing delays, up to every ``maximum`` seconds. No object delays
  another.
- A state on which the mapper fails does not block the object's other states.
- Memory is bounded: by the number of existing objects, and by ``VANISHED_LIMIT`` entries that hold only states of the
  past. The latter are dropped after ``VANISHED_ATTEMPTS``, or oldest first when too many wait.
"""

from __future__ import annotations

import heapq
from random import Random  # noqa: TID251 - the type alone; chance is passed in

from steersman.aio import Backoff
from steersman.cache import EventType, ObjectEvent, StoredView
from steersman.controller.sources.views import Remainder
from steersman.objects import Key

#: For deleted objects, no later event makes up for a lost one.
VANISHED_ATTEMPTS = 12
VANISHED_LIMIT = 10_000
#: How many states between the first and the latest are kept for one object.
STATES_LIMIT = 16


class _Entry:
    __slots__ = ("backoff", "due", "event")

    def __init__(self, event: ObjectEvent) -> None:
        self.event = event
        self.backoff = Backoff(initial=0.1, factor=2.0, maximum=300.0, jitter=0.2)
        self.due = 0.0


class MappingRetries:
    """The pending retries of one source."""

    def __init__(self) -> None:
        self._entries: dict[Key, _Entry] = {}
        #: Heap entries whose time no longer matches their object are skipped.
        self._timers: list[tuple[float, int, Key]] = []
        self._sequence = 0
        #: The deleted objects, oldest first.
        self._vanished: dict[Key, None] = {}
        self.given_up = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def merged(self, event: ObjectEvent) -> ObjectEvent:
        """The event merged with the pending states of its object."""
        entry = self._entries.get(event.key)
        return event if entry is None else merge(entry.event, event)

    def update(self, event: ObjectEvent) -> None:
        """Record the latest state of an object without retrying earlier."""
        entry = self._entries.get(event.key)
        if entry is not None:
            entry.event = merge(entry.event, event)
            self._note_vanished(event.key, entry)

    def failed(self, event: ObjectEvent, *, now: float, rng: Random) -> float | None:
        """Record a failure on a (merged) event. Returns the seconds until the retry; None if the event is dropped."""
        key = event.key
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(event)
        entry.event = event
        self._note_vanished(key, entry)
        if event.type == "vanished" and entry.backoff.attempts >= VANISHED_ATTEMPTS:
            self._give_up(key)
            return None
        delay = entry.backoff.next_delay(rng)
        entry.due = now + delay
        self._sequence += 1
        heapq.heappush(self._timers, (entry.due, self._sequence, key))
        if len(self._timers) > 2 * len(self._entries) + 64:
            self._timers = [timer for timer in self._timers if self._is_live(timer)]
            heapq.heapify(self._timers)
        return delay

    def succeeded(self, key: Key) -> bool:
        """Record a success. Returns whether the mapper had failed before."""
        self._vanished.pop(key, None)
        return self._entries.pop(key, None) is not None

    def due(self, now: float, *, limit: int = 128) -> list[ObjectEvent]:
        """Up to ``limit`` events to retry now. Report the result of each."""
        events: list[ObjectEvent] = []
        while len(events) < limit and self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)
            if self._is_live(timer):
                events.append(self._entries[timer[2]].event)
        return events

    @property
    def next_due(self) -> float | None:
        """When to retry next."""
        while self._timers and not self._is_live(self._timers[0]):
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def _is_live(self, timer: tuple[float, int, Key]) -> bool:
        entry = self._entries.get(timer[2])
        return entry is not None and entry.due == timer[0]

    def _note_vanished(self, key: Key, entry: _Entry) -> None:
        if entry.event.type != "vanished":
            self._vanished.pop(key, None)
        elif key not in self._vanished:
            self._vanished[key] = None
            if len(self._vanished) > VANISHED_LIMIT:
                self._give_up(next(iter(self._vanished)))

    def _give_up(self, key: Key) -> None:
        self.given_up += 1
        self.succeeded(key)


def merge(earlier: ObjectEvent, later: ObjectEvent) -> ObjectEvent:
    """Two events of one object as one: from the last mapped state to the current one."""
    old = earlier.old or (later.old if later.new is None else None)
    new = later.new
    seen = {(view.uid, view.resource_version) for view in (old, new) if view is not None}
    states = {(view.uid, view.resource_version): view for view in (*earlier.states, *later.states)}
    between = tuple([view for version, view in states.items() if version not in seen][-STATES_LIMIT:])
    if new is None:
        return ObjectEvent("vanished", old=old, passed=between)
    if old is None:
        initial = earlier.initial and (later.initial or later.resync)
        return ObjectEvent("appeared", new=new, passed=between, initial=initial)
    return ObjectEvent("changed", old=old, new=new, passed=between, resync=earlier.resync and later.resync)


def single(event: ObjectEvent, view: StoredView) -> ObjectEvent:
    """One state of an event, as an event of its own."""
    return ObjectEvent("appeared", new=view) if view is event.new else ObjectEvent("vanished", old=view)


def remainder(event: ObjectEvent, views: list[StoredView]) -> ObjectEvent:
    """The rest of an event after the mapper succeeded on all its states but these.

    If the new state is not among them, only past states are left.
    """
    new = views[-1] if views[-1] is event.new else None
    gone = views[:-1] if new is not None else views
    if new is not None and not gone:
        return ObjectEvent("appeared", new=new, initial=event.initial)
    happened: EventType = "changed" if new is not None else "vanished"
    whole = event.whole if isinstance(event, Remainder) else event
    return Remainder(happened, old=gone[0], new=new, passed=tuple(gone[1:]), resync=event.resync, whole=whole)
