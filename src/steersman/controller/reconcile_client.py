"""The client of one reconcile: all verbs of `Client`, every write told to the cache and to the reconcile's log.

Guarantees
- **Never older than yourself.** With a cache, what this client wrote is what it reads; so do all clients of the cache.
- **No request if nothing changed.** `apply` asks the server only if the object is not yet what it would make it (see
  `steersman.controller.applies`); what it then gives back is the object as `get` shows it, without ``managedFields``.
- Every verb that writes tells its observers before it returns, or raises (see `steersman.client.observing`).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeVar, overload

from steersman.cache.reader import CacheReader, NotCached, kind_name
from steersman.client import ListOf
from steersman.client.observed_client import ObservedClient
from steersman.objects import Kind, Object, Unstructured

ObjectT = TypeVar("ObjectT", bound=Object)


class ReconcileClient(ObservedClient):
    """Reads and writes objects of any kind, as `Client` does, in the name of one reconcile.

    `get` and `list` are answered by the cache, never older than what was written through this client; asking for a
    certain resource version, for fields, or through `live` asks the server. An `apply` through `live` is always sent.
    """

    @overload
    async def by_index(
        self, kind: type[ObjectT], name: str, value: Hashable, *, namespace: str | None = ...
    ) -> ListOf[ObjectT]: ...
    @overload
    async def by_index(
        self, kind: Kind, name: str, value: Hashable, *, namespace: str | None = ...
    ) -> ListOf[Unstructured]: ...

    async def by_index(
        self, kind: type[Any] | Kind, name: str, value: Hashable, *, namespace: str | None = None
    ) -> ListOf[Any]:
        """Read the objects that an index (see `Manager.index`) has under a value, in all namespaces or in one."""
        return await self._cached(kind, f"index {name!r}").by_index(kind, name, value, namespace=namespace)

    @overload
    async def owned_by(self, kind: type[ObjectT], owner: Object | Unstructured | str) -> ListOf[ObjectT]: ...
    @overload
    async def owned_by(self, kind: Kind, owner: Object | Unstructured | str) -> ListOf[Unstructured]: ...

    async def owned_by(self, kind: type[Any] | Kind, owner: Object | Unstructured | str) -> ListOf[Any]:
        """Read the objects of a kind that name an object, or its uid, among their owners."""
        return await self._cached(kind, "the owner index").owned_by(kind, owner)

    def _cached(self, kind: type[Any] | Kind, what: str) -> CacheReader:
        if not isinstance(self._reads, CacheReader):
            raise NotCached(
                f"{kind_name(kind)}: {what} is kept by the cache, and this client reads from the server; use ctx.client"
                " without .live, or list with a selector"
            )
        return self._reads
