"""All changes of the store, sorted by resource.

Guarantees
- One watch of the store feeds all watchers; a change is in its `Window` before any watcher is notified.
- The total size of all windows is bounded: beyond it the largest is shortened, so a noisy resource loses its history
  first.
- Every window is complete up to the revision `reached`.
- If the store drops changes that the feed has not read yet, all watchers end; none misses a change silently.
"""

from __future__ import annotations

import asyncio
import logging

from steersman.apiserver.storage import Change, Compacted, Storage
from steersman.apiserver.watching.frames import FRAMES_BYTES, Frames
from steersman.apiserver.watching.watched_change import WatchedChange
from steersman.apiserver.watching.window import Window

_log = logging.getLogger("steersman.apiserver")

#: The minimum number of changes of one resource that can be watched from.
HISTORY = 4096
#: The total size, in bytes, of old values in all windows.
HISTORY_BYTES = 128 * 1024 * 1024


class Feed:
    """The windows of all resources. `begin` it, then `run` it in a task; `end` ends all watchers."""

    def __init__(self, storage: Storage, *, history: int = HISTORY, history_bytes: int = HISTORY_BYTES) -> None:
        self._storage = storage
        self._history = history
        self._history_bytes = history_bytes
        #: The maximum size of the windows, in bytes.
        self._size = 0
        #: Recently printed frames.
        self.frames = Frames(limit=min(FRAMES_BYTES, history_bytes))
        self._windows: dict[str, Window] = {}
        self._base = 0
        self._closed = False
        self._fresh: dict[asyncio.Future[None], None] = {}
        #: All changes up to this revision are in the windows.
        self.reached = 0

    async def begin(self) -> None:
        """Start the history now: what changed while no feed ran cannot be watched."""
        revision = await self._storage.revision()
        self._closed = False
        for window in self._windows.values():
            window.closed = False
        self.forget(revision)

    async def run(self) -> None:
        """Follow the store forever."""
        while True:
            try:
                async with self._storage.watch("", after=self.reached) as watch:
                    async for change in watch:
                        self._take(change)
                        self.reached = max(self.reached, change.revision)
                        self._wake_fresh()
            except Compacted as gone:
                if self.reached >= gone.oldest:
                    # Only changes that `forget` already gave up are missing.
                    continue
                _log.warning("the store was compacted past revision %d, which the feed had not read yet", self.reached)
                self.forget(await self._storage.revision())

    def end(self) -> None:
        """End every watcher."""
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
        """End the watchers of one resource, and start its history anew."""
        window = self._windows.pop(prefix, None)
        if window is not None:
            window.closed = True
            window.wake()
            self._windows[prefix] = Window(self.reached, capacity=self._history)
            self._windows[prefix].closed = self._closed

    async def wait_for(self, revision: int, seconds: float) -> bool:
        """Wait until a revision was seen, at most ``seconds``. Returns whether it was."""
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
        watched = WatchedChange(change.key, change.revision, change.record, change.previous)
        self.window(prefix).append(watched)
        self._size += watched.size
        if self._size > self._history_bytes:
            self._shorten()

    def _shorten(self) -> None:
        self._size = sum(window.size for window in self._windows.values())
        while self._size > self._history_bytes // 2:
            largest = max(self._windows.values(), key=_size)
            before = largest.size
            largest.shorten(before // 2)
            self._size -= before - largest.size
            if largest.size == before:
                # A single change is that large.
                return

    def _wake_fresh(self) -> None:
        if self._fresh:
            waiting, self._fresh = self._fresh, {}
            for turn in waiting:
                if not turn.done():
                    turn.set_result(None)

    def forget(self, revision: int) -> None:
        """Start the history at a revision: watches that have not seen it end with 410."""
        self._base = self.reached = revision
        for window in self._windows.values():
            window.forget(revision)


def _size(window: Window) -> int:
    return window.size
