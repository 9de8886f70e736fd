"""The client that patterns use: the stages of a reconcile's client, with the parts that patterns are built from.

`Context.client` has only the verbs: these parts may change in any version.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from types import EllipsisType
from typing import Any

from steersman.cache import StoredView
from steersman.client import Intent, PreparedApply, Verbs, prepare_apply
from steersman.controller.context import Context
from steersman.controller.writes.applies import Applies
from steersman.controller.writes.pipeline import ReconcilePipeline
from steersman.controller.writes.takeovers import Takeovers, move_entries
from steersman.objects import AnyObject, GroupVersionKind, Key, Kind, Object, Unstructured
from steersman.wire import PropagationPolicy


class InternalClient(Verbs):
    """The steps of an apply one by one, and views of cached objects, over the stages of a reconcile's client."""

    pipeline: ReconcilePipeline

    def __init__(self, pipeline: ReconcilePipeline) -> None:
        super().__init__(pipeline)

    @property
    def life(self) -> object:
        """The same object for all reconciles of one assembled controller, and for its mappers (`Stores.life`).

        A reconciler that serves several managers can keep state in a ``WeakKeyDictionary`` under it. A client without
        a cache belongs to no assembled controller: it has a life of its own.
        """
        return self if self.pipeline.memory is None else self.pipeline.memory

    @property
    def epoch(self) -> int:
        """How often the server had been restored from a backup when the reconcile began."""
        return self.pipeline.epoch

    def writing_as(self, part: str) -> InternalClient:
        """The same client, which writes under the field manager ``NAME/PART``."""
        return InternalClient(self.pipeline.writing_as(part))

    def unobserved(self) -> InternalClient:
        """The same client without cache and observers: for work that continues after the reconcile has ended."""
        return InternalClient(self.pipeline.unobserved())

    @property
    def everywhere(self) -> InternalClient:
        """The same client, which reads from the server in all namespaces, whatever the scope of the manager."""
        return InternalClient(self.pipeline.unscoped())

    async def prepare_apply(
        self,
        obj: AnyObject,
        *,
        force: bool = False,
        field_manager: str | None = None,
        subresource: str = "",
        token: bytes = b"",
    ) -> PreparedApply[AnyObject]:
        """Check and encode an apply once, for callers that decide later whether and how to send it.

        With a ``token``, a digest of its inputs, `recall_apply` can skip building it again.
        """
        return await prepare_apply(
            self.pipeline.kinds,
            self.pipeline.settings,
            obj,
            force=force,
            field_manager=field_manager,
            subresource=subresource,
            token=token,
        )

    def known_apply(self, prepared: PreparedApply[AnyObject]) -> AnyObject | None:
        """The object, if the prepared apply would change nothing; None if it must be sent."""
        return self.pipeline.applies.known(prepared)

    def is_known_apply(self, prepared: PreparedApply[Any]) -> bool:
        """Whether the prepared apply would change nothing; for callers that do not need the object."""
        return self.pipeline.applies.is_known(prepared)

    async def send_apply(
        self, prepared: PreparedApply[AnyObject], *, resource_version: str = "", uid: str = ""
    ) -> AnyObject:
        """Send a prepared apply, optionally bound to a version or a uid.

        - With a version, it applies only if the object has that version or is missing; otherwise it is a `Conflict`.
          `NO_VERSION`, a version that no object has, therefore only creates.
        - With a uid, it applies only to exactly that object; another uid is a `Conflict`.
        """
        return await self.pipeline.applies.send(prepared, resource_version=resource_version, uid=uid)

    def recall_apply(self, kind: GroupVersionKind, key: Key, token: bytes) -> StoredView | None:
        """The object, if nothing changed since an apply prepared with this token changed nothing."""
        memory = self._skipping
        return None if memory is None else memory.recall(kind, key, self.field_manager, token)

    def confirm_apply(self, view: StoredView, declared: type[Object], body: bytes, token: bytes) -> bool:
        """Whether applying ``body`` to an object that `look` returned would change nothing.

        If so, `recall_apply` finds it under the token.
        """
        memory = self._skipping
        if memory is None:
            return False
        return memory.confirm(view, Intent(view.kind, view.key, body, self.field_manager, "", declared), token)

    def writes_otherwise(self, prepared: PreparedApply[Any], answer: Object | Unstructured) -> bool:
        """Whether the server normalized an apply so that a later process would not recognize it."""
        memory = self.pipeline.memory
        return memory is not None and memory.is_written_otherwise(prepared.intent, answer)

    @property
    def _skipping(self) -> Applies | None:
        """The applies of the controller, if a cache can tell that one of them would change nothing."""
        return None if self.pipeline.cache is None else self.pipeline.memory

    def look(self, kind: GroupVersionKind, key: Key) -> StoredView | EllipsisType | None:
        """View an object of a watched kind at once; ``...`` if that needs the server, as `view` does."""
        return self.pipeline.look(kind, key)

    async def view(self, kind: type[Any] | Kind, key: Key) -> StoredView | None:
        """View an object of a cached kind without decoding it; None if it is missing. The key must be complete."""
        return await self.pipeline.cached(kind, "a view").view(kind, key)

    def has_metadata_alone(self, kind: type[Any] | Kind) -> bool:
        """Whether the cache has only the metadata of a kind: ``ctx.client.metadata`` reads it."""
        cache = self.pipeline.cache
        return cache is not None and cache.has_metadata_alone(kind)

    def is_current(self, kind: type[Any] | Kind) -> bool:
        """Whether reads of a kind miss no change but those on their way."""
        return self.pipeline.cache is None or self.pipeline.cache.is_current(kind)

    def leaves_out(self, kind: type[Any] | Kind, labels: Mapping[str, str]) -> str:
        """The label selector of the cache, if it leaves out objects of a kind with these labels; empty otherwise."""
        return self.pipeline.cached(kind, "a selector").leaves_out(kind, labels)

    async def views_owned_by(
        self, kind: type[Any] | Kind, uid: str, *, but: Container[Key] = (), namespace: str = ""
    ) -> list[StoredView]:
        """View the objects with an owner reference to a uid, except those under certain keys, without decoding them.

        ``namespace`` is that of the owner, if it has one.
        """
        cache = self.pipeline.cached(kind, "the owner index")
        return await cache.views_owned_by(kind, uid, but=but, namespace=namespace)

    async def views_labeled(
        self, kind: type[Any] | Kind, label: str, value: str, *, namespace: str = ""
    ) -> list[StoredView]:
        """View the objects with a label, in one namespace or in all, without decoding them."""
        cache = self.pipeline.cached(kind, "an index of labels")
        return await cache.views_labeled(kind, label, value, namespace=namespace)

    async def delete_seen(
        self, kind: type[Any] | Kind, seen: StoredView | Object, propagation: PropagationPolicy = "Background"
    ) -> bool:
        """Delete an object by uid, in the version that was read. Returns whether it still exists, marked for deletion.

        Raises `Conflict` if it has changed since.
        """
        version = seen.resource_version if isinstance(seen, StoredView) else seen.metadata.resource_version
        left = await self.delete(
            kind, seen.key, uid=seen.uid, resource_version=version, propagation=propagation, missing_ok=True
        )
        return left is not None

    async def take_over(self, kind: type[Any] | Kind, key: Key) -> bool:
        """Transfer the fields of this program's former names (`Manager(formerly=...)`) to it.

        Returns whether there were any.
        """
        applies = self.pipeline.applies
        return isinstance(applies, Takeovers) and await applies.take_over(kind, key) is not None

    async def move_entries(self, kind: type[Any] | Kind, key: Key, old: Iterable[str], new: str) -> None:
        """Move the fields that some field managers own on an object to another one."""
        await move_entries(self, kind, key, old, new)


def internal_client(ctx: Context) -> InternalClient:
    """A client over the stages of a reconcile's client, with its internals."""
    return InternalClient(ctx.client.pipeline)
