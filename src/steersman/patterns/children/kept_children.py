"""Children that are never pruned: declared with ``prune=False``, or adopted by their labels.

Guarantees
- The proof is in ``managedFields``: a part of the program (`KEPT`, `CLAIMED`) holds the mark of the owner, and the program itself
  does not. A user or a tool that replaces annotations or labels cannot remove the proof.
- The annotation that says the same to people, and to earlier releases of this program, is restored when it is lost.
- Children of earlier releases have only the annotation. Their mark moves to the part as soon as a reconcile sees them.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from steersman.cache import StoredView
from steersman.client import MergePatch
from steersman.controller import Context, InternalClient, KindLike, internal_client
from steersman.errors import NotFound
from steersman.objects import Object
from steersman.patterns.children.kinds import ChildIdentity
from steersman.patterns.children.membership import (
    CLAIMED,
    KEEPING_ANNOTATIONS,
    keeping_part,
    kept_by,
    markers_of,
)
from steersman.patterns.children.memory import ChildMemory

#: Stands for the intent of a restored annotation in the write history.
_RESTORED = b"restored"


def client_of(client: InternalClient, part: str) -> InternalClient:
    """The client that writes children of a part; the program itself without one."""
    return client.writing_as(part) if part else client


async def with_mark_of(
    client: InternalClient, memory: ChildMemory, kind: KindLike, view: StoredView, uid: str, part: str
) -> StoredView | None:
    """The child after the mark of its owner was moved to this part of the program; None if it was deleted meanwhile.

    The mark moves once for each part. While an earlier release runs too, both would otherwise move it forever.
    """
    held = markers_of(view, uid)
    leaving = [manager for manager in held if keeping_part(manager) != part]
    if not leaving:
        return view
    with memory.moves_mark_first(view.uid, part) as first:
        if not first:
            return view
        await client.move_entries(kind, view.key, leaving, _named(client.field_managers[0], part))
    return await client.view(kind, view.key)


def _named(name: str, part: str) -> str:
    return f"{name}/{part}" if part else name


async def keep(ctx: Context, owner: Object, memory: ChildMemory, kind: KindLike, view: StoredView) -> None:
    """Move the mark of a kept child to its part, and restore its annotation."""
    client, uid = internal_client(ctx), owner.uid
    part = kept_by(view, uid)
    moved = await with_mark_of(client, memory, kind, view, uid, part)
    if moved is None:
        return
    name, value = KEEPING_ANNOTATIONS[part]
    if name in (moved.metadata.annotations or {}):
        return
    identity = ChildIdentity(moved.kind.group_kind, moved.key)
    now = asyncio.get_running_loop().time()
    if memory.conflicts.held(owner.key, identity, _RESTORED, now):
        return
    memory.conflicts.wrote(owner.key, identity, _RESTORED, now)
    metadata = {"uid": moved.uid, "resourceVersion": moved.resource_version, "annotations": {name: value}}
    try:
        await client_of(client, part).patch(cast("Any", kind), moved.key, MergePatch({"metadata": metadata}))
    except NotFound:
        return  # deleted since it was read
    ctx.logger.info("%s: restored annotation %s of %s", ctx.request, name, identity)


async def keep_claimed(ctx: Context, owner: Object, memory: ChildMemory, kind: KindLike) -> None:
    """Do the same for all adopted objects of a kind, before their labels decide whether they are released."""
    for view in await internal_client(ctx).views_owned_by(kind, owner.uid, namespace=owner.key.namespace):
        if not view.deleting and kept_by(view, owner.uid) == CLAIMED:
            await keep(ctx, owner, memory, kind, view)
