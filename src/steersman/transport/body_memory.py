"""Memory for request bodies.

Guarantees
- All long bodies of a listener together are bounded in bytes, from the first byte read to the response.
- One sender holds at most its share of that bound: its further bodies wait, those of other senders do not.
- A waiting body is not read beyond the buffers of its connection. A sender has at most `CROWD` waiting bodies.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

#: How many bytes of long bodies a listener holds, in total and per sender.
TOTAL: Final = 256 * 1024 * 1024
SHARE: Final = 64 * 1024 * 1024
#: How many bodies of one sender may wait: each keeps a connection with full buffers.
CROWD: Final = 32


class BodyMemoryFull(Exception):
    """There is no memory for a body, even after waiting."""


class BodyMemory:
    """The body memory of a listener: ``async with memory.taken("kim", 3_000_000): ...``."""

    def __init__(self, *, total: int = TOTAL, share: int = SHARE) -> None:
        self._free = total
        self._share = share
        #: Bytes held, by sender.
        self._held: dict[str, int] = {}
        #: Waiting bodies, oldest first: sender, size, and the future that wakes them.
        self._waiting: deque[tuple[str, int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def taken(self, sender: str, size: int, *, within: float) -> AsyncGenerator[None]:
        """Wait for memory for a body and hold it; BodyMemoryFull if there is none in time."""
        if self._fits(sender, size):
            self._take(sender, size)
        else:
            await self._wait(sender, size, within)
        try:
            yield
        finally:
            self._give_back(sender, size)

    async def _wait(self, sender: str, size: int, within: float) -> None:
        if sum(whose == sender for whose, _, _ in self._waiting) >= CROWD:
            raise BodyMemoryFull
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (sender, size, woken)
        self._waiting.append(place)
        try:
            async with asyncio.timeout(within):
                await woken
        except BaseException as error:
            if woken.done() and not woken.cancelled():
                # It got its memory just as it gave up.
                self._give_back(sender, size)
            else:
                # A body released just now may have removed it already.
                with suppress(ValueError):
                    self._waiting.remove(place)
            if isinstance(error, TimeoutError):
                raise BodyMemoryFull from None
            raise

    def _fits(self, sender: str, size: int) -> bool:
        held = self._held.get(sender, 0)
        # A body longer than the whole share is read alone.
        return size <= self._free and (not held or held + size <= self._share)

    def _take(self, sender: str, size: int) -> None:
        self._free -= size
        self._held[sender] = self._held.get(sender, 0) + size

    def _give_back(self, sender: str, size: int) -> None:
        self._free += size
        self._held[sender] -= size
        if not self._held[sender]:
            del self._held[sender]
        still: deque[tuple[str, int, asyncio.Future[None]]] = deque()
        for place in self._waiting:
            whose, wanted, woken = place
            if woken.done():
                continue
            if self._fits(whose, wanted):
                self._take(whose, wanted)
                woken.set_result(None)
            else:
                still.append(place)
        self._waiting = still
