"""Taking children away: those that are declared no longer, and all of them, in order, when their owner goes.

Guarantees
- Only what provably belongs to the owner, and was made under our own field manager, is deleted, by uid and in the version that
  was seen: what changed since is looked at again first. What somebody else controls or made, and what is being deleted
  already, is left alone. So is what was applied in the same pass, under whatever name the server keeps it.
- What is made again as often as it is pruned, by the same program, is pruned now and then, and that is an error.
- What the user wanted to keep (``--cascade=orphan``) is not deleted, as far as the server would keep it.
- `prune` deletes only what states that completed would have declared. A pass that stopped early prunes nothing of the
  states that it did not complete.
- `delete_in_order` touches a phase only when every later one is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import msgspec

from steersman.aio import Supervisor
from steersman.cache import View
from steersman.controller import Context, KindLike, ReconcileClient
from steersman.objects import GroupKind, Key, Object
from steersman.objects.errors import Conflict
from steersman.patterns.children import Children, Identity
from steersman.patterns.membership import (
    OWNER_UID_LABEL,
    PHASE_LABEL,
    PRUNE_ANNOTATION,
    depth_of,
    standing_of,
    state_of,
    was_marked,
)
from steersman.patterns.problems import made_again
from steersman.wire.options import PropagationPolicy

#: Requests that are under way at once.
_AT_ONCE = 8
#: Groups of Kubernetes' own whose objects make others, which are waited for when an order is kept.
_MAKERS = frozenset({"apps", "batch"})
#: The server's own finalizer of objects whose dependents are to stay.
_ORPHAN = "orphan"
#: What is done to a child that is declared no longer, in place of what it is made of.
_PRUNED = b"pruned"


_NO_KEYS: frozenset[Key] = frozenset()
_LEFT = {"marked": "is being deleted", "changed": "has just changed and is looked at again"}


class Pruned(msgspec.Struct, frozen=True):
    """A child that was deleted because it is declared no longer."""

    identity: Identity
    #: The state that had declared it; empty if it does not say.
    phase: str = ""

    def __str__(self) -> str:
        return str(self.identity)


class _Member(msgspec.Struct, frozen=True):
    kind: KindLike
    identity: Identity
    view: View

    @property
    def phase(self) -> str:
        return self.view.labels.get(PHASE_LABEL, "")


async def prune(
    ctx: Context,
    owner: Object,
    children: Children,
    declared: Collection[Identity],
    *,
    applied: Collection[str] = (),
    phases: Collection[str] | None,
    spared: Collection[str] = (),
    seen: Mapping[Identity, str] | None = None,
) -> tuple[Pruned, ...]:
    """Delete the children that no state declared, of the phases that were completed; None: of all, the pass reached its end.

    ``applied`` are the uids of what was applied in this pass, and stays. ``spared`` are the states that a pass left aside on its way to the end: their children stay. So do those that are not
    among ``seen``, if it is given: what a state was seen to declare (see `steersman.patterns.declarations`).
    """
    if phases is not None and not phases:
        return ()
    leaving: list[_Member] = []
    for member in await _members(ctx, owner, children, but=declared):
        phase = state_of(member.phase)
        if member.view.uid in applied:
            continue  # declared under another name than the server keeps it by
        if member.view.deleting or phase in spared or (phases is not None and phase not in phases):
            continue
        if seen is not None and seen.get(member.identity) != phase:
            continue  # a new version of the program may have moved it to a state that this pass did not reach
        if (member.view.metadata.annotations or {}).get(PRUNE_ANNOTATION) != "false":
            leaving.append(member)
    return await _prune(ctx, owner, children, leaving) if leaving else ()


async def _prune(ctx: Context, owner: Object, children: Children, leaving: list[_Member]) -> tuple[Pruned, ...]:
    contests, now = children.contests, asyncio.get_running_loop().time()
    again = [member for member in leaving if contests.held(owner.key, member.identity, _PRUNED, now)]
    for member in again:
        leaving.remove(member)
    left = await _delete_all(ctx.client, owner, leaving)
    again += [member for member in leaving if contests.wrote(owner.key, member.identity, _PRUNED, now)]
    if again:
        raise made_again(again[0].identity)
    return tuple(
        Pruned(member.identity, state_of(member.phase)) for member in leaving if left[member.identity] != "changed"
    )


async def delete_in_order(ctx: Context, owner: Object, children: Children, order: Sequence[str]) -> tuple[str, ...]:
    """Delete the children phase by phase, the last one first, and say what still stands; nothing when all are gone.

    Call it again when a child has changed or vanished.
    """
    ranks = {state: rank for rank, state in enumerate(order)}
    members: list[_Member] = await _members(ctx, owner, children)
    if _ORPHAN in (owner.metadata.finalizers or ()):
        members = [member for member in members if not member.view.controller_uid]
    while members:
        # what no state of today declared goes first
        last = max(_rank(member, ranks) for member in members)
        phase: list[_Member] = [member for member in members if _rank(member, ranks) == last]
        members = [member for member in members if _rank(member, ranks) != last]
        waiting = [member for member in phase if member.view.deleting]
        left = await _delete_all(
            ctx.client, owner, [member for member in phase if not member.view.deleting], ordered=True
        )
        standing = [f"{member.identity} is being deleted{_held(member.view)}" for member in waiting]
        standing += [f"{identity} {_LEFT[how]}" for identity, how in left.items() if how != "gone"]
        if standing:
            return tuple(standing)
    return ()


def _rank(member: _Member, ranks: dict[str, int]) -> tuple[int, int]:
    """Where a child stands in the order of making: its state, then its depth."""
    return ranks.get(state_of(member.phase), len(ranks)), depth_of(member.phase)


def _held(view: View) -> str:
    held = ", ".join(view.metadata.finalizers or ())
    return f", held by {held}" if held else ""


async def _members(ctx: Context, owner: Object, children: Children, *, but: Collection[Identity] = ()) -> list[_Member]:
    """The objects of all kinds, retired ones too, that belong to an owner, but those that are named."""
    uid, client = owner.metadata.uid or "", ctx.client
    named: dict[GroupKind, set[Key]] = {}
    for identity in but:
        named.setdefault(identity.kind, set()).add(identity.key)
    found: list[_Member] = []
    for kind, group_kind, may_be_labelled in children.all_kinds:
        left_out = named.get(group_kind, _NO_KEYS)
        found += [
            _Member(kind, Identity(group_kind, view.key), view)
            for view in await client.views_owned_by(kind, uid, but=left_out)
            if view.controller_uid == uid and _made_by_us(ctx, children, Identity(group_kind, view.key), view, uid)
        ]
        labelled = await client.views_labelled(kind, OWNER_UID_LABEL, uid) if may_be_labelled else ()
        for view in labelled:
            # in the namespace of its owner a reference would hold it
            far = view.key.namespace != owner.key.namespace and not view.controller_uid
            if far and view.key not in left_out and standing_of(view, uid, "label") == "ours":
                found.append(_Member(kind, Identity(group_kind, view.key), view))
    return found


def _made_by_us(ctx: Context, children: Children, identity: Identity, view: View, uid: str) -> bool:
    """Whether we made an object that names this owner as its controller; other programs make such objects too."""
    if was_marked(view, uid, "reference"):
        return True
    if children.meets_first(view.uid):
        words = "belongs to it, but was not made under field manager"
        ctx.logger.info("%s: %s %s %s: it is never pruned", ctx.request, identity, words, ctx.client.field_manager)
    return False


async def _delete_all(
    client: ReconcileClient, owner: Object, members: Sequence[_Member], *, ordered: bool = False
) -> dict[Identity, str]:
    """Delete several at once; what became of each: "gone", "marked" or "changed", which is for another pass."""
    left: dict[Identity, str] = {}
    failures: list[Exception] = []
    waiting = iter(members)

    async def work_off() -> None:
        for member in waiting:
            try:
                left[member.identity] = await _delete(client, member, ordered=ordered)
            except Exception as error:  # noqa: BLE001 - raised below, when the others have had their turn
                failures.append(error)

    async with Supervisor() as tasks:
        for number in range(min(_AT_ONCE, len(members))):
            tasks.start(work_off(), name=f"delete children of {owner.kind} {owner.key} ({number})")
    if failures:
        raise failures[0]
    return left


async def _delete(client: ReconcileClient, member: _Member, *, ordered: bool) -> str:
    view = member.view
    try:
        marked = await client.delete(
            cast("Any", member.kind),
            view.key,
            uid=view.uid,
            resource_version=view.resource_version,
            propagation=_propagation(member.identity.kind) if ordered else "Background",
            missing_ok=True,
        )
    except Conflict:
        # changed since, or replaced: its event brings the next pass, which looks again
        return "changed"
    return "gone" if marked is None else "marked"


def _propagation(kind: GroupKind) -> PropagationPolicy:
    """Where an order is kept, a child that makes objects of its own is gone only when those are."""
    custom = "." in kind.group and not kind.group.endswith(".k8s.io")
    return "Foreground" if custom or kind.group in _MAKERS else "Background"
