"""A store in memory that writes every change to a folder first, so that it survives its process.

Guarantees, in addition to those of every store
- No change is answered, read or watched before it is in the log: with ``fsync="always"`` on the disk itself, otherwise
  with the operating system, which survives this process but not a power cut.
- Concurrent writers share one write and one fsync, in a thread; readers never wait for a disk.
- After a crash, everything that was answered exists, and nothing in part; revisions continue.
- A write that does not fit on the disk fails with a message; the store stays as it was, and works again when there is
  room.
- A watch may continue after a restart from any revision after the last snapshot; before that it gets `Compacted`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from steersman.aio import Supervisor, utc_now
from steersman.apiserver.storage.frames import Entry, Snapshot, encode_entries
from steersman.apiserver.storage.journal_folder import Fsync, JournalFolder, WriteFailed
from steersman.apiserver.storage.memory import HISTORY_BYTES, MemoryStorage
from steersman.apiserver.storage.protocol import Change, Mismatch, Record

_T = TypeVar("_T")

#: A snapshot is written when the log has grown by this, or by the size of the last snapshot if that is more.
SNAPSHOT_AFTER = 16 * 1024 * 1024


class _Wanted(NamedTuple):
    """A write that waits for its place in the log; without a value it is a deletion."""

    key: str
    value: bytes | None
    ttl: float | None
    done: asyncio.Future[Change]


class JournaledStorage(MemoryStorage):
    """Keys and bytes in this process and in a folder: ``async with JournaledStorage(folder) as storage: ...``.

    ``fsync`` decides when a write is on the disk: "always" before it is answered, "interval" within ``interval``
    seconds, "never" when the operating system decides. A killed process loses nothing with any of them.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        fsync: Fsync = "always",
        interval: float = 0.1,
        snapshot_after: int = SNAPSHOT_AFTER,
        history_bytes: int = HISTORY_BYTES,
    ) -> None:
        super().__init__(history_bytes=history_bytes)
        if fsync not in {"always", "interval", "never"}:
            raise ValueError(f'fsync must be "always", "interval" or "never" (got {fsync!r})')
        self._folder = JournalFolder(Path(folder))
        self._fsync: Fsync = fsync
        self._interval = interval
        self._snapshot_after = snapshot_after
        self._wanted: list[_Wanted] = []
        self._filled = asyncio.Event()
        self._unsynced = asyncio.Event()
        #: The write in progress of each key: one at a time.
        self._under_way: dict[str, asyncio.Future[Change]] = {}
        self._wall_expiries: dict[str, tuple[int, float]] = {}
        self._snapshot: asyncio.Task[None] | None = None
        self._appends: ThreadPoolExecutor | None = None
        self._saves: ThreadPoolExecutor | None = None
        self._writer: asyncio.Task[None] | None = None
        self._own: Supervisor | None = None

    # open and close

    async def __aenter__(self) -> Self:
        if self._appends is not None or self._revision != 1:
            raise RuntimeError("a journaled store can be opened only once; make another one for its folder")
        self._appends = ThreadPoolExecutor(1, "journal")
        self._saves = ThreadPoolExecutor(1, "snapshot")
        try:
            await self._in_thread(self._folder.take)
            self._restore(*await self._in_thread(self._folder.recover))
        except BaseException:
            self._close()
            raise
        await super().__aenter__()
        self._own = await Supervisor().__aenter__()
        self._writer = self._own.start(self._write(), name="journal: writer")
        if self._fsync == "interval":
            self._own.start(self._sync(), name="journal: fsync")
        return self

    async def __aexit__(self, *error: Any) -> None:
        # Nothing expires any more; earlier requests are still written.
        await super().__aexit__(*error)
        own, self._own = self._own, None
        if own is None:
            return
        try:
            while self._under_way:
                await asyncio.wait(list(self._under_way.values()))
            if self._snapshot is not None:
                await asyncio.wait((self._snapshot,))
            own.cancel()
            await own.__aexit__(None, None, None)
            if self._unsynced.is_set():
                await self._in_thread(self._folder.flush)
        finally:
            self._close()

    def _close(self) -> None:
        for executor in (self._appends, self._saves):
            if executor is not None:
                executor.shutdown(wait=True)
        self._folder.leave()

    def _restore(self, snapshot: Snapshot, entries: list[Entry]) -> None:
        """Load the content of the folder."""
        wall, loop_time = utc_now().timestamp(), asyncio.get_running_loop().time()
        for entry in snapshot.entries:
            assert entry.record is not None
            self._records[entry.key] = entry.record
        self._keys = sorted(self._records)
        self._revision = self._compacted = snapshot.revision
        for entry in entries:
            self._commit(Change(entry.key, entry.revision, entry.record, self._records.get(entry.key)))
        for entry in (*snapshot.entries, *entries):
            current = self._records.get(entry.key)
            if entry.expires and current is not None and current.modified == entry.revision:
                self._wall_expiries[entry.key] = (entry.revision, entry.expires)
                self._expire_at(loop_time + max(0.0, entry.expires - wall), entry.revision, entry.key)

    # writing

    async def put(self, key: str, value: bytes, *, expect: int, ttl: float | None = None) -> Record:
        """Set a key that is at a revision, in the folder first. Raises `WriteFailed` if that fails."""
        await self._settled(key)
        self._expected(key, expect)
        change = await self._written(key, value, ttl)
        assert change.record is not None
        return change.record

    async def put_new(self, values: Mapping[str, bytes]) -> None:
        """Set absent keys, first in the folder. Raises `WriteFailed` if writing there fails."""
        for key in values:
            await self._settled(key)
        for key in values:
            self._expected(key, 0)
        # Queue all writes before the first one starts, so that one frame holds them.
        for done in [self._submitted(key, value, None) for key, value in values.items()]:
            await asyncio.shield(done)

    async def delete(self, key: str, *, expect: int) -> int:
        """Delete a key that is at a revision, in the folder first. Raises `WriteFailed` if that fails."""
        await self._settled(key)
        if self._expected(key, expect) is None:
            raise Mismatch(key, None)
        return (await self._written(key, None, None)).revision

    async def _settled(self, key: str) -> None:
        """Wait until no write of a key is in progress: readers never see one that may still fail."""
        while (under_way := self._under_way.get(key)) is not None:
            await asyncio.wait((under_way,))

    async def _written(self, key: str, value: bytes | None, ttl: float | None) -> Change:
        # A cancelled caller does not stop the write: it may already be in the log.
        return await asyncio.shield(self._submitted(key, value, ttl))

    def _submitted(self, key: str, value: bytes | None, ttl: float | None) -> asyncio.Future[Change]:
        """Queue a write. The future returns its change."""
        if self._own is None:
            raise WriteFailed(f"{key} was not stored: the store is not open; write within its 'async with'")
        done: asyncio.Future[Change] = asyncio.get_running_loop().create_future()
        self._under_way[key] = done
        self._wanted.append(_Wanted(key, value, ttl, done))
        self._filled.set()
        return done

    async def _write(self) -> None:
        """Write the pending changes; each frame holds all that have arrived."""
        while True:
            await self._filled.wait()
            self._filled.clear()
            wanted, self._wanted = self._wanted, []
            wall = utc_now().timestamp()
            changes = [self._change(each, self._revision + 1 + number) for number, each in enumerate(wanted)]
            entries = [
                Entry(change.key, change.revision, change.record, 0.0 if each.ttl is None else wall + each.ttl)
                for change, each in zip(changes, wanted, strict=True)
            ]
            try:
                await self._append(entries)
            except Exception as error:  # noqa: BLE001 - each writer gets the error; later writes may succeed
                self._fail(wanted, error)
                continue
            for change, entry, each in zip(changes, entries, wanted, strict=True):
                self._publish(change, entry, each)
            await self._snapshot_if_due()

    async def _append(self, entries: list[Entry]) -> None:
        if self._fsync == "always":
            await self._in_thread(lambda: self._folder.append(encode_entries(entries), durable=True))
            return
        self._folder.append(encode_entries(entries), durable=False)
        self._unsynced.set()

    def _change(self, wanted: _Wanted, revision: int) -> Change:
        current = self._records.get(wanted.key)
        created = current.created if current else revision
        record = None if wanted.value is None else Record(wanted.key, wanted.value, created, revision)
        return Change(wanted.key, revision, record, current)

    def _publish(self, change: Change, entry: Entry, wanted: _Wanted) -> None:
        self._commit(change)
        self._wall_expiries.pop(change.key, None)
        if wanted.ttl is not None:
            self._wall_expiries[change.key] = (change.revision, entry.expires)
            self._expire_at(asyncio.get_running_loop().time() + wanted.ttl, change.revision, change.key)
        del self._under_way[change.key]
        wanted.done.set_result(change)

    def _fail(self, wanted: list[_Wanted], error: Exception) -> None:
        for each in wanted:
            del self._under_way[each.key]
            each.done.set_exception(error if isinstance(error, WriteFailed) else WriteFailed(str(error)))
            # Retrieved here: the caller may be gone.
            each.done.exception()

    async def _sync(self) -> None:
        while True:
            await self._unsynced.wait()
            await asyncio.sleep(self._interval)
            self._unsynced.clear()
            try:
                await self._in_thread(self._folder.flush)
            except WriteFailed:
                # The next write reports it.
                return

    # snapshots

    async def _snapshot_if_due(self) -> None:
        """Start a snapshot and a new log if the old one is long; between two writes."""
        due = max(self._snapshot_after, self._folder.snapshot_size)
        if self._folder.length < due or (self._snapshot is not None and not self._snapshot.done()):
            return
        try:
            await self._in_thread(lambda: self._folder.begin_log(self._revision))
        except (OSError, WriteFailed):
            # No room for a new file: keep the old log, and try again after the next write.
            return
        if self._own is None:
            # The store is closing; a new log without a snapshot does no harm.
            return
        entries = [
            Entry(record.key, record.modified, record, self._wall_expiries.get(record.key, (0, 0.0))[1])
            for record in self._records.values()
        ]
        snapshot = Snapshot(self._revision, entries)
        self._snapshot = self._own.start(self._save(snapshot), name="journal: snapshot")

    async def _save(self, snapshot: Snapshot) -> None:
        assert self._saves is not None
        try:
            await asyncio.get_running_loop().run_in_executor(self._saves, self._folder.save, snapshot)
        except OSError:
            # The logs that it would have replaced still exist; a later one replaces them too.
            return

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        assert self._appends is not None
        return await asyncio.get_running_loop().run_in_executor(self._appends, work)
