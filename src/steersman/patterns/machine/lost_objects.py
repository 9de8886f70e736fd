"""Objects that the server deleted although they had a finalizer.

kube-apiserver reads an object, finds no finalizer, and deletes the object in a second step. A finalizer that is added in between
does not stop it, so the object is gone before any clean-up, although a request had set the finalizer successfully.

Guarantees
- Only the last state of an object decides, which a watch from the version with the finalizer replays: the finalizer was there,
  and the deletion had never been announced. An object whose finalizer was removed by hand is not lost.
- If the server no longer has these events, the object does not count as lost, and a warning says so.
"""

from __future__ import annotations

from steersman.client import Deleted
from steersman.controller import Context
from steersman.errors import Expired
from steersman.objects import Object
from steersman.patterns.children.memory import ChildMemory
from steersman.patterns.machine.definition import Machine
from steersman.patterns.machine.finalizer_handover import is_guarded

#: The events are in the past. A server that was restored from a backup may not have them.
_PATIENCE = 3


async def lost_object(ctx: Context, machine: Machine, memory: ChildMemory, present: Object | None) -> Object | None:
    """The last state of the object that had the name of this reconcile, if the server deleted it in spite of its finalizer."""
    key = ctx.request.key
    uid, version = memory.newly_guarded.get(key, ("", ""))
    if not uid or (present is not None and present.uid == uid):
        return None
    last = await _last_state(ctx, machine.kind, uid, version)
    if last is not None and not last.deleting and is_guarded(last, machine.finalizers(ctx.client.field_managers)):
        return last
    del memory.newly_guarded[key]
    return None


async def _last_state(ctx: Context, kind: type[Object], uid: str, version: str) -> Object | None:
    key = ctx.request.key
    watch = ctx.client.live.watch(
        kind,
        namespace=key.namespace or None,
        fields={"metadata.name": key.name},
        resource_version=version,
        timeout_seconds=_PATIENCE,
    )
    try:
        async with watch as events:
            async for event in events:
                if isinstance(event, Deleted) and event.object.uid == uid:
                    return event.object
    except Expired:
        ctx.logger.warning(
            "%s: the object with uid %s is gone without a clean-up, and the server no longer knows why",
            ctx.request,
            uid,
        )
    return None
