"""Children beyond the reach of an owner reference whose owner is gone, although its finalizer never ran.

A restored backup without the owner leaves them behind, and so does a finalizer that was removed by hand. The garbage collector
deletes children with an owner reference in such a case; these have only a label.

Guarantees
- Steersman deletes only what its own field manager labeled, by uid and in the version that was read, and only after the server
  itself answered that no owner with that uid exists.
- A later owner of the same name gets new children. Kinds whose owner references the program declares itself are left alone:
  such a child may outlive its owner.
"""

from __future__ import annotations

from typing import Any, cast

from steersman.cache import StoredView
from steersman.controller import Context, internal_client
from steersman.errors import KindNotServed
from steersman.patterns.children.change_log import log_change
from steersman.patterns.children.kinds import ChildIdentity, ProducedKind
from steersman.patterns.children.membership import OWNER_UID_LABEL, is_far_child
from steersman.patterns.children.memory import ChildMemory


async def delete_ownerless(ctx: Context, memory: ChildMemory, *, owner_uid: str = "") -> None:
    """Delete the labeled children of owners that had this reconcile's name before the owner with ``owner_uid``."""
    key, orphans = ctx.request.key, list[tuple[ProducedKind, StoredView, str]]()
    earlier = memory.earlier_owners(key, owner_uid)
    if not earlier:
        return
    for uid in earlier:
        for produced in memory.children.all_kinds:
            if produced.may_be_far and produced.owner_references:
                try:
                    labeled = await internal_client(ctx).views_labeled(produced.kind, OWNER_UID_LABEL, uid)
                except KindNotServed:
                    continue  # a kind without a definition has no objects
                far = [view for view in labeled if is_far_child(view, uid, key.namespace)]
                orphans += [(produced, view, uid) for view in far if not view.deleting]
    if orphans:
        owner = await ctx.client.live.find(cast("Any", memory.children.primary), key)
        for produced, view, uid in orphans:
            if owner is None or owner.metadata.uid != uid:
                # If it changed since, this raises a Conflict: the next reconcile looks again, as the owner is not forgotten.
                await internal_client(ctx).delete_seen(produced.kind, view)
                identity = ChildIdentity(produced.group_kind, view.key)
                log_change(ctx, "deleted", identity, f"its owner, with uid {uid}, no longer exists")
    memory.forget_owners(key, earlier)
