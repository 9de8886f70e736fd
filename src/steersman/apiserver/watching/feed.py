"""Everything that happens in the store, sorted by resource.

Guarantees
- One watch of the store feeds all watchers; what it delivered is in a `Window` before anyone hears of it.
- `reached` is a revision up to which every window is complete.
- A store that does not keep what the feed has not read yet costs every watcher its place, and loses nobody a change
  in silence.
"""

from __future__ import annotations

import asyncio
import logging

from steersman.apiserver.storage import Change, Compacted, Storage
from steersman.apiserver.watching.event import Event
from steersman.apiserver.watching.window import Window

_log = logging.getLogger("steersman.apiserver")

#: Changes of one resource that can be watched from, at least.
HISTORY = 4096


class Feed:
    """The windows of all resources. `begin` it, then `run` it in a task; `end` lets all watchers go."""

    def __init__(self, storage: Storage, *, history: int = HISTORY) -> None:
        self._storage = storage
        self._history = history
        self._windows: dict[str, Window] = {}
        self._base = 0
        self._closed = False
        self._fresh: dict[asyncio.Future[None], None] = {}
        #: All changes up to this revision are in the windows.
        self.reached = 0

    async def begin(self) -> None:
        """Note where the history begins that can be watched."""
        self._base = self.reached = await self._storage.revision()

    async def run(self) -> None:
        """Follow the store for ever."""
        while True:
            try:
                async with self._storage.watch("", after=self.reached) as watch:
                    async for delivery in watch:
                        if isinstance(delivery, Change):
                            self._take(delivery)
                        self.reached = max(self.reached, delivery.revision)
                        self._wake_fresh()
            except Compacted as gone:
                if self.reached >= gone.oldest:
                    # Nothing is missed that `forget` did not give up already.
                    continue
                _log.warning("the store was compacted past revision %d, which was not read yet", self.reached)
                self.forget(await self._storage.revision())

    def end(self) -> None:
        """Let every watcher end."""
        self._closed = True
        for window in self._windows.values():
            window.closed = True
            window.wake()

    def window(self, prefix: str) -> Window:
        """The changes of one resource: of all keys under a prefix of two parts, ``core/pods/``."""
        window = self._windows.get(prefix)
        if window is None:
            window = self._windows[prefix] = Window(self._base, capacity=self._history)
            window.closed = self._closed
        return window

    def renew(self, prefix: str) -> None:
        """Let the watchers of one resource end, and its history begin anew."""
        window = self._windows.pop(prefix, None)
        if window is not None:
            window.closed = True
            window.wake()
            self._windows[prefix] = Window(self.reached, capacity=self._history)
            self._windows[prefix].closed = self._closed

    async def wait_for(self, revision: int, seconds: float) -> bool:
        """Wait until a revision was seen, for so long; whether it was."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while self.reached < revision:
            turn: asyncio.Future[None] = loop.create_future()
            self._fresh[turn] = None
            try:
                async with asyncio.timeout_at(deadline):
                    await turn
            except TimeoutError:
                return False
            finally:
                self._fresh.pop(turn, None)
        return True

    def _take(self, change: Change) -> None:
        if change.revision <= self._base:
            return
        key = change.key
        prefix = key[: key.index("/", key.index("/") + 1) + 1]
        self.window(prefix).append(Event(change))

    def _wake_fresh(self) -> None:
        if self._fresh:
            waiting, self._fresh = self._fresh, {}
            for turn in waiting:
                if not turn.done():
                    turn.set_result(None)

    def forget(self, revision: int) -> None:
        """Let history begin at a revision: watches that have not seen it end with 410."""
        self._base = self.reached = revision
        for window in self._windows.values():
            window.forget(revision)
