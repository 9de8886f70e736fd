"""The client of a reconcile with the parts that patterns are built from.

`Context.client` is one of these. Its type, `ReconcileClient`, has only the verbs: these parts may change in any version.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from copy import copy
from types import EllipsisType
from typing import Any, Self, cast

from steersman.cache import StoredView
from steersman.client import Intent, PreparedApply
from steersman.controller.context import Context
from steersman.controller.writes.applies import Applies
from steersman.controller.writes.reconcile_client import ReconcileClient
from steersman.controller.writes.takeovers import move_entries
from steersman.objects import AnyObject, GroupVersionKind, Key, Kind, Object, Unstructured


class InternalClient(ReconcileClient):
    """The steps of an apply one by one, and views of cached objects."""

    #: The names of the whole program, for a client that writes as a part of it.
    _program: tuple[str, ...] = ()
    #: How often the server had been restored from a backup when the reconcile began.
    epoch: int = 0

    def __dir__(self) -> list[str]:
        added = vars(InternalClient).keys() - dir(ReconcileClient)
        return [name for name in super().__dir__() if name not in added]

    @property
    def life(self) -> object:
        """The same object for all reconciles of one assembled controller, and for its mappers (`Stores.life`).

        A reconciler that serves several managers can keep state in a ``WeakKeyDictionary`` under it.
        """
        return self if self._intents is None else self._intents

    @property
    def field_managers(self) -> tuple[str, ...]:
        """The name under which this program owns fields, followed by its earlier names; never those of a part."""
        return self._program or super().field_managers

    def writing_as(self, part: str) -> Self:
        """The same client, which writes under the field manager ``NAME/PART``."""
        client = copy(self)
        client._program = self.field_managers  # noqa: SLF001 - it is ourselves
        client._field_manager = f"{self.field_managers[0]}/{part}"  # noqa: SLF001 - it is ourselves
        return client

    def unobserved(self) -> Self:
        """The same client without cache and observers: for work that continues after the reconcile has ended."""
        return self._unobserved()

    async def prepare_apply(
        self, obj: AnyObject, *, force: bool = False, field_manager: str | None = None, subresource: str = ""
    ) -> PreparedApply[AnyObject]:
        """Check and encode an apply once, for callers that decide later whether and how to send it."""
        return await self._prepare_apply(obj, force=force, field_manager=field_manager, subresource=subresource)

    def known_apply(self, prepared: PreparedApply[AnyObject]) -> AnyObject | None:
        """The object, if the prepared apply would change nothing; None if it must be sent."""
        return self._known_apply(prepared)

    def is_known_apply(self, prepared: PreparedApply[Any]) -> bool:
        """Whether the prepared apply would change nothing; for callers that do not need the object."""
        return self._is_known_apply(prepared)

    async def send_apply(
        self, prepared: PreparedApply[AnyObject], *, resource_version: str = "", uid: str = ""
    ) -> AnyObject:
        """Send a prepared apply, optionally bound to a version or a uid.

        - With a version, it applies only if the object has that version or is missing; otherwise it is a `Conflict`.
          `NO_VERSION`, a version that no object has, therefore only creates.
        - With a uid, it applies only to exactly that object; another uid is a `Conflict`.
        """
        return await self._send_apply(prepared, resource_version=resource_version, uid=uid)

    def recall_apply(self, kind: GroupVersionKind, key: Key, token: bytes) -> StoredView | None:
        """The object, if nothing changed since an apply noted with this token changed nothing."""
        intents = self._intents
        if self._reads is None or not isinstance(intents, Applies):
            return None
        return intents.recall(kind, key, self._field_manager, token)

    def confirm_apply(self, view: StoredView, declared: type[Object], body: bytes, token: bytes) -> bool:
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

    def look(self, kind: GroupVersionKind, key: Key) -> StoredView | EllipsisType | None:
        """View an object of a watched kind at once; ``...`` if that needs the server, as `view` does."""
        return self._look(kind, key)

    async def view(self, kind: type[Any] | Kind, key: Key) -> StoredView | None:
        """View an object of a cached kind without decoding it; None if it is missing. The key must be complete."""
        return await self._cached(kind, "a view").view(kind, key)

    def leaves_out(self, kind: type[Any] | Kind, labels: Mapping[str, str]) -> str:
        """The label selector of the cache, if it leaves out objects of a kind with these labels; empty otherwise."""
        return self._cached(kind, "a selector").leaves_out(kind, labels)

    async def views_owned_by(self, kind: type[Any] | Kind, uid: str, *, but: Container[Key] = ()) -> list[StoredView]:
        """View the objects with an owner reference to a uid, except those under certain keys, without decoding them."""
        return await self._cached(kind, "the owner index").views_owned_by(kind, uid, but=but)

    async def views_labeled(self, kind: type[Any] | Kind, label: str, value: str) -> list[StoredView]:
        """View the objects with a label, in all namespaces, without decoding them."""
        return await self._cached(kind, "an index of labels").views_labeled(kind, label, value)

    async def take_over(self, kind: type[Any] | Kind, key: Key) -> bool:
        """Transfer the fields of this program's former names (`Manager(formerly=...)`) to it.

        Returns whether there were any.
        """
        return await self._taken_over(kind, key) is not None

    async def move_entries(self, kind: type[Any] | Kind, key: Key, old: Iterable[str], new: str) -> None:
        """Move the fields that some field managers own on an object to another one."""
        await move_entries(self, kind, key, old, new)


def internal_client(ctx: Context) -> InternalClient:
    """The client of a reconcile, with its internals."""
    return cast("InternalClient", ctx.client)  # as every controller makes it
