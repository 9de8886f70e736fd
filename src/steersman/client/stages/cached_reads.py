"""A stage of reading that asks a cache first."""

from __future__ import annotations

from typing import Any

from steersman.client.results import ListOf
from steersman.client.selections import AnyKind, KeyLike, ListSelection
from steersman.client.stages.observers import ObjectCache
from steersman.client.stages.server_reads import ServerReads
from steersman.errors import KindNotServed

#: What a cache can select by.
_SELECTS = frozenset({"namespace", "labels", "page_size"})


class CachedReads:
    """Answers get and list from a cache. Requests for a resource version, or with field selectors, go to the server."""

    def __init__(self, cache: ObjectCache, server: ServerReads) -> None:
        self._cache = cache
        self._server = server

    async def get(self, kind: AnyKind, key: KeyLike, resource_version: str | None) -> Any:
        """Read one object."""
        if resource_version is not None:
            return await self._server.get(kind, key, resource_version)
        kinds = self._server.kinds
        try:
            binding = kinds.get(kind) or await kinds.bind(kind)
        except KindNotServed:
            # The cache distinguishes a withdrawn kind, whose objects are gone, from one that was never served.
            return await self._cache.get(kind, key)
        return await self._cache.get(kind, kinds.key(binding, key))

    async def list(self, kind: AnyKind, selection: ListSelection) -> ListOf[Any]:
        """Read a collection."""
        if selection.keys() - _SELECTS:
            return await self._server.list(kind, selection)
        self._server.kinds.get(kind)  # raises for an argument that is not a kind
        return await self._cache.list(kind, namespace=selection.get("namespace"), labels=selection.get("labels"))
