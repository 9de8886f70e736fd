"""The client of one reconcile: all verbs of `Client`; every write is reported to the cache and to the reconcile's log.

Guarantees
- **Never older than yourself.** With a cache, this client reads what it wrote, and so do all clients of the cache.
- **No request if nothing changed.** `apply` is sent only if the object does not match it yet (see
  `steersman.controller.writes.applies`). Otherwise it returns the object as `get` does, without ``managedFields``.
- Every verb that writes calls its observers before it returns or raises (see `steersman.client.verbs.observers`).
"""

from __future__ import annotations

from collections.abc import Hashable
from types import EllipsisType
from typing import Any, TypeVar, overload

from steersman.cache import CacheReader, StoredView
from steersman.client import NO_VERSION, ListOf, ObservedClient, PreparedApply
from steersman.controller.writes.applies import Applies
from steersman.controller.writes.takeovers import owns_formerly, take_over
from steersman.errors import NotCached
from steersman.objects import (
    AnyObject,
    GroupVersionKind,
    Key,
    Kind,
    Object,
    Unstructured,
    kind_name,
    resource_version_of,
)

ObjectT = TypeVar("ObjectT", bound=Object)


class ReconcileClient(ObservedClient):
    """Reads and writes objects of any kind, as `Client` does, for one reconcile.

    The cache answers `get` and `list`, never older than what was written through this client. Reads of a specific
    resource version, with field selectors, or through `live` go to the server. An `apply` through `live` is always
    sent.
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
        """Read the objects that an index (see `Manager.index`) holds for a value, in all namespaces or in one."""
        return await self._cached(kind, f"index {name!r}").by_index(kind, name, value, namespace=namespace)

    @overload
    async def owned_by(self, kind: type[ObjectT], owner: Object | Unstructured | str) -> ListOf[ObjectT]: ...
    @overload
    async def owned_by(self, kind: Kind, owner: Object | Unstructured | str) -> ListOf[Unstructured]: ...

    async def owned_by(self, kind: type[Any] | Kind, owner: Object | Unstructured | str) -> ListOf[Any]:
        """Read the objects of a kind with an owner reference to an object or its uid."""
        return await self._cached(kind, "the owner index").owned_by(kind, owner)

    async def _send_apply(
        self, prepared: PreparedApply[AnyObject], *, resource_version: str = "", uid: str = ""
    ) -> AnyObject:
        """Send a prepared apply. Fields of this program's former names become its own first."""
        if self._formerly and not prepared.options.dry_run:
            intent = prepared.intent
            kind: type[Any] | Kind = intent.declared or Kind(intent.kind.api_version, intent.kind.kind)
            taken = await self._taken_over(kind, intent.key)
            if taken is not None:
                if self._is_known_apply(prepared):
                    return taken
                if resource_version and resource_version != NO_VERSION:
                    resource_version = resource_version_of(taken) or resource_version
        return await super()._send_apply(prepared, resource_version=resource_version, uid=uid)

    async def _taken_over(self, kind: type[Any] | Kind, key: Key) -> Any:
        """The object after its former entries were renamed; None if it had none."""
        if not self._formerly:
            return None
        seen = self._look(kind.gvk(), key)
        if seen is None:
            return None
        name, *formerly = self.field_managers
        if isinstance(seen, StoredView) and not owns_formerly(seen.stored.managed_fields, name, tuple(formerly)):
            return None
        return await take_over(self, kind, key)

    def _look(self, kind: GroupVersionKind, key: Key) -> StoredView | EllipsisType | None:
        """View an object of a watched kind at once; ``...`` if that needs the server."""
        intents = self._intents
        return intents.look(kind, key) if self._reads is not None and isinstance(intents, Applies) else ...

    def _cached(self, kind: type[Any] | Kind, what: str) -> CacheReader:
        if not isinstance(self._reads, CacheReader):
            raise NotCached(
                f"{kind_name(kind)}: {what} exists only in the cache, and this client reads from the server; use ctx.client"
                " without .live, or list with a selector"
            )
        return self._reads
