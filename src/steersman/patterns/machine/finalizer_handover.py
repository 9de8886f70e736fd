"""Set the finalizer of a machine on live objects, and remove it, with those of earlier versions, after the clean-up.

Guarantees
- A finalizer of an earlier version or of a former name is removed only where the current one is in place, or after the clean-up.
- The default of earlier releases, which other programs may share, is removed only if no other program added it. On a live object,
  Steersman gives it up, so that another program that needs it adds it again under its own name.
- It is given up once in the life of a controller: while an earlier release of the same program runs too, that one adds it again.
  A request that failed does not count.
- While the watch of the kind is interrupted, and until the next one shows something, the server is asked whether the deletion
  still stands, before anything is cleaned up.
"""

from __future__ import annotations

from steersman.controller import Context, internal_client
from steersman.objects import Object
from steersman.patterns.children.memory import ChildMemory
from steersman.patterns.machine.finalizer_names import Finalizers, added_by, other_program
from steersman.patterns.machine.finalizers import add_finalizer, has_finalizer, remove_finalizer


def is_guarded(obj: Object, names: Finalizers) -> bool:
    """Whether an object has a finalizer for which this machine cleans up."""
    present = obj.metadata.finalizers
    return bool(present) and any(name in present for name in names.all)


async def is_ending(ctx: Context, obj: Object) -> bool:
    """Whether an object that is being deleted still is: a server restored from a backup may have taken that back.

    Without a healthy watch, only the server knows.
    """
    if internal_client(ctx).is_current(type(obj)):
        return True
    present = await ctx.client.live.metadata.find(type(obj), obj.key)
    return present is not None and present.uid == obj.uid and present.deleting


async def set_finalizer(
    ctx: Context, obj: Object, names: Finalizers, memory: ChildMemory, *, needed: bool
) -> Object | None:
    """The live object with the current finalizer, if it is needed, and without earlier ones; None if it is gone."""
    if needed and not has_finalizer(obj, names.current):
        # Before the request too: its answer can be lost although the server has set the finalizer.
        memory.note_finalizer(obj)
        obj = await add_finalizer(ctx.client, obj, names.current)
        memory.note_finalizer(obj)
    given_up = names.retired
    if has_finalizer(obj, names.current):
        given_up += (*names.former, *names.shared)
    earlier = memory.keeps(obj.uid, _present(obj, given_up))
    if not earlier:
        return obj
    own = await _own_entries(ctx, obj) if any(name in names.shared for name in earlier) else b""
    leaving = [name for name in earlier if name not in names.shared or added_by(own, name)]
    left = await remove_finalizer(ctx.client, obj, *leaving)
    memory.note_given_up(obj.uid, earlier)
    return left


async def drop_finalizers(ctx: Context, obj: Object, names: Finalizers) -> str:
    """Remove the finalizers after the clean-up. Returns which one stays and which program set it; empty without one."""
    stays, leaving = "", list(names.own)
    for name in _present(obj, names.shared):
        if other := await _other_owner(ctx, obj, name):
            stays = f"field manager {other}, which set finalizer {name}"
        else:
            leaving.append(name)
    await remove_finalizer(ctx.client, obj, *leaving)
    return stays


def _present(obj: Object, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if has_finalizer(obj, name)]


async def _own_entries(ctx: Context, obj: Object) -> bytes:
    view = await internal_client(ctx).view(type(obj), obj.key)
    return b"" if view is None or view.uid != obj.uid else view.stored.managed_fields


async def _other_owner(ctx: Context, obj: Object, name: str) -> str:
    if added_by(await _own_entries(ctx, obj), name):
        return ""
    present = await ctx.client.live.metadata.find(type(obj), obj.key)
    if present is None or present.uid != obj.uid:
        return ""
    return other_program(present.metadata.managed_fields or (), name, ctx.client.field_managers)
