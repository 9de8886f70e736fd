"""A stage of reading that asks a cache first."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from steersman.client.results import ListOf
from steersman.client.selections import AnyKind, KeyLike, ListSelection, ReadSelection, WatchSelection
from steersman.client.stages.observers import CachedForm
from steersman.client.stages.scoped_reads import ScopedReads
from steersman.client.watches import Watch
from steersman.errors import KindNotServed

#: What a cache can select by.
_SELECTS = frozenset({"namespace", "labels", "page_size"})


class CachedReads:
    """Answers get, list and head from a cache, in the scope of the stage below.

    Requests for a resource version, or with field selectors, go to the server, in whichever form the kind is cached. So do
    pages and watches.
    """

    def __init__(self, cache: CachedForm, server: ScopedReads) -> None:
        self._cache = cache
        self._server = server

    def live(self) -> ScopedReads:
        """The stage below."""
        return self._server.live()

    async def get(self, kind: AnyKind, key: KeyLike, resource_version: str | None) -> Any:
        """Read one object."""
        kinds = self._server.kinds
        binding = kinds.get(kind)  # raises for an argument that is not a kind
        if resource_version is not None or not self._cache.answers(kind):
            return await self._server.get(kind, key, resource_version)
        try:
            binding = binding or await kinds.bind(kind)
        except KindNotServed:
            # The cache distinguishes a withdrawn kind, whose objects are gone, from one that was never served.
            return await self._cache.get(kind, key)
        return await self._cache.get(kind, kinds.key(binding, key))

    async def list(self, kind: AnyKind, selection: ListSelection) -> ListOf[Any]:
        """Read a collection."""
        if not self._answers(kind, selection):
            return await self._server.list(kind, selection)
        return await self._cache.list(kind, namespace=selection.get("namespace"), labels=selection.get("labels"))

    async def head(self, kind: AnyKind, selection: ReadSelection) -> ListOf[Any]:
        """Read the first object of a collection."""
        if not self._answers(kind, selection):
            return await self._server.head(kind, selection)
        return await self._cache.head(kind, namespace=selection.get("namespace"), labels=selection.get("labels"))

    def _answers(self, kind: AnyKind, selection: ReadSelection) -> bool:
        self._server.kinds.get(kind)  # raises for an argument that is not a kind
        return not selection.keys() - _SELECTS and self._cache.answers(kind)

    def pages(self, kind: AnyKind, selection: ListSelection) -> AsyncGenerator[ListOf[Any]]:
        """Read a collection page by page, from the server."""
        return self._server.pages(kind, selection)

    def watch(self, kind: AnyKind, selection: WatchSelection) -> Watch[Any]:
        """Watch the changes of a kind, from the server."""
        return self._server.watch(kind, selection)

    async def admit(self, kind: AnyKind, key: KeyLike) -> None:
        """Raise unless the object is in scope."""
        await self._server.admit(kind, key)
