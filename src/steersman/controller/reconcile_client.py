"""The client of one reconcile: all verbs of `Client`, every write told to the cache and to the reconcile's log.

Guarantees
- **Never older than yourself.** With a cache, what this client wrote is what it reads; so do all clients of the cache.
- **No request if nothing changed.** `apply` asks the server only if the object is not yet what it would make it (see
  `steersman.controller.applies`); what it then gives back is the object as `get` shows it, without ``managedFields``.
- Every verb that writes tells its observers before it returns, or raises (see `steersman.client.observing`).
"""

from __future__ import annotations

from collections.abc import Container, Hashable
from types import EllipsisType
from typing import Any, TypeVar, overload

from steersman.cache import View
from steersman.cache.reader import CacheReader, NotCached, kind_name
from steersman.client import ListOf
from steersman.client.observed_client import ObservedClient
from steersman.client.preparing import PreparedApply
from steersman.controller.applies import Applies
from steersman.objects import GroupVersionKind, Key, Kind, Object, Unstructured

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

    def recall_apply(self, kind: GroupVersionKind, key: Key, token: bytes) -> View | None:
        """The object, if nothing changed since an apply that was noted with this token changed nothing."""
        intents = self._intents
        if self._reads is None or not isinstance(intents, Applies):
            return None
        return intents.recall(kind, key, self._field_manager, token)

    def note_apply(self, prepared: PreparedApply[Any], token: bytes) -> None:
        """Remember what a prepared apply was built from: whoever would build it from the same need not, see `recall_apply`."""
        if isinstance(self._intents, Applies):
            self._intents.note(prepared.intent, token)

    def writes_otherwise(self, prepared: PreparedApply[Any], answer: Object | Unstructured) -> bool:
        """Whether the server wrote down something that a later process would not take for what was applied."""
        return isinstance(self._intents, Applies) and self._intents.is_written_otherwise(prepared.intent, answer)

    def look(self, kind: GroupVersionKind, key: Key) -> View | EllipsisType | None:
        """Look at an object of a watched kind at once; ``...`` if the server would have to be asked, as `view` does."""
        intents = self._intents
        return intents.look(kind, key) if self._reads is not None and isinstance(intents, Applies) else ...

    async def view(self, kind: type[Any] | Kind, key: Key) -> View | None:
        """Look at an object of a cached kind without decoding it; None if there is none. The key must be whole."""
        return await self._cached(kind, "a view").view(kind, key)

    async def views_owned_by(self, kind: type[Any] | Kind, uid: str, *, but: Container[Key] = ()) -> list[View]:
        """Look at the objects that name a uid among their owners, but those under certain keys, without decoding them."""
        return await self._cached(kind, "the owner index").views_owned_by(kind, uid, but=but)

    async def views_labelled(self, kind: type[Any] | Kind, label: str, value: str) -> list[View]:
        """Look at the objects with a label, in all namespaces, without decoding them."""
        return await self._cached(kind, "an index of labels").views_labelled(kind, label, value)

    def _cached(self, kind: type[Any] | Kind, what: str) -> CacheReader:
        if not isinstance(self._reads, CacheReader):
            raise NotCached(
                f"{kind_name(kind)}: {what} is kept by the cache, and this client reads from the server; use ctx.client"
                " without .live, or list with a selector"
            )
        return self._reads
