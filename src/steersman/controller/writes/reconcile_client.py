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

from steersman.client import ListOf, MetadataReader, Verbs
from steersman.controller.writes.pipeline import ReconcilePipeline
from steersman.objects import Kind, Object, PartialObjectMetadata, Unstructured

ObjectT = TypeVar("ObjectT", bound=Object)


class ReconcileClient(Verbs):
    """Reads and writes objects of any kind, as `Client` does, for one reconcile.

    The cache answers `get`, `list`, `first` and `exists`, never older than what was written through this client. Reads of
    a specific resource version, with field selectors, of pages, or through `live` go to the server. An `apply` through
    `live` is always sent.

    All reads keep the namespaces and selectors of the manager, wherever they go. Only ``live`` reads more, and only a
    key or a namespace that you name.
    """

    pipeline: ReconcilePipeline

    def __init__(self, pipeline: ReconcilePipeline) -> None:
        super().__init__(pipeline)

    @property
    def metadata(self) -> ReconcileMetadata:
        """The reading verbs, returning metadata alone; from the cache if it caches only metadata of the kind."""
        return ReconcileMetadata(self.pipeline)

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


class ReconcileMetadata(MetadataReader):
    """The reading verbs of a reconcile, for metadata alone; by index only for kinds cached as metadata."""

    def __init__(self, pipeline: ReconcilePipeline) -> None:
        super().__init__(pipeline.metadata)
        self._pipeline = pipeline

    async def by_index(
        self, kind: type[Any] | Kind, name: str, value: Hashable, *, namespace: str | None = None
    ) -> ListOf[PartialObjectMetadata]:
        """Read the metadata of the objects that an index holds for a value; see `ReconcileClient.by_index`."""
        cache: Any = self._pipeline.cached(kind, f"index {name!r}").metadata
        return await cache.by_index(kind, name, value, namespace=namespace)

    async def owned_by(
        self, kind: type[Any] | Kind, owner: Object | Unstructured | str
    ) -> ListOf[PartialObjectMetadata]:
        """Read the metadata of the objects with an owner reference to an object or its uid."""
        cache: Any = self._pipeline.cached(kind, "the owner index").metadata
        return await cache.owned_by(kind, owner)
