"""Writing a status that somebody else may write back, as a second program does that sets the same condition.

Guarantees
- The same status is written again and again only with growing pauses (see `contests`), and a Warning event names who else
  writes it. A status that says something new is written at once.
"""

from __future__ import annotations

import asyncio
from hashlib import blake2b
from typing import Any, cast

import msgspec

from steersman.controller import Context
from steersman.objects import Object, to_json
from steersman.patterns.children import Identity
from steersman.patterns.conditions import Observations
from steersman.patterns.contests import Contests
from steersman.patterns.rivals import meet_rival
from steersman.patterns.status import StatusDraft, Tree


async def write_unless_contested(
    ctx: Context,
    obj: Object,
    contests: Contests,
    draft: StatusDraft,
    observations: Observations,
    *,
    complete: bool,
    after: Tree | None,
) -> float | None:
    """Write what was observed; if that is held back, the seconds after which to try again."""
    place, fresh = Identity(type(obj).gvk().group_kind, obj.key), False
    if contests.knows(obj.key, place):
        said = _said(obj, observations, after)
        held = contests.held(obj.key, place, said, _now())
        if held:
            return held
        if contests.is_hot(obj.key, place, said, _now()):
            fresh = contests.rival(obj.key, place) is None
            await meet_rival(ctx.client, contests, obj.key, type(obj), place, subresource="status")
    if not await draft.write(observations, complete=complete, after=after):
        return None
    if contests.wrote(obj.key, place, _said(obj, observations, after), _now()) and fresh:
        rival = contests.rival(obj.key, place)
        note = (
            f"its status is changed back by {rival} as often as it is written, so that it is written only now and then"
        )
        ctx.logger.warning("%s: %s", ctx.request, note)
        ctx.events.record(obj, "Warning", "Contested", "Reporting", note)
    return None


def _said(obj: Object, observations: Observations, after: Tree | None) -> bytes:
    """What a status says, in short: our conditions, and what states set beside them."""
    whole = cast("dict[str, Any]", to_json(obj).get("status") or {}) if after is None else after
    rest = {name: value for name, value in whole.items() if name != "conditions"}
    made_of = msgspec.json.encode([observations, rest, obj.generation, obj.uid], order="deterministic")
    return blake2b(made_of, digest_size=16).digest()


def _now() -> float:
    return asyncio.get_running_loop().time()
