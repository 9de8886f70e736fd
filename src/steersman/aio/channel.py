"""A bounded queue between tasks of one loop that can be closed.

Guarantees:

- It holds at most `capacity` items; a sender waits for room.
- Items arrive in the order they were sent. `send` and `receive` are served in order, and `send_nowait` never takes a
  place that a waiting sender was promised.
- A cancelled `receive` takes no item, and a cancelled `send` leaves none. Nor does one whose coroutine is closed.
- After `close`, nothing more can be sent, earlier items can still be received, and no task waits forever.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

T = TypeVar("T")

_EMPTY = "the channel is closed and empty"


class ChannelClosed(Exception):
    """The channel is closed; a receiver gets this only after all items have been received."""


class ChannelFull(Exception):
    """`send_nowait` found no room."""


@dataclass(frozen=True, slots=True)
class ChannelStatistics:
    """How full a channel is, and how many tasks wait on it."""

    capacity: int
    buffered: int
    senders_waiting: int
    receivers_waiting: int
    closed: bool


class Channel(Generic[T]):
    """A bounded first-in, first-out queue between tasks of one loop.

    Iteration receives until the channel is closed and empty. Several tasks may send and receive; each item is received
    once.
    """

    __slots__ = ("_capacity", "_closed", "_items", "_receivers", "_senders")

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a channel's capacity must be at least 1 (got {capacity})")
        self._capacity = capacity
        self._closed = False
        self._items: deque[T] = deque()
        self._senders = _Line()
        self._receivers = _Line()

    async def send(self, item: T) -> None:
        """Add `item`, waiting for room; raises `ChannelClosed` if the channel is or gets closed."""
        try:
            if not self._closed and (self._senders.called or self._room() < 1):
                await self._senders.wait()
            if self._closed:
                raise ChannelClosed("the channel was closed before the item could be sent")
            self._items.append(item)
        finally:
            self._wake()

    def send_nowait(self, item: T) -> None:
        """Add `item` now; raises `ChannelFull` if no room is left beyond that of waiting senders."""
        if self._closed:
            raise ChannelClosed("the channel is closed: nothing more can be sent")
        if self._room() < 1:
            raise ChannelFull(f"the channel is full ({self._capacity} items)")
        self._items.append(item)
        self._wake()

    async def receive(self) -> T:
        """Take the oldest item, waiting for one; raises `ChannelClosed` once the channel is closed and empty."""
        try:
            if self._receivers.called or not (self._items or self._closed):
                await self._receivers.wait()
            if not self._items:
                raise ChannelClosed(_EMPTY)
            return self._items.popleft()
        finally:
            self._wake()

    def receive_nowait(self) -> T | None:
        """Take the oldest item if there is one and no receiver waits for it, else None; raise `ChannelClosed` like `receive`."""
        if self._receivers.called:
            return None
        if not self._items:
            if self._closed:
                raise ChannelClosed(_EMPTY)
            return None
        item = self._items.popleft()
        self._wake()
        return item

    def close(self) -> None:
        """Close: waiting senders fail, receivers get the remaining items and then `ChannelClosed`."""
        self._closed = True
        self._wake()

    @property
    def closed(self) -> bool:
        """Whether `close` was called; items may remain."""
        return self._closed

    def statistics(self) -> ChannelStatistics:
        """Return how full the channel is and how many tasks wait on either side."""
        return ChannelStatistics(
            capacity=self._capacity,
            buffered=len(self._items),
            senders_waiting=len(self._senders),
            receivers_waiting=len(self._receivers),
            closed=self._closed,
        )

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        try:
            return await self.receive()
        except ChannelClosed:
            raise StopAsyncIteration from None

    def __repr__(self) -> str:
        state = " closed" if self._closed else ""
        return f"<Channel {len(self._items)}/{self._capacity}{state}>"

    def _room(self) -> int:
        """Places neither taken nor promised to a sender that was woken but has not run yet."""
        return self._capacity - len(self._items) - self._senders.called

    def _available(self) -> int:
        """Items not promised to a receiver that was woken but has not run yet."""
        return len(self._items) - self._receivers.called

    def _wake(self) -> None:
        """Wake as many waiting tasks as there are places and items for, or all of them once closed.

        Items stay in the queue until the woken receiver runs: one that is cancelled in between loses nothing. Each
        woken task wakes the next, even if it ends with an error.
        """
        while (self._closed or self._room() > 0) and self._senders.call_next():
            pass
        while (self._closed or self._available() > 0) and self._receivers.call_next():
            pass


class _Line:
    """Tasks waiting in order; `called` counts those that were woken and have not run yet."""

    __slots__ = ("_waiting", "called")

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.called = 0

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        finally:
            if turn.done() and not turn.cancelled():
                self.called -= 1
            else:
                # Cancelled, or the garbage collector closes this coroutine; `call_next` may have dropped it already.
                with suppress(ValueError):
                    self._waiting.remove(turn)

    def call_next(self) -> bool:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                self.called += 1
                turn.set_result(None)
                return True
        return False
