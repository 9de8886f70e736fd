"""The client of one reconcile: all verbs of `Client`; every write is reported to the cache and to the reconcile's log.

Guarantees
- **Never older than yourself.** With a cache, this client reads what it wrote, and so do all clients of the cache.
- **No request if nothing changed.** `apply` is sent only if the object does not match it yet (see
  `steersman.controller.applies`). Otherwise it returns the object as `get` does, without ``managedFields``.
- Every verb that writes calls its observers before it returns or raises (see `steersman.client.observing`).
"""

from __future__ import annotations

from collections.abc import Container, Hashable
from types import EllipsisType
from typing import Any, TypeVar, overload

from steersman.cache import View
from steersman.cache.reader import CacheReader, kind_name
from steersman.client import ListOf
from steersman.client.bindings import AnyObject, resource_version_of
from steersman.client.observed_client import ObservedClient
from steersman.client.observing import Intent
from steersman.client.preparing import NO_VERSION, PreparedApply
from steersman.controller.applies import Applies
from steersman.controller.takeovers import owns_formerly, take_over
from steersman.errors import NotCached
from steersman.objects import GroupVersionKind, Key, Kind, Object, Unstructured

ObjectT = TypeVar("ObjectT", bound=Object)


class ReconcileClient(ObservedClient):
    """Reads and writes objects of any kind, as `Client` does, for one reconcile.

    The cache answers `get` and `list`, never older than what was written through this client. Reads of a specific
    resource version, with field selectors, or through `live` go to the server. An `apply` through `live` is always
    sent.
    """

    @property
    def life(self) -> object:
        """The same object for all reconciles of one assembled controller, and for its mappers (`Stores.life`).

        A reconciler that serves several managers can keep state in a ``WeakKeyDictionary`` under it.
        """
        return self if self._intents is None else self._intents

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

    async def take_over(self, kind: type[Any] | Kind, key: Key) -> bool:
        """Transfer the fields of this program's former names (`Manager(formerly=...)`) to it.

        Returns whether there were any.
        """
        return await self._taken_over(kind, key) is not None

    async def send_apply(
        self, prepared: PreparedApply[AnyObject], *, resource_version: str = "", uid: str = ""
    ) -> AnyObject:
        """Send a prepared apply. Fields of this program's former names become its own first."""
        if self._formerly and not prepared.options.dry_run:
            intent = prepared.intent
            kind: type[Any] | Kind = intent.declared or Kind(intent.kind.api_version, intent.kind.kind)
            taken = await self._taken_over(kind, intent.key)
            if taken is not None:
                if self.is_known_apply(prepared):
                    return taken
                if resource_version and resource_version != NO_VERSION:
                    resource_version = resource_version_of(taken) or resource_version
        return await super().send_apply(prepared, resource_version=resource_version, uid=uid)

    async def _taken_over(self, kind: type[Any] | Kind, key: Key) -> Any:
        """The object after its former entries were renamed; None if it had none."""
        if not self._formerly:
            return None
        seen = self.look(kind.gvk(), key)
        if seen is None:
            return None
        name, *formerly = self.field_managers
        if isinstance(seen, View) and not owns_formerly(seen.stored.managed_fields, name, tuple(formerly)):
            return None
        return await take_over(self, kind, key)

    def recall_apply(self, kind: GroupVersionKind, key: Key, token: bytes) -> View | None:
        """The object, if nothing changed since an apply noted with this token changed nothing."""
        intents = self._intents
        if self._reads is None or not isinstance(intents, Applies):
            return None
        return intents.recall(kind, key, self._field_manager, token)

    def confirm_apply(self, view: View, declared: type[Object], body: bytes, token: bytes) -> bool:
        """Whether applying ``body`` to an object that `look` returned would change nothing.

        If so, `recall_apply` finds it under the token.
        """
        intents = self._intents
        if self._reads is None or not isinstance(intents, Applies):
            return False
        return intents.confirm(view, Intent(view.kind, view.key, body, self._field_manager, "", declared), token)

    def note_apply(self, prepared: PreparedApply[Any], token: bytes) -> None:
        """Remember the inputs of a prepared apply, so that `recall_apply` can skip building it again."""
        if isinstance(self._intents, Applies):
            self._intents.note(prepared.intent, token)

    def writes_otherwise(self, prepared: PreparedApply[Any], answer: Object | Unstructured) -> bool:
        """Whether the server normalized an apply so that a later process would not recognize it."""
        return isinstance(self._intents, Applies) and self._intents.is_written_otherwise(prepared.intent, answer)

    def look(self, kind: GroupVersionKind, key: Key) -> View | EllipsisType | None:
        """View an object of a watched kind at once; ``...`` if that needs the server, as `view` does."""
        intents = self._intents
        return intents.look(kind, key) if self._reads is not None and isinstance(intents, Applies) else ...

    async def view(self, kind: type[Any] | Kind, key: Key) -> View | None:
        """View an object of a cached kind without decoding it; None if it is missing. The key must be complete."""
        return await self._cached(kind, "a view").view(kind, key)

    async def views_owned_by(self, kind: type[Any] | Kind, uid: str, *, but: Container[Key] = ()) -> list[View]:
        """View the objects with an owner reference to a uid, except those under certain keys, without decoding them."""
        return await self._cached(kind, "the owner index").views_owned_by(kind, uid, but=but)

    async def views_labelled(self, kind: type[Any] | Kind, label: str, value: str) -> list[View]:
        """View the objects with a label, in all namespaces, without decoding them."""
        return await self._cached(kind, "an index of labels").views_labelled(kind, label, value)

    def _cached(self, kind: type[Any] | Kind, what: str) -> CacheReader:
        if not isinstance(self._reads, CacheReader):
            raise NotCached(
                f"{kind_name(kind)}: {what} exists only in the cache, and this client reads from the server; use ctx.client"
                " without .live, or list with a selector"
            )
        return self._reads
