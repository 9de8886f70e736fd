"""The store as an API server sees it whose watch cache lags behind.

Guarantees
- Until a moment, every read shows the state of an earlier revision, and no change arrives. Then it shows the current state.
- It writes nothing of its own: an API server over it answers reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from steersman.apiserver import Page, Record, Storage, Watching


class LaggingView:
    """A `Storage` that shows a revision of another one until a time of the loop."""

    def __init__(self, storage: Storage, *, revision: int, until: float) -> None:
        self._storage = storage
        self._revision = revision
        self._until = until

    @property
    def _shown(self) -> int:
        """The revision that it shows; 0 for the current one."""
        return self._revision if asyncio.get_running_loop().time() < self._until else 0

    async def revision(self) -> int:
        """See `Storage.revision`."""
        return self._shown or await self._storage.revision()

    async def get(self, key: str, *, revision: int = 0) -> tuple[Record | None, int]:
        """See `Storage.get`."""
        return await self._storage.get(key, revision=revision or self._shown)

    async def list(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        """See `Storage.list`."""
        return await self._storage.list(prefix, after=after, limit=limit, revision=revision or self._shown)

    async def put(self, key: str, value: bytes, *, expect: int, ttl: float | None = None) -> Record:
        """See `Storage.put`."""
        return await self._storage.put(key, value, expect=expect, ttl=ttl)

    async def delete(self, key: str, *, expect: int) -> int:
        """See `Storage.delete`."""
        return await self._storage.delete(key, expect=expect)

    def watch(self, prefix: str, *, after: int) -> AbstractAsyncContextManager[Watching]:
        """See `Storage.watch`; changes arrive when the lag is over."""
        return self._watching(prefix, after)

    @asynccontextmanager
    async def _watching(self, prefix: str, after: int) -> AsyncGenerator[Watching]:
        await asyncio.sleep(max(0.0, self._until - asyncio.get_running_loop().time()))
        async with self._storage.watch(prefix, after=after) as watch:
            yield watch

    async def compact(self, revision: int) -> None:
        """Do nothing: the server that has the store compacts it."""
