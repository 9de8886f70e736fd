"""Children outside the cache: in namespaces that an earlier version used, or that the manager no longer watches.

Guarantees
- Before Steersman removes the finalizer of an owner, it lists children that only a label ties to it, in all namespaces. Nothing
  else would ever find them.
- It deletes only what its own field manager marked, by uid and in the version that was read. Objects that another writer
  labeled stay, and a Warning event names them.
- If the list fails, the owner stays, and its condition says why. A kind without a CRD has no objects.
"""

from __future__ import annotations

from steersman.controller import Context, KindLike, internal_client
from steersman.errors import Conflict, Forbidden, KindNotServed
from steersman.objects import GroupKind, Object, PartialObjectMetadata
from steersman.patterns.children.change_log import log_change
from steersman.patterns.children.kinds import ChildIdentity, Children
from steersman.patterns.children.membership import OWNER_UID_LABEL, Bond, standing

#: Seconds between two searches for children that send no events.
LOOK_AGAIN = 5.0


async def delete_uncached(ctx: Context, owner: Object, children: Children, *, unexplained: bool) -> tuple[str, ...]:
    """Delete children that only a label ties to their owner. Returns a sentence for each that still exists.

    The server scans all objects of a kind for this, so Steersman lists only kinds that can have such children. ``unexplained``: no
    declared kind explains the finalizer, so an earlier version had such children, and Steersman lists all kinds.
    """
    if not owner.key.namespace:
        return ()  # owner references hold all children
    left: list[str] = []
    for produced in children.all_kinds:
        kind, group_kind = produced.kind, produced.group_kind
        if not produced.may_be_far and not unexplained:
            continue
        bond: Bond = "label" if produced.owner_references else "label_alone"
        try:
            listed = await internal_client(ctx).everywhere.metadata.list(kind, labels={OWNER_UID_LABEL: owner.uid})
        except (Forbidden, KindNotServed) as error:
            if isinstance(error, KindNotServed) and not await _is_served(ctx, group_kind):
                continue  # its CRD is gone, and with it all objects
            left.append(f"cannot list children of kind {group_kind.kind} in all namespaces: {error}")
            continue
        for obj in listed:
            # In the owner's namespace, references decide.
            if obj.key.namespace != owner.key.namespace:
                left += await _delete(ctx, owner, kind, ChildIdentity(group_kind, obj.key), obj, bond)
    return tuple(left)


async def _is_served(ctx: Context, kind: GroupKind) -> bool:
    """Whether the server serves a kind in any version, as of now; True in doubt."""
    discovery = ctx.client.discovery
    discovery.invalidate()
    served = any(
        resource.group == kind.group and resource.kind == kind.kind for resource in await discovery.resources()
    )
    return served or any(resource.group == kind.group for resource in await discovery.failures())


async def _delete(
    ctx: Context, owner: Object, kind: KindLike, identity: ChildIdentity, obj: PartialObjectMetadata, bond: Bond
) -> tuple[str, ...]:
    metadata = obj.metadata
    controlled = bond == "label" and any(reference.controller for reference in metadata.owner_references or ())
    if controlled or standing(metadata, owner.uid, bond, ctx.client.field_managers) != "ours":
        note = (
            f"{identity} has the label {OWNER_UID_LABEL}, but this program did not set it; Steersman leaves"
            " it unchanged"
        )
        ctx.events.record(owner, "Warning", "LeftBehind", "Deleting", note)
        return ()
    if metadata.deletion_timestamp is None:
        try:
            exists = await internal_client(ctx).delete_seen(kind, obj)
        except Conflict:
            return (f"{identity} has just changed; Steersman checks it again",)
        log_change(ctx, "deleted", identity, f"{owner.kind} {owner.key} is being deleted")
        if not exists:
            return ()
    held = ", ".join(metadata.finalizers or ())
    return (f"{identity} is being deleted{f', held by {held}' if held else ''}",)
