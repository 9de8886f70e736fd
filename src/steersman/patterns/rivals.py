"""Who else writes an object, for the words of a condition."""

from __future__ import annotations

from typing import Any, cast

from steersman.controller import KindLike, ReconcileClient
from steersman.objects import Key
from steersman.objects.field_managers import is_manager_of
from steersman.patterns.children import Identity
from steersman.patterns.contests import Contests


async def meet_rival(
    client: ReconcileClient,
    contests: Contests,
    owner: Key,
    kind: KindLike,
    identity: Identity,
    *,
    subresource: str = "",
) -> None:
    """Find out, once, who writes back what we write."""
    if contests.rival(owner, identity) is None:
        contests.met(owner, identity, await _rival_of(client, kind, identity, subresource))


async def _rival_of(client: ReconcileClient, kind: KindLike, identity: Identity, subresource: str) -> str:
    """The field manager other than our own that wrote an object last, asked of the server; "somebody" if none is named."""
    found = await client.metadata.find(cast("Any", kind), identity.key)
    entries = (found.metadata.managed_fields or ()) if found is not None else ()
    own = client.field_manager
    others = [
        each
        for each in entries
        if each.manager and not is_manager_of(own, each.manager)
        if (each.subresource or "") == subresource
    ]
    if not others:
        # one who deletes leaves no name, an admission webhook has none, and this program may be at odds with itself
        return "somebody"
    last = max(others, key=lambda each: each.time.timestamp() if each.time else 0.0)
    return f'"{last.manager}"'
