"""The recent changes of one resource, and the watchers waiting for the next.

Guarantees
- A watcher is a position in the window: nothing is copied for it, and nothing waits for it. If unread changes leave the
  window, only that watcher gets `TooOld`.
- All watchers see changes in the order of their revisions.
- The window is bounded, in changes and, with all others together, in bytes (see `Feed`); a resource that changes often
  loses its own history first.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable

from steersman.apiserver.storage import Record
from steersman.apiserver.watching.watched_change import WatchedChange, labels_of

#: The number of objects whose decoded labels are cached.
_LABELS_MAX = 200_000


class TooOld(Exception):
    """The requested changes are no longer in the window; those after ``oldest`` are."""

    def __init__(self, oldest: int) -> None:
        super().__init__(oldest)
        self.oldest = oldest


class Window:
    """The last changes of one resource, at least ``capacity`` of them if there were that many."""

    __slots__ = ("_capacity", "_changes", "_first", "_labels", "_waiting", "closed", "oldest", "size")

    def __init__(self, oldest: int, *, capacity: int) -> None:
        #: All changes after this revision are here.
        self.oldest = oldest
        self._capacity = capacity
        self._changes: list[WatchedChange] = []
        #: The size, in bytes, of what only these changes hold.
        self.size = 0
        #: The number of changes before those that are kept.
        self._first = 0
        #: The waiting watchers, each with a function that takes new changes and returns whether it keeps waiting.
        self._waiting: dict[asyncio.Future[None], Callable[[], bool]] = {}
        self._labels: dict[str, tuple[int, dict[str, str]]] = {}
        #: Whether the server is closing; then all watchers end.
        self.closed = False

    def append(self, change: WatchedChange) -> None:
        """Add a change and wake all waiting watchers."""
        changes = self._changes
        changes.append(change)
        self.size += change.size
        if len(changes) >= 2 * self._capacity:
            # In chunks: dropping one from the front at each change would move the whole list each time.
            self._drop(self._capacity)
        if change.record is None:
            self._labels.pop(change.key, None)
        self.wake()

    def shorten(self, size: int) -> None:
        """Drop the oldest changes until the rest holds at most this many bytes; the newest stays."""
        left, number = self.size, 0
        for change in self._changes[:-1]:
            if left <= size:
                break
            left -= change.size
            number += 1
        self._drop(number)

    def _drop(self, number: int) -> None:
        if number:
            self.oldest = self._changes[number - 1].revision
            self.size -= sum(change.size for change in self._changes[:number])
            del self._changes[:number]
            self._first += number

    def wake(self) -> None:
        """Wake all waiting watchers."""
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
        self._first += len(self._changes) + 1
        self._changes.clear()
        self._labels.clear()
        self.size = 0
        self.oldest = oldest
        self.wake()

    def position_after(self, revision: int) -> int:
        """The position of a watcher that has everything up to a revision. Raises `TooOld` if there is a gap."""
        if revision < self.oldest:
            raise TooOld(self.oldest)
        return self._first + bisect_right(self._changes, revision, key=lambda change: change.revision)

    def after(self, position: int) -> list[WatchedChange]:
        """The changes from a position on. Raises `TooOld` if some of them are gone."""
        if position < self._first:
            raise TooOld(self.oldest)
        return self._changes[position - self._first :]

    @property
    def end(self) -> int:
        """The position of the next change."""
        return self._first + len(self._changes)

    def has(self, position: int) -> bool:
        """Whether there is already a change at a position."""
        return position < self._first + len(self._changes)

    async def wait(self, position: int, until: float, take: Callable[[], bool]) -> None:
        """Wait for a change at a position, until a time of the loop.

        New changes are offered to ``take``, which must not fail; the wait ends when it returns False.
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
            # A watcher that leaves early must not stay here until the next change.
            self._waiting.pop(turn, None)

    @property
    def waiting(self) -> int:
        """The number of waiting watchers."""
        return sum(not turn.done() for turn in self._waiting)

    def labels(self, record: Record) -> dict[str, str]:
        """The labels of a current object, decoded once."""
        known = self._labels.get(record.key)
        if known is not None and known[0] == record.modified:
            return known[1]
        labels = labels_of(record)
        if len(self._labels) >= _LABELS_MAX:
            self._labels.clear()
        self._labels[record.key] = (record.modified, labels)
        return labels


def _end(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
