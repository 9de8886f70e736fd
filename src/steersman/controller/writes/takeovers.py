"""Take over the fields that a program owns under a former name: ``Manager(name="new", formerly=("old",))``.

Guarantees
- Before an apply changes an object, the entries of the former names become entries of the current one. So the apply
  removes fields that it no longer holds, and does not conflict with the program's own past.
- One request per object, for the version that was read: a concurrent change by another writer is a `Conflict`.
- While the former program still runs and applies the same, both own the fields, and neither takes them from the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import EllipsisType
from typing import Any, TypeAlias, cast

import msgspec

from steersman.cache import StoredView
from steersman.client import NO_VERSION, ApplyStage, MergePatch, PreparedApply, Verbs
from steersman.controller.sources.views import KindLike
from steersman.errors import NotFound
from steersman.objects import AnyObject, GroupVersionKind, Key, Kind, is_manager_of, resource_version_of, to_json
from steersman.patches import moved_managers, renamed_managers

#: Views an object of a watched kind at once; ``...`` if that needs the server.
Look: TypeAlias = Callable[[GroupVersionKind, Key], StoredView | EllipsisType | None]


class _Entry(msgspec.Struct, gc=False):
    manager: str = ""


_entries = msgspec.json.Decoder(list[_Entry])


class Takeovers:
    """A stage of applying: fields of the program's former names become its own before an apply is sent.

    ``verbs`` is a client over the stages below.
    """

    def __init__(self, verbs: Verbs, look: Look | None = None) -> None:
        self._verbs = verbs
        self._inner: ApplyStage = verbs.pipeline.applies
        self._look = look

    def known(self, prepared: PreparedApply[AnyObject]) -> AnyObject | None:
        """The object, if the prepared apply would change nothing."""
        return self._inner.known(prepared)

    def is_known(self, prepared: PreparedApply[Any]) -> bool:
        """Whether the prepared apply would change nothing."""
        return self._inner.is_known(prepared)

    async def send(self, prepared: PreparedApply[AnyObject], *, resource_version: str = "", uid: str = "") -> AnyObject:
        """Send a prepared apply, after a takeover if there is anything to take over."""
        if not prepared.options.dry_run:
            intent = prepared.intent
            kind: KindLike = intent.declared or Kind(intent.kind.api_version, intent.kind.kind)
            taken = await self.take_over(kind, intent.key)
            if taken is not None:
                if self.is_known(prepared):
                    return taken
                if resource_version and resource_version != NO_VERSION:
                    resource_version = resource_version_of(taken) or resource_version
        return await self._inner.send(prepared, resource_version=resource_version, uid=uid)

    def live(self) -> Takeovers:
        """The same, which looks at the server."""
        return Takeovers(self._verbs.live)

    async def take_over(self, kind: KindLike, key: Key) -> Any:
        """Rename the former entries of an object. Returns the object after that; None if there was nothing to rename."""
        seen = ... if self._look is None else self._look(kind.gvk(), key)
        if seen is None:
            return None
        name, *formerly = self._verbs.field_managers
        if isinstance(seen, StoredView) and not _owns_formerly(seen.stored.managed_fields, name, formerly):
            return None
        return await _rewrite(self._verbs, kind, key, lambda entries: renamed_managers(entries, name, formerly))


def _owns_formerly(managed_fields: bytes, name: str, formerly: list[str]) -> bool:
    """Whether one of the former names owns fields, according to the cached entries."""
    return bool(managed_fields) and any(
        not is_manager_of(name, entry.manager) and any(is_manager_of(former, entry.manager) for former in formerly)
        for entry in _entries.decode(managed_fields)
    )


async def move_entries(client: Verbs, kind: KindLike, key: Key, old: Iterable[str], new: str) -> Any:
    """Move the fields of some managers of an object to another one. Returns the object; None if they own nothing."""
    return await _rewrite(client, kind, key, lambda entries: moved_managers(entries, old, new))


async def _rewrite(
    client: Verbs,
    kind: KindLike,
    key: Key,
    change: Callable[[Iterable[Mapping[str, Any]]], list[dict[str, Any]] | None],
) -> Any:
    """Change the managed fields of an object, in the version that is read.

    Status entries are changed through the main resource too: servers ignore ``managedFields`` sent to a subresource.
    """
    obj = await client.live.metadata.find(cast("Any", kind), key)
    if obj is None:
        return None
    metadata: dict[str, Any] = to_json(obj).get("metadata") or {}
    renamed = change(metadata.get("managedFields") or ())
    if renamed is None:
        return None
    patch = MergePatch(
        {"metadata": {"uid": obj.uid, "resourceVersion": obj.metadata.resource_version, "managedFields": renamed}}
    )
    try:
        return await client.patch(cast("Any", kind), key, patch)
    except NotFound:
        return None  # deleted since it was read
