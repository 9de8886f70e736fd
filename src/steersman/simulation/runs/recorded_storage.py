"""The store of a simulated server: it reports each commit at the moment when it happens."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Mapping

from steersman.apiserver import MemoryStorage, Record

#: Where a store has Leases, and all records of what happened: they are written all the time, and say nothing of progress.
LEASES = "coordination.k8s.io/leases/"
RECORDS = (LEASES, "core/events/", "events.k8s.io/events/", "allocations/")

#: Called with the key, and the value before and after.
OnCommit = Callable[[str, bytes | None, bytes | None], None]


class RecordedStorage(MemoryStorage):
    """A store in memory that reports its commits."""

    def __init__(self, on_commit: OnCommit) -> None:
        super().__init__()
        self._on_commit = on_commit
        #: All values by key.
        self.contents: dict[str, bytes] = {}
        #: When each revision was committed, and the first of these revisions.
        self._moments: list[float] = []
        self._first = 0

    async def put(self, key: str, value: bytes, *, expect: int, ttl: float | None = None) -> Record:
        """See `Storage.put`."""
        before, _ = await self.get(key)
        record = await super().put(key, value, expect=expect, ttl=ttl)
        self.contents[key] = value
        self._moments.append(asyncio.get_running_loop().time())
        self._on_commit(key, before.value if before is not None else None, value)
        return record

    async def put_new(self, values: Mapping[str, bytes]) -> None:
        """See `MemoryStorage.put_new`: the objects with which a server starts."""
        await super().put_new(values)
        self.contents.update(values)
        self._moments += [asyncio.get_running_loop().time()] * len(values)

    async def begin_history(self) -> None:
        """Let the history begin now, for `revision_at`."""
        self._first = await self.revision()
        self._moments.clear()

    def revision_at(self, moment: float) -> int:
        """The revision of the store at an earlier time of the loop; the first of the history before it began."""
        return self._first + bisect_right(self._moments, moment)

    async def delete(self, key: str, *, expect: int) -> int:
        """See `Storage.delete`."""
        # A real store takes a moment, in which a server can notice that the client of a deletecollection is gone.
        await asyncio.sleep(0)
        before, _ = await self.get(key)
        revision = await super().delete(key, expect=expect)
        self.contents.pop(key, None)
        self._moments.append(asyncio.get_running_loop().time())
        self._on_commit(key, before.value if before is not None else None, None)
        return revision
