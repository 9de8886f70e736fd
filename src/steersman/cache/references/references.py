"""Counts references to the objects of a kind.

Guarantees
- References that begin in one turn of the event loop are placed together.
- An object is cached for `LINGER` seconds after its last reference has ended.
- The memory is bounded by the number of objects that are, or were lately, referred to.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable

from steersman.objects import Key

#: How many seconds an object without references stays cached.
LINGER = 60.0


class References:
    """How often each object is referred to."""

    def __init__(self, place: Callable[[Collection[Key]], None], drop: Callable[[Key], None]) -> None:
        self._place = place
        self._drop = drop
        self._counts = Counter[Key]()
        #: Names that are referred to, and not placed yet.
        self._new: dict[Key, None] = {}
        self._scheduled: asyncio.Handle | None = None
        self._lingering: dict[Key, asyncio.TimerHandle] = {}
        self.linger = LINGER
        self._open = False

    def __contains__(self, key: object) -> bool:
        return key in self._counts

    def __len__(self) -> int:
        return len(self._counts)

    def open(self) -> None:
        """Place names from now on."""
        self._open = True
        self._schedule()

    def close(self) -> None:
        """Place and drop nothing any more."""
        self._open = False
        if self._scheduled is not None:
            self._scheduled.cancel()
        for timer in self._lingering.values():
            timer.cancel()
        self._lingering.clear()

    def begin(self, keys: Iterable[Key]) -> None:
        """Count a reference to each of these objects."""
        for key in keys:
            self._counts[key] += 1
            if self._counts[key] > 1:
                continue
            if (timer := self._lingering.pop(key, None)) is not None:
                timer.cancel()
            else:
                self._new[key] = None
        self._schedule()

    def end(self, keys: Iterable[Key]) -> None:
        """Take back a reference to each of these objects."""
        for key in keys:
            self._counts[key] -= 1
            if self._counts[key] > 0:
                continue
            del self._counts[key]
            if key in self._new:
                del self._new[key]  # it is not cached yet
            elif self._open:
                self._lingering[key] = asyncio.get_running_loop().call_later(self.linger, self._expire, key)

    def _schedule(self) -> None:
        if self._open and self._new and self._scheduled is None:
            self._scheduled = asyncio.get_running_loop().call_soon(self._place_new)

    def _place_new(self) -> None:
        self._scheduled = None
        new, self._new = self._new, {}
        if new:
            self._place(new)

    def _expire(self, key: Key) -> None:
        del self._lingering[key]
        self._drop(key)
