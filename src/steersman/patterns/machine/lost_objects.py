"""Objects that the server deleted although they had a finalizer.

kube-apiserver reads an object, finds no finalizer, and deletes the object in a second step. A finalizer that is added in between
does not stop it, so the object is gone before any clean-up, although a request had set the finalizer successfully.

Guarantees
- Only the last state of an object decides, which a watch from the version with the finalizer replays: the finalizer was there,
  and the deletion had never been announced. An object whose finalizer was removed by hand is not lost.
- The last state is remembered until its clean-up is complete. A clean-up may take longer than the server keeps events.
- If the server no longer has these events, the object does not count as lost, and a warning says so.
"""

from __future__ import annotations

from copy import deepcopy

from steersman.client import Deleted
from steersman.controller import Context
from steersman.errors import Expired, KindNotServed
from steersman.objects import Object
from steersman.patterns.children.memory import ChildMemory
from steersman.patterns.machine.definition import Machine
from steersman.patterns.machine.finalizer_handover import is_guarded

#: Seconds for which the server sends events. They are in the past, and a server restored from a backup may not have them.
_PATIENCE = 3
#: Seconds without a byte after which the connection counts as broken, and the reconcile is retried.
_SILENCE = 15.0


async def lost_object(ctx: Context, machine: Machine, memory: ChildMemory, present: Object | None) -> Object | None:
    """The last state of the object that had the name of this reconcile, if the server deleted it in spite of its finalizer."""
    key = ctx.request.key
    if (known := memory.lost.get(key)) is not None:
        return deepcopy(known)  # the clean-up may change it
    uid, version = memory.newly_guarded.get(key, ("", ""))
    if not uid or (present is not None and present.uid == uid):
        return None
    try:
        live = await ctx.client.live.metadata.find(machine.kind, key)
        if live is not None and live.uid == uid:
            return None  # only the cache lacks it: it may no longer match a selector
        last = await _last_state(ctx, machine.kind, uid, version)
    except (Expired, KindNotServed):
        last = None
        ctx.logger.warning(
            "%s: the object with uid %s is gone without a clean-up, and the server no longer knows why",
            ctx.request,
            uid,
        )
    memory.newly_guarded.pop(key, None)  # other objects may have displaced it meanwhile
    if last is None or last.deleting or not is_guarded(last, machine.finalizers(ctx.client.field_managers)):
        return None
    ctx.logger.warning(
        "%s: the server deleted the object with uid %s although it had a finalizer: it was added at the same moment",
        ctx.request,
        uid,
    )
    memory.lost[key] = last
    return deepcopy(last)


async def _last_state(ctx: Context, kind: type[Object], uid: str, version: str) -> Object | None:
    key = ctx.request.key
    watch = ctx.client.live.watch(
        kind,
        namespace=key.namespace or None,
        fields={"metadata.name": key.name},
        resource_version=version,
        timeout_seconds=_PATIENCE,
        idle_timeout=_SILENCE,
    )
    async with watch as events:
        async for event in events:
            if isinstance(event, Deleted) and event.object.uid == uid:
                return event.object
    return None
