"""Write a status that another program may keep changing back, for example because it sets the same condition.

Guarantees
- The same status is repeated only with growing pauses (see `children.conflicts`), and a Warning event names the other field
  manager. A status with new content is written immediately.
"""

from __future__ import annotations

import asyncio
from hashlib import blake2b

import msgspec

from steersman.controller import Context, internal_client
from steersman.objects import Object
from steersman.patterns.children import ChildIdentity
from steersman.patterns.children.conflicts import WriteConflicts, find_other_writer
from steersman.patterns.status.conditions import Observations
from steersman.patterns.status.draft import StatusDraft, Tree


async def write_unless_contested(
    ctx: Context,
    obj: Object,
    conflicts: WriteConflicts,
    draft: StatusDraft,
    observations: Observations,
    *,
    complete: bool,
    after: Tree | None,
) -> float | None:
    """Write the observations; if they are held back, return the seconds until the next attempt."""
    if not draft.speaks:
        return None
    place, fresh = ChildIdentity(type(obj).gvk().group_kind, obj.key), False
    after = draft.after if after is None else after
    if conflicts.knows(obj.key, place):
        said = _said(obj, observations, after)
        held = conflicts.held(obj.key, place, said, _now())
        if held:
            return held
        if conflicts.is_hot(obj.key, place, said, _now()):
            fresh = conflicts.other_writer(obj.key, place) is None
            await find_other_writer(internal_client(ctx), conflicts, obj.key, type(obj), place, subresource="status")
    if not await draft.write(observations, complete=complete, after=after):
        return None
    if conflicts.wrote(obj.key, place, _said(obj, observations, after), _now()) and fresh:
        other_writer = conflicts.other_writer(obj.key, place)
        note = f"{other_writer} keeps reverting its status, so Steersman writes it only now and then"
        ctx.logger.warning("%s: %s", ctx.request, note)
        ctx.events.record(obj, "Warning", "Contested", "Reporting", note)
    return None


def _said(obj: Object, observations: Observations, after: Tree) -> bytes:
    """A hash of the status: our conditions, and the fields that states set."""
    rest = {name: value for name, value in after.items() if name != "conditions"}
    made_of = msgspec.json.encode([observations, rest, obj.generation, obj.uid], order="deterministic")
    return blake2b(made_of, digest_size=16).digest()


def _now() -> float:
    return asyncio.get_running_loop().time()
