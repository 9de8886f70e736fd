"""Events whose mapper failed, kept until it answers. Pure: time and chance are passed in.

Guarantees
- One entry an object: what comes after a failure is merged into it. The old state is the one of which nobody was told,
  the new one is the latest, and the last ``STATES_LIMIT`` between are kept too, so an answer tells everybody who has to
  know.
- An object that is there is asked about again and again, each time later, up to every ``maximum`` seconds. One object
  never keeps another from its turn.
- A state on which the mapper fails keeps none of the object's other states from being told.
- Bounded: by the number of objects that are there, and by ``VANISHED_LIMIT`` of those that are gone, or of which only
  states are left that are gone. These are given up after ``VANISHED_ATTEMPTS``, or when too many of them wait, the oldest
  first.
"""

from __future__ import annotations

import heapq
from random import Random  # noqa: TID251 - the type alone; chance is passed in
from typing import Any

from steersman.aio import Backoff
from steersman.controller.causes import Event
from steersman.controller.events import MergedEvent, ObjectEvent, View
from steersman.objects import Key

#: Of objects that are gone, no later event comes that would make good what was not told.
VANISHED_ATTEMPTS = 12
VANISHED_LIMIT = 10_000
#: States between the first and the latest that one object keeps.
STATES_LIMIT = 16


class _Entry:
    __slots__ = ("backoff", "due", "event")

    def __init__(self, event: ObjectEvent) -> None:
        self.event = event
        self.backoff = Backoff(initial=0.1, factor=2.0, maximum=300.0, jitter=0.2)
        self.due = 0.0


class MappingRetries:
    """What one source has yet to tell."""

    def __init__(self) -> None:
        self._entries: dict[Key, _Entry] = {}
        #: Entries of the heap whose time is no longer that of their object are skipped.
        self._timers: list[tuple[float, int, Key]] = []
        self._sequence = 0
        #: The objects that are gone, the oldest first.
        self._vanished: dict[Key, None] = {}
        self.given_up = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def merged(self, event: ObjectEvent) -> ObjectEvent:
        """The event together with what was not told of its object before."""
        entry = self._entries.get(event.key)
        return event if entry is None else merge(entry.event, event)

    def update(self, event: ObjectEvent) -> None:
        """The object went on: remember the latest state, without asking earlier than planned."""
        entry = self._entries.get(event.key)
        if entry is not None:
            entry.event = merge(entry.event, event)
            self._note_vanished(event.key, entry)

    def failed(self, event: ObjectEvent, *, now: float, rng: Random) -> float | None:
        """The mapper failed on the (merged) event: the seconds until it is asked again; None if it is given up."""
        key = event.key
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(event)
        entry.event = event
        self._note_vanished(key, entry)
        if event.event == "vanished" and entry.backoff.attempts >= VANISHED_ATTEMPTS:
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
        """The mapper answered; whether it had failed before."""
        self._vanished.pop(key, None)
        return self._entries.pop(key, None) is not None

    def due(self, now: float, *, limit: int = 128) -> list[ObjectEvent]:
        """The events to ask about again now, so many at once; of each, say what came of it."""
        events: list[ObjectEvent] = []
        while len(events) < limit and self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)
            if self._is_live(timer):
                events.append(self._entries[timer[2]].event)
        return events

    @property
    def next_due(self) -> float | None:
        """When to ask again."""
        while self._timers and not self._is_live(self._timers[0]):
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def _is_live(self, timer: tuple[float, int, Key]) -> bool:
        entry = self._entries.get(timer[2])
        return entry is not None and entry.due == timer[0]

    def _note_vanished(self, key: Key, entry: _Entry) -> None:
        if entry.event.event != "vanished":
            self._vanished.pop(key, None)
        elif key not in self._vanished:
            self._vanished[key] = None
            if len(self._vanished) > VANISHED_LIMIT:
                self._give_up(next(iter(self._vanished)))

    def _give_up(self, key: Key) -> None:
        self.given_up += 1
        self.succeeded(key)


def merge(earlier: ObjectEvent, later: ObjectEvent) -> ObjectEvent:
    """Two events of one object as one: from what was last told to what is so now."""
    old = earlier.old or (later.old if later.new is None else None)
    new = later.new
    seen = {(view.uid, view.resource_version) for view in (old, new) if view is not None}
    states = {(view.uid, view.resource_version): view for view in (*earlier.states, *later.states)}
    between = tuple([view for version, view in states.items() if version not in seen][-STATES_LIMIT:])
    if new is None:
        return MergedEvent("vanished", old=old, between=between)
    if old is None:
        initial = earlier.initial and (later.initial or later.resync)
        return MergedEvent("appeared", new=new, between=between, initial=initial)
    return MergedEvent("changed", old=old, new=new, between=between, resync=earlier.resync and later.resync)


def single(event: ObjectEvent, view: View[Any]) -> ObjectEvent:
    """One state of an event, to ask about it alone."""
    return ObjectEvent("appeared", new=view) if view is event.new else ObjectEvent("vanished", old=view)


def remainder(event: ObjectEvent, views: list[View[Any]]) -> ObjectEvent:
    """What is left of an event when the mapper answered on all its states but these.

    If the new state is not among them, it is about states that are gone.
    """
    new = views[-1] if views[-1] is event.new else None
    gone = views[:-1] if new is not None else views
    if new is not None and not gone:
        return ObjectEvent("appeared", new=new, initial=event.initial)
    happened: Event = "changed" if new is not None else "vanished"
    between = tuple(gone[1:])
    return MergedEvent(happened, old=gone[0], new=new, between=between, resync=event.resync, cause=event.cause())
