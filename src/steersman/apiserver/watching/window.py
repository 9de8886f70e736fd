"""The recent changes of one resource, and who waits for the next.

Guarantees
- A watcher is a position in the window: nothing is copied for it, and nobody waits for it. When what it has not read
  yet leaves the window, it learns so by `TooOld` and every other watcher learns nothing.
- A change is seen by all watchers in the order of its revision.
- The window has a bound; a resource that changes much forgets only its own past.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable

from steersman.apiserver.storage import Record
from steersman.apiserver.watching.event import Event, labels_of


class TooOld(Exception):
    """What was asked for is no longer in the window; changes after ``oldest`` are."""

    def __init__(self, oldest: int) -> None:
        super().__init__(oldest)
        self.oldest = oldest


class Window:
    """The last changes of one resource, at least ``capacity`` of them if there were so many."""

    __slots__ = ("_capacity", "_events", "_first", "_labels", "_waiting", "closed", "oldest")

    def __init__(self, oldest: int, *, capacity: int) -> None:
        #: All changes after this revision are here.
        self.oldest = oldest
        self._capacity = capacity
        self._events: list[Event] = []
        #: How many events came before those that are kept.
        self._first = 0
        #: Who waits, each with a function that takes what has happened and tells whether it waits on.
        self._waiting: dict[asyncio.Future[None], Callable[[], bool]] = {}
        self._labels: dict[str, tuple[int, dict[str, str]]] = {}
        #: The server ends: watchers do too.
        self.closed = False

    def append(self, event: Event) -> None:
        """Add a change and wake everyone who waits."""
        events = self._events
        events.append(event)
        if len(events) >= 2 * self._capacity:
            # In chunks: taking one from the front at each change would move the whole list each time.
            self.oldest = events[self._capacity - 1].revision
            del events[: self._capacity]
            self._first += self._capacity
        if event.record is None:
            self._labels.pop(event.key, None)
        self.wake()

    def wake(self) -> None:
        """Let everyone look who waits."""
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            for turn, take in waiting.items():
                if turn.done():
                    continue
                if take():
                    self._waiting[turn] = take
                else:
                    turn.set_result(None)

    def forget(self, oldest: int) -> None:
        """Drop everything: some changes up to a revision were not seen."""
        self._first += len(self._events) + 1
        self._events.clear()
        self._labels.clear()
        self.oldest = oldest
        self.wake()

    def position_after(self, revision: int) -> int:
        """Where a watcher begins that knows everything up to a revision; `TooOld` if there is a gap."""
        if revision < self.oldest:
            raise TooOld(self.oldest)
        return self._first + bisect_right(self._events, revision, key=_revision)

    def after(self, position: int) -> list[Event]:
        """The changes from a position on; `TooOld` if some of them are gone."""
        if position < self._first:
            raise TooOld(self.oldest)
        return self._events[position - self._first :]

    @property
    def end(self) -> int:
        """Where the next change will be."""
        return self._first + len(self._events)

    def has(self, position: int) -> bool:
        """Whether there is a change at a position already."""
        return position < self._first + len(self._events)

    async def wait(self, position: int, until: float, take: Callable[[], bool]) -> None:
        """Wait for something at a position, until a time of the loop.

        What happens meanwhile is offered to ``take``, which must not fail; the wait is over when that returns false.
        """
        if self.closed or self.has(position):
            return
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting[turn] = take
        timer = loop.call_at(until, _end, turn)
        try:
            await turn
        finally:
            timer.cancel()
            # Who leaves early must not be kept until something happens.
            self._waiting.pop(turn, None)

    @property
    def waiting(self) -> int:
        """How many watchers wait."""
        return sum(not turn.done() for turn in self._waiting)

    def labels(self, record: Record) -> dict[str, str]:
        """The labels of an object as it is now, decoded once."""
        known = self._labels.get(record.key)
        if known is not None and known[0] == record.modified:
            return known[1]
        labels = labels_of(record)
        self._labels[record.key] = (record.modified, labels)
        return labels


def _revision(event: Event) -> int:
    return event.revision


def _end(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
