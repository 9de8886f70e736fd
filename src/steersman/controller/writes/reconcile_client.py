"""The client of one reconcile: all verbs of `Client`; every write is reported to the cache and to the reconcile's log.

Guarantees
- **Never older than yourself.** With a cache, this client reads what it wrote, and so do all clients of the cache.
- **No request if nothing changed.** `apply` is sent only if the object does not match it yet (see
  `steersman.controller.writes.applies`). Otherwise it returns the object as `get` does, without ``managedFields``.
- Every verb that writes calls its observers before it returns or raises (see `steersman.client.stages.observers`).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeVar, overload

from steersman.client import ListOf, Verbs
from steersman.controller.writes.pipeline import ReconcilePipeline
from steersman.objects import Kind, Object, Unstructured

ObjectT = TypeVar("ObjectT", bound=Object)


class ReconcileClient(Verbs):
    """Reads and writes objects of any kind, as `Client` does, for one reconcile.

    The cache answers `get` and `list`, never older than what was written through this client. Reads of a specific
    resource version, with field selectors, or through `live` go to the server. An `apply` through `live` is always
    sent.
    """

    pipeline: ReconcilePipeline

    def __init__(self, pipeline: ReconcilePipeline) -> None:
        super().__init__(pipeline)

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
        """Read the objects that an index (see `Manager.index`) holds for a value, in all namespaces or in one."""
        return await self.pipeline.cached(kind, f"index {name!r}").by_index(kind, name, value, namespace=namespace)

    @overload
    async def owned_by(self, kind: type[ObjectT], owner: Object | Unstructured | str) -> ListOf[ObjectT]: ...
    @overload
    async def owned_by(self, kind: Kind, owner: Object | Unstructured | str) -> ListOf[Unstructured]: ...

    async def owned_by(self, kind: type[Any] | Kind, owner: Object | Unstructured | str) -> ListOf[Any]:
        """Read the objects of a kind with an owner reference to an object or its uid."""
        return await self.pipeline.cached(kind, "the owner index").owned_by(kind, owner)
