"""The interface of a store: keys and bytes under one global revision, as in etcd.

Guarantees, provided by every store and tested on each by one suite
- Every change takes the next revision, which is never reused. Every watch sees the changes in that order, each once,
  with the previous value.
- `put` and `delete` succeed only on top of the revision that the caller names; 0 means that the key must be absent.
- A read at a revision sees exactly the state of then, until that revision is compacted.
- Nothing waits for a slow watcher: one that falls too far behind ends with `Compacted`.
- An answered change is visible to every later read.
- `put` and `delete` are answered after the writes of their key that began before them, even those whose callers were cancelled.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

import msgspec


class Record(msgspec.Struct, frozen=True, gc=False):
    """A value with the revisions at which its key was created and last changed.

    A store holds one for each object, and one `Change` for each write that it remembers. Neither can be part of a cycle,
    so the cyclic garbage collector skips them: its pauses do not grow with the store.
    """

    key: str
    value: bytes
    created: int
    modified: int

    def with_value(self, value: bytes) -> Record:
        """Another value in place of this one."""
        return Record(self.key, value, self.created, self.modified)


class Page(NamedTuple):
    """A part of a list, as of one revision."""

    records: list[Record]
    #: The revision of the whole list.
    revision: int
    #: The number of keys of the list after this page.
    remaining: int


class Change(msgspec.Struct, frozen=True, gc=False):
    """A change of a key at a revision; without a value it was deleted."""

    key: str
    revision: int
    record: Record | None
    previous: Record | None


class StorageError(Exception):
    """A store could not perform an operation."""


class Mismatch(StorageError):
    """The key is not at the revision that the caller named; ``current`` is its record."""

    def __init__(self, key: str, current: Record | None) -> None:
        found = f"is at revision {current.modified}" if current else "does not exist"
        super().__init__(f"{key} {found}")
        self.key = key
        self.current = current


class Compacted(StorageError):
    """The requested history is gone; changes after ``oldest`` remain."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} is gone: everything before {oldest} was compacted")
        self.revision = revision
        self.oldest = oldest


class FutureRevision(StorageError):
    """The requested revision has not happened yet."""

    def __init__(self, revision: int, current: int) -> None:
        super().__init__(f"revision {revision} has not happened yet: the store is at {current}")
        self.revision = revision
        self.current = current


class Watching(Protocol):
    """An open watch: iterate over it for changes."""

    def __aiter__(self) -> AsyncIterator[Change]:
        """Deliver changes in order while the watch is open. Raises `Compacted` if it fell too far behind."""
        ...


class Storage(Protocol):
    """Keys and bytes with a history."""

    async def revision(self) -> int:
        """The revision of the last change; at least 1."""
        ...

    async def get(self, key: str, *, revision: int = 0) -> tuple[Record | None, int]:
        """The record of a key, now or at a revision, and the revision shown."""
        ...

    async def list(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        """The records of all keys with a prefix that come after ``after``, in byte order.

        At most ``limit`` of them unless it is 0; now or at a revision.
        """
        ...

    async def put(self, key: str, value: bytes, *, expect: int, ttl: float | None = None) -> Record:
        """Set a key that is at revision ``expect`` (0: absent), for ``ttl`` seconds. Raises `Mismatch` if it is not."""
        ...

    async def delete(self, key: str, *, expect: int) -> int:
        """Delete a key that is at revision ``expect``.

        Returns the revision of the deletion. Raises `Mismatch` if it is not.
        """
        ...

    def watch(self, prefix: str, *, after: int) -> AbstractAsyncContextManager[Watching]:
        """Watch all changes of keys with a prefix after a revision. Raises `Compacted` if they are gone."""
        ...

    async def compact(self, revision: int) -> None:
        """Drop the history before a revision: only states from it on can be read or watched."""
        ...


async def settled(storage: Storage, key: str) -> Record | None:
    """The record of a key after all writes of it that have begun, also those whose callers were cancelled."""
    try:
        # No key is at this revision, so nothing is written.
        await storage.put(key, b"", expect=-1)
    except Mismatch as mismatch:
        return mismatch.current
    raise AssertionError(f"the store wrote {key} on top of a revision that cannot be")
