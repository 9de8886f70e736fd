"""Take over the fields that a program owns under a former name: ``Manager(name="new", formerly=("old",))``.

Guarantees
- Before an apply changes an object, the entries of the former names become entries of the current one. So the apply
  removes fields that it no longer holds, and does not conflict with the program's own past.
- One request per object, for the version that was read: a concurrent change by another writer is a `Conflict`.
- While the former program still runs and applies the same, both own the fields, and neither takes them from the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from steersman.client import MergePatch
from steersman.controller.sources.events import KindLike
from steersman.errors import NotFound
from steersman.objects import Key, is_manager_of, to_json
from steersman.patches import moved_managers, renamed_managers


class _Entry(msgspec.Struct, gc=False):
    manager: str = ""


_entries = msgspec.json.Decoder(list[_Entry])


def owns_formerly(managed_fields: bytes, name: str, formerly: tuple[str, ...]) -> bool:
    """Whether one of the former names owns fields, according to the cached entries."""
    if not managed_fields or not formerly:
        return False
    return any(
        not is_manager_of(name, entry.manager) and any(is_manager_of(former, entry.manager) for former in formerly)
        for entry in _entries.decode(managed_fields)
    )


async def take_over(client: Any, kind: KindLike, key: Key) -> Any:
    """Rename the former entries of an object. Returns the object after that; None if there was nothing to rename."""
    name, *formerly = client.field_managers
    return await _rewrite(client, kind, key, lambda entries: renamed_managers(entries, name, formerly))


async def move_entries(client: Any, kind: KindLike, key: Key, old: Iterable[str], new: str) -> Any:
    """Move the fields of some managers of an object to another one. Returns the object; None if they own nothing."""
    return await _rewrite(client, kind, key, lambda entries: moved_managers(entries, old, new))


async def _rewrite(
    client: Any, kind: KindLike, key: Key, change: Callable[[Iterable[Mapping[str, Any]]], list[dict[str, Any]] | None]
) -> Any:
    """Change the managed fields of an object, in the version that is read.

    Status entries are changed through the main resource too: servers ignore ``managedFields`` sent to a subresource.
    """
    found = await client.metadata.find(cast("Any", kind), key)
    if found is None:
        return None
    metadata: dict[str, Any] = to_json(found).get("metadata") or {}
    renamed = change(metadata.get("managedFields") or ())
    if renamed is None:
        return None
    patch = MergePatch(
        {"metadata": {"uid": found.uid, "resourceVersion": found.metadata.resource_version, "managedFields": renamed}}
    )
    try:
        return await client.patch(cast("Any", kind), key, patch)
    except NotFound:
        return None  # deleted since it was read
