"""What a store is: keys and bytes under one global revision, as etcd has them.

Guarantees, kept by every store and tested on each by one suite
- Every change takes the next revision, which is never used again; changes are seen by every watch in that order, each
  once, with what was there before.
- `put` and `delete` happen only on top of the revision that the caller names: 0 means that nothing may be there.
- A read at a revision sees exactly what was there then, until that revision is compacted.
- Nobody waits for a slow watcher: one that falls too far behind is ended with `Compacted`.
- What was answered stays: a change that a caller was told of is in every later read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol, TypeAlias


class Record(NamedTuple):
    """A value with the revisions at which its key was created and last changed."""

    key: str
    value: bytes
    created: int
    modified: int


class Page(NamedTuple):
    """A part of a listing, as of one revision."""

    records: list[Record]
    #: The revision that the whole listing shows.
    revision: int
    #: How many keys of the listing come after this page.
    remaining: int


class Change(NamedTuple):
    """What happened to a key at a revision; no value means that it was deleted."""

    key: str
    revision: int
    record: Record | None
    previous: Record | None


class Progress(NamedTuple):
    """All changes up to this revision were delivered."""

    revision: int


Delivery: TypeAlias = Change | Progress


class StorageError(Exception):
    """A store did not do what it was asked for."""


class Mismatch(StorageError):
    """The key is not at the revision that the caller named; ``current`` is what is there."""

    def __init__(self, key: str, current: Record | None) -> None:
        found = f"is at revision {current.modified}" if current else "does not exist"
        super().__init__(f"{key} {found}")
        self.key = key
        self.current = current


class Compacted(StorageError):
    """The history that was asked for is gone; what is newer than ``oldest`` is there."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} is gone: everything before {oldest} was compacted")
        self.revision = revision
        self.oldest = oldest


class FutureRevision(StorageError):
    """The revision that was asked for has not happened yet."""

    def __init__(self, revision: int, current: int) -> None:
        super().__init__(f"revision {revision} has not happened yet: the store is at {current}")
        self.revision = revision
        self.current = current


class Watching(Protocol):
    """A watch under way: iterate over it for what happens."""

    def __aiter__(self) -> AsyncIterator[Delivery]:
        """Deliver what happens, in order, for as long as the watch is open; `Compacted` if it fell too far behind."""
        ...

    async def request_progress(self) -> None:
        """Ask for a `Progress` at no less than the revision of now; it comes after all changes before it."""
        ...


class Storage(Protocol):
    """Keys and bytes with a history."""

    async def revision(self) -> int:
        """The revision of the last change; at least 1."""
        ...

    async def get(self, key: str, *, revision: int = 0) -> tuple[Record | None, int]:
        """What is under a key, now or at a revision, and the revision that this shows."""
        ...

    async def list(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        """What is under all keys with a prefix that come after ``after``, in the order of their bytes.

        At most ``limit`` of them unless it is 0; now or at a revision.
        """
        ...

    async def put(self, key: str, value: bytes, *, expect: int, ttl: float | None = None) -> Record:
        """Set a key that is at revision ``expect`` (0: not there), for so many seconds; `Mismatch` if it is not."""
        ...

    async def delete(self, key: str, *, expect: int) -> int:
        """Delete a key that is at revision ``expect``; the revision of the deletion. `Mismatch` if it is not."""
        ...

    def watch(self, prefix: str, *, after: int) -> AbstractAsyncContextManager[Watching]:
        """Follow all changes of keys with a prefix after a revision; `Compacted` if they are gone."""
        ...

    async def compact(self, revision: int) -> None:
        """Forget what was before a revision: from now on only states from it on can be read or watched."""
        ...
