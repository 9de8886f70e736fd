"""Children that are not in the cache: made in other namespaces by an earlier version of the program, or before it was limited to some.

Guarantees
- Before the finalizer of an owner goes, the server itself is asked for children that only a label holds, in all namespaces.
  Nothing else would ever find them again.
- Only what our own field manager marked is deleted, by uid and in the version that was seen. What carries the label and was
  marked by somebody else is left, and told of.
- Where the server cannot be asked, that is said, and the owner stays.
"""

from __future__ import annotations

from typing import Any, cast

from steersman.client.missing import KindNotServed
from steersman.controller import Context, KindLike
from steersman.objects import Object, PartialObjectMetadata
from steersman.objects.errors import Conflict, Forbidden
from steersman.patterns.children import Children, Identity
from steersman.patterns.membership import OWNER_UID_LABEL, standing

#: Seconds after which children are looked for again of which no event tells.
LOOK_AGAIN = 5.0


async def delete_unseen(ctx: Context, owner: Object, children: Children, *, unexplained: bool) -> tuple[str, ...]:
    """Delete what only a label holds, and say what still stands; nothing when all is gone.

    The server looks through all objects of a kind for it, so only those kinds are asked for of which such children are
    declared. ``unexplained``: nothing that is declared explains the finalizer, so an earlier version had such children, and
    all kinds are asked for.
    """
    if not owner.key.namespace:
        return ()  # references hold all
    left: list[str] = []
    for kind, group_kind, labelled in children.all_kinds:
        if not labelled and not unexplained:
            continue
        try:
            listed = await ctx.client.metadata.list(kind, labels={OWNER_UID_LABEL: owner.uid})
        except (Forbidden, KindNotServed) as error:
            left.append(f"children of kind {group_kind.kind} cannot be looked for in all namespaces: {error}")
            continue
        for found in listed:
            # in the namespace of its owner a reference would hold it
            if found.key.namespace != owner.key.namespace:
                left += await _delete(ctx, owner, kind, Identity(group_kind, found.key), found)
    return tuple(left)


async def _delete(
    ctx: Context, owner: Object, kind: KindLike, identity: Identity, found: PartialObjectMetadata
) -> tuple[str, ...]:
    metadata = found.metadata
    controlled = any(each.controller for each in metadata.owner_references or ())
    if controlled or standing(metadata, owner.uid, "label", ctx.client.field_manager) != "ours":
        note = (
            f"{identity} carries the label {OWNER_UID_LABEL}, but this program has not written it; it is left as it is"
        )
        ctx.events.record(owner, "Warning", "LeftBehind", "Deleting", note)
        return ()
    if metadata.deletion_timestamp is None:
        try:
            marked = await ctx.client.delete(
                cast("Any", kind),
                identity.key,
                uid=metadata.uid,
                resource_version=metadata.resource_version,
                propagation="Background",
                missing_ok=True,
            )
        except Conflict:
            return (f"{identity} has just changed and is looked at again",)
        if marked is None:
            return ()
    held = ", ".join(metadata.finalizers or ())
    return (f"{identity} is being deleted{f', held by {held}' if held else ''}",)
