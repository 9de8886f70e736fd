"""A store in memory: a sorted map of the current state and one log of the past.

How it provides the guarantees of `steersman.apiserver.storage.protocol`
- A change enters the log and the map in one step without an await, so readers see both or neither.
- The log is the buffer of every watch: a watcher holds a position in it and is woken; nothing is copied for it. A
  watcher whose position was compacted ends. Writers never wait for watchers.
- The log is bounded to `HISTORY_BYTES`: beyond it the oldest half is compacted. Compaction waits for watchers that have
  not read it yet, until there is twice as much.
- A past state is the current state with the log undone: the first change after it holds the previous value.
"""

from __future__ import annotations

import asyncio
import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self

from steersman.aio import Supervisor
from steersman.apiserver.storage.protocol import (
    Change,
    Compacted,
    FutureRevision,
    Mismatch,
    Page,
    Record,
    StorageError,
    Watching,
)

#: Sorts after every character that a key can hold.
_LAST = "\U0010ffff"
#: The maximum size, in bytes, of old values in the log.
HISTORY_BYTES = 128 * 1024 * 1024
#: Seconds until a failed deletion is retried.
_EXPIRY_RETRY = 5.0


class MemoryStorage:
    """Keys and bytes in this process. Use it with ``async with`` if values have a time to live."""

    def __init__(self, *, history_bytes: int = HISTORY_BYTES) -> None:
        self._history_bytes = history_bytes
        #: The size in bytes of replaced or deleted values in the log.
        self._past_size = 0
        self._records: dict[str, Record] = {}
        self._keys: list[str] = []
        #: The changes after `_compacted`, one per revision.
        self._log: list[Change] = []
        self._compacted = 1
        self._revision = 1
        self._watches: dict[_Watch, None] = {}
        self._expiries: list[tuple[float, int, str]] = []
        self._expiring = asyncio.Event()
        self._tasks: Supervisor | None = None

    async def __aenter__(self) -> Self:
        self._tasks = await Supervisor().__aenter__()
        self._tasks.start(self._expire(), name="storage: expiry")
        return self

    async def __aexit__(self, *error: Any) -> None:
        tasks, self._tasks = self._tasks, None
        if tasks is not None:
            tasks.cancel()
            await tasks.__aexit__(*error)

    def __len__(self) -> int:
        return len(self._records)

    # reading

    async def revision(self) -> int:
        """The revision of the last change."""
        return self._revision

    async def get(self, key: str, *, revision: int = 0) -> tuple[Record | None, int]:
        """The value of a key, now or at a revision."""
        if not revision:
            return self._records.get(key), self._revision
        for change in self._since(revision):
            if change.key == key:
                return change.previous, revision
        return self._records.get(key), revision

    async def list(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        """The values of all keys with a prefix, in order, now or at a revision."""
        if not revision or revision == self._revision:
            low, high = self._span(self._keys, prefix, after)
            end = min(high, low + limit) if limit else high
            return Page([self._records[key] for key in self._keys[low:end]], self._revision, high - end)
        past = self._undone(prefix, revision)
        if not past:
            page = await self.list(prefix, after=after, limit=limit)
            return page._replace(revision=revision)
        low, high = self._span(self._keys, prefix, "")
        # A key changed since then shows its previous value; one created since then is absent.
        keys = sorted({*self._keys[low:high], *past})
        found = [
            record for key in keys if key > after and (record := past.get(key, self._records.get(key))) is not None
        ]
        end = limit or len(found)
        return Page(found[:end], revision, max(0, len(found) - end))

    @staticmethod
    def _span(keys: list[str], prefix: str, after: str) -> tuple[int, int]:
        low = bisect_right(keys, after) if after > prefix else bisect_left(keys, prefix)
        return low, bisect_left(keys, prefix + _LAST, low)

    def _undone(self, prefix: str, revision: int) -> dict[str, Record | None]:
        """The previous values of the keys that changed after a revision."""
        past: dict[str, Record | None] = {}
        for change in self._since(revision):
            if change.key.startswith(prefix):
                past.setdefault(change.key, change.previous)
        return past

    def _since(self, revision: int) -> list[Change]:
        if revision > self._revision:
            raise FutureRevision(revision, self._revision)
        if revision < self._compacted:
            raise Compacted(revision, self._compacted)
        return self._log[revision - self._compacted :]

    # writing

    async def put(self, key: str, value: bytes, *, expect: int, ttl: float | None = None) -> Record:
        """Set a key that is at a revision."""
        current = self._expected(key, expect)
        revision = self._revision + 1
        record = Record(key, value, current.created if current else revision, revision)
        self._commit(Change(key, revision, record, current))
        if ttl is not None:
            self._expire_at(asyncio.get_running_loop().time() + ttl, revision, key)
        return record

    async def put_new(self, values: Mapping[str, bytes]) -> None:
        """Set absent keys, all of them or none. Raises `Mismatch` if one of them exists."""
        for key in values:
            self._expected(key, 0)
        for key, value in values.items():
            revision = self._revision + 1
            self._commit(Change(key, revision, Record(key, value, revision, revision), None))

    async def delete(self, key: str, *, expect: int) -> int:
        """Delete a key that is at a revision."""
        current = self._expected(key, expect)
        if current is None:
            raise Mismatch(key, None)
        self._commit(Change(key, self._revision + 1, None, current))
        return self._revision

    def _expected(self, key: str, expect: int) -> Record | None:
        current = self._records.get(key)
        if (current.modified if current else 0) != expect:
            raise Mismatch(key, current)
        return current

    def _commit(self, change: Change) -> None:
        """Make a change and wake all watchers, in one step."""
        if change.record is None:
            del self._records[change.key]
            del self._keys[bisect_left(self._keys, change.key)]
        else:
            if change.previous is None:
                insort(self._keys, change.key)
            self._records[change.key] = change.record
        self._log.append(change)
        self._past_size += _replaced(change)
        self._revision = change.revision
        for watch in self._watches:
            if change.key.startswith(watch.prefix):
                watch.wake()
        if self._past_size > self._history_bytes:
            self._shorten()

    def _shorten(self) -> None:
        """Compact to half of the bound, but keep events that a watch is about to read."""
        unread = min((at for watch in self._watches if (at := watch.unread) is not None), default=self._revision)
        last = self._revision if self._past_size > 2 * self._history_bytes else max(unread, self._compacted)
        left, revision = self._past_size, self._compacted
        for change in self._log:
            if left <= self._history_bytes // 2 or change.revision > last:
                break
            left -= _replaced(change)
            revision = change.revision
        if revision > self._compacted:
            self._compact(revision)

    async def compact(self, revision: int) -> None:
        """Drop the history before a revision."""
        if revision > self._revision:
            raise FutureRevision(revision, self._revision)
        if revision > self._compacted:
            self._compact(revision)

    def _compact(self, revision: int) -> None:
        for watch in self._watches:
            watch.catch_up(self._revision)
        gone = revision - self._compacted
        self._past_size -= sum(map(_replaced, self._log[:gone]))
        del self._log[:gone]
        self._compacted = revision

    def _expire_at(self, when: float, revision: int, key: str) -> None:
        """Expire a key at a time of the loop, if it is still at a revision then."""
        heapq.heappush(self._expiries, (when, revision, key))
        self._expiring.set()

    async def _expire(self) -> None:
        """Delete expired keys, unless they were changed since."""
        loop = asyncio.get_running_loop()
        while True:
            self._expiring.clear()
            wait = self._expiries[0][0] - loop.time() if self._expiries else None
            if wait is None or wait > 0:
                try:
                    async with asyncio.timeout(wait):
                        await self._expiring.wait()
                except TimeoutError:
                    pass
                continue
            _, revision, key = heapq.heappop(self._expiries)
            current = self._records.get(key)
            if current is None or current.modified != revision:
                continue
            try:
                await self.delete(key, expect=revision)
            except Mismatch:
                # Changed meanwhile, where a deletion takes time.
                continue
            except StorageError:
                # Nothing can be written now; retry later.
                self._expire_at(loop.time() + _EXPIRY_RETRY, revision, key)

    # watching

    def watch(self, prefix: str, *, after: int) -> AbstractAsyncContextManager[Watching]:
        """Watch all changes of keys with a prefix after a revision."""
        return self._watching(prefix, after)

    @asynccontextmanager
    async def _watching(self, prefix: str, after: int) -> AsyncGenerator[Watching]:
        self._since(after)
        watch = _Watch(self, prefix, after)
        self._watches[watch] = None
        try:
            yield watch
        finally:
            del self._watches[watch]

    def changes_after(self, revision: int) -> list[Change]:
        """The changes after a revision, in order. Raises `Compacted` if some of them are gone."""
        return self._since(revision)


def _replaced(change: Change) -> int:
    """The size in bytes of the value that a change replaced."""
    return 0 if change.previous is None else len(change.previous.value)


class _Watch:
    """One watcher: a prefix and a position in the log."""

    def __init__(self, storage: MemoryStorage, prefix: str, after: int) -> None:
        self.prefix = prefix
        self._storage = storage
        self._reached = after
        self._waits = False
        self._woken = asyncio.Event()
        self._woken.set()

    @property
    def unread(self) -> int | None:
        """The revision after which it has something to deliver; None if it waits for the next change."""
        return None if self._waits and not self._woken.is_set() else self._reached

    def wake(self) -> None:
        """Notify it of a change under the prefix."""
        self._woken.set()

    def catch_up(self, revision: int) -> None:
        """Skip changes of other keys: a watch that has delivered everything loses nothing by a compaction."""
        if self._waits and not self._woken.is_set():
            self._reached = revision

    async def __aiter__(self) -> AsyncIterator[Change]:
        while True:
            self._waits = True
            await self._woken.wait()
            self._waits = False
            self._woken.clear()
            for change in self._storage.changes_after(self._reached):
                if change.key.startswith(self.prefix):
                    yield change
                self._reached = change.revision
