"""Delete children: those that no state declares anymore, and all of them, in order, when their owner is deleted.

Guarantees
- Steersman deletes only children that provably belong to the owner and carry the mark of its own field manager, by uid and in
  the version that was read. A child that changed since is compared again first. Objects of other controllers or writers, and
  objects that are being deleted already, stay. So does everything that was applied in the same reconcile.
- `prune` deletes only children that are marked for it (see `membership`), so a lost annotation never deletes one.
- If the same program recreates a child as often as it is pruned, Steersman prunes it with growing pauses and reports an error.
- With ``--cascade=orphan``, children stay wherever the server would keep them.
- `prune` deletes only children of completed states. A reconcile that stopped early prunes nothing of other states.
- `delete_in_order` deletes the children of a state only when those of every later state are gone. It never causes a foreground
  deletion of a custom resource, which would break the order in which that one's operator deletes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

import msgspec

from steersman.aio import Supervisor
from steersman.cache import StoredView
from steersman.controller import Context, InternalClient, KindLike, internal_client
from steersman.errors import Conflict, KindNotServed
from steersman.objects import GroupKind, Key, Object
from steersman.patterns.children.change_log import log_change
from steersman.patterns.children.kept_children import keep
from steersman.patterns.children.kinds import ChildIdentity, ProducedKind
from steersman.patterns.children.membership import (
    OWNER_UID_LABEL,
    STATE_LABEL,
    depth_of,
    is_far_child,
    kept_by,
    standing_of,
    state_of,
    was_made,
)
from steersman.patterns.children.memory import ChildMemory, taken_over
from steersman.patterns.children.problems import made_again
from steersman.wire import PropagationPolicy

#: The limit of concurrent requests.
_AT_ONCE = 8
#: Built-in groups whose objects create Pods; ordered deletion waits for those too.
_MAKERS = frozenset({"apps", "batch"})
#: The server's finalizer of objects whose dependents stay.
_ORPHAN = "orphan"
#: Stands for the intent of a pruned child in the write history.
_PRUNED = b"pruned"


_NO_KEYS: frozenset[Key] = frozenset()
_LEFT = {"marked": "is being deleted", "changed": "has just changed; Steersman checks it again"}


class Pruned(msgspec.Struct, frozen=True):
    """A child that was deleted because no state declares it anymore."""

    identity: ChildIdentity
    #: The state that had declared it; empty without a state label.
    state: str = ""

    def __str__(self) -> str:
        return str(self.identity)


class Pruning(msgspec.Struct, frozen=True):
    """The result of pruning."""

    pruned: tuple[Pruned, ...] = ()
    #: Children that no state declares anymore, and that Steersman deletes once all states are complete.
    pending: tuple[ChildIdentity, ...] = ()


class _Member(msgspec.Struct, frozen=True):
    kind: KindLike
    identity: ChildIdentity
    view: StoredView
    #: Beyond the reach of an owner reference.
    far: bool
    #: Steersman wrote its owner reference, if it is not far.
    referenced: bool = True

    @property
    def state_label(self) -> str:
        return self.view.labels.get(STATE_LABEL, "")


async def prune(
    ctx: Context,
    owner: Object,
    memory: ChildMemory,
    declared: Collection[ChildIdentity],
    *,
    applied: Collection[str] = (),
    states: Collection[str] | None,
    spared: Collection[str] = (),
    seen: Mapping[ChildIdentity, str] | None = None,
    finished: bool = False,
    guarded: bool = False,
) -> Pruning:
    """Delete the undeclared children of the completed ``states``; None after a complete reconcile: of all states.

    - ``applied``: uids of the children that this reconcile applied; they stay.
    - ``spared``: states that a complete reconcile skipped; their children stay.
    - ``seen``: the children that each state was seen to declare (see `steersman.patterns.children.declaration_history`). If given,
      all others stay.
    - ``guarded``: the owner has a finalizer of ours, so an earlier version may have had children in other namespaces, of any kind.
    - ``finished``: the state that stopped the reconcile had declared all its children, so the remaining ones are pending.
    """
    leaving: list[_Member] = []
    pending: list[ChildIdentity] = []
    # The declaration changes only with the program, so one search for each owner that finds nothing is enough.
    searching = guarded and states is None and not memory.was_searched(owner)
    members = await _members(ctx, owner, memory, but=declared, by_label=searching)
    for member in members:
        state = state_of(member.state_label)
        if member.view.uid in applied:
            continue  # the server stores it under another name than it was declared with
        if member.view.deleting or state in spared:
            continue
        if kept_by(member.view, owner.uid):
            await keep(ctx, owner, memory, member.kind, member.view)
            continue
        known = seen is None or seen.get(member.identity) == state
        if known and (states is None or state in states):
            leaving.append(member)
        elif finished and (known or not spared):
            pending.append(member.identity)
        # Otherwise a state that was not reached may declare it: a new version of the program may have moved it.
    gone = {member.view.uid for member in leaving}
    for member in members:
        if member.view.uid not in gone and not member.view.deleting:
            await taken_over(internal_client(ctx), memory, member.kind, member.view)
    pruned = await _prune(ctx, owner, memory, leaving) if leaving else ()
    # A far child that is kept goes with its owner, so the deletion has to search for it too.
    if searching and not gone and not any(member.far for member in members):
        memory.searched[owner.key] = owner.uid
    return Pruning(pruned, tuple(pending))


async def _prune(ctx: Context, owner: Object, memory: ChildMemory, leaving: list[_Member]) -> tuple[Pruned, ...]:
    conflicts, now = memory.conflicts, asyncio.get_running_loop().time()
    again = [member for member in leaving if conflicts.held(owner.key, member.identity, _PRUNED, now)]
    for member in again:
        leaving.remove(member)
    left = await _delete_all(ctx, owner, leaving, why="no state declares it any more")
    again += [member for member in leaving if conflicts.wrote(owner.key, member.identity, _PRUNED, now)]
    if again:
        raise made_again(again[0].identity)
    return tuple(
        Pruned(member.identity, state_of(member.state_label))
        for member in leaving
        if left[member.identity] != "changed"
    )


async def delete_in_order(
    ctx: Context, owner: Object, memory: ChildMemory, order: Sequence[str], *, far_only: bool = False
) -> tuple[str, ...]:
    """Delete children state by state, the last state first. Returns a sentence for each child that still exists.

    Call it again when a child has changed or is gone. ``far_only``: the garbage collector deletes those within its reach.
    """
    ranks = {state: rank for rank, state in enumerate(order)}
    members: list[_Member] = await _members(ctx, owner, memory, by_label=not memory.was_searched(owner))
    if far_only or _ORPHAN in (owner.metadata.finalizers or ()):
        members = [member for member in members if member.far]
    # If the program manages the owner references, the garbage collector decides by them: there may be other owners.
    members = [member for member in members if member.far or member.referenced]
    while members:
        # Children of states that no longer exist go first.
        last = max(_rank(member, ranks) for member in members)
        rank: list[_Member] = [member for member in members if _rank(member, ranks) == last]
        members = [member for member in members if _rank(member, ranks) != last]
        waiting = [member for member in rank if member.view.deleting]
        left = await _delete_all(
            ctx,
            owner,
            [member for member in rank if not member.view.deleting],
            why=f"{owner.kind} {owner.key} is being deleted",
            ordered=True,
        )
        standing = [f"{member.identity} is being deleted{_held(member.view)}" for member in waiting]
        standing += [_standing(member, how) for member in rank if (how := left.get(member.identity, "gone")) != "gone"]
        if standing:
            return tuple(standing)
    return ()


def _rank(member: _Member, ranks: dict[str, int]) -> tuple[int, int]:
    """The position of a child in the order of creation: its state, then its depth."""
    return ranks.get(state_of(member.state_label), len(ranks)), depth_of(member.state_label)


def _standing(member: _Member, how: str) -> str:
    """Why a child still exists after its deletion was requested."""
    return f"{member.identity} {_LEFT[how]}{_held(member.view) if how == 'marked' else ''}"


def _held(view: StoredView) -> str:
    held = ", ".join(view.metadata.finalizers or ())
    return f", held by {held}" if held else ""


async def _members(
    ctx: Context, owner: Object, memory: ChildMemory, *, but: Collection[ChildIdentity] = (), by_label: bool = False
) -> list[_Member]:
    """The objects of all kinds, including retired ones, that belong to an owner, except those in ``but``.

    ``by_label``: also look for labels in kinds whose children have owner references now.
    """
    uid, client = owner.metadata.uid or "", internal_client(ctx)
    named: dict[GroupKind, set[Key]] = {}
    for identity in but:
        named.setdefault(identity.kind, set()).add(identity.key)
    members: list[_Member] = []
    for produced in memory.children.all_kinds:
        kind, group_kind, _, referenced = produced
        left_out = named.get(group_kind, _NO_KEYS)
        try:
            referring = await client.views_owned_by(kind, uid, but=left_out, namespace=owner.key.namespace)
        except KindNotServed:
            continue  # its CRD is not installed, so there are no objects
        members += [
            _Member(kind, ChildIdentity(group_kind, view.key), view, far=False, referenced=referenced)
            for view in referring
            if view.controller_uid == uid
            and standing_of(view, uid, "reference") == "ours"
            and _made_by_us(ctx, memory, ChildIdentity(group_kind, view.key), view, uid)
        ]
        labeled: Sequence[StoredView] = ()
        if by_label or produced.may_be_labeled:
            # With shards, a lookup in all namespaces is a request.
            namespace = "" if by_label or produced.may_be_far else owner.key.namespace
            labeled = await client.views_labeled(kind, OWNER_UID_LABEL, uid, namespace=namespace)
        for view in labeled:
            if view.key not in left_out and view.controller_uid != uid and _held_by_label(owner, view, produced):
                far = bool(owner.key.namespace) and view.key.namespace != owner.key.namespace
                members.append(_Member(kind, ChildIdentity(group_kind, view.key), view, far, referenced))
    return members


def _held_by_label(owner: Object, view: StoredView, produced: ProducedKind) -> bool:
    """Whether only a label makes an object a child."""
    if not produced.owner_references:
        return standing_of(view, owner.uid, "label_alone") == "ours"
    # In the owner's namespace, a reference would tie it to the owner.
    return is_far_child(view, owner.uid, owner.key.namespace)


def _made_by_us(ctx: Context, memory: ChildMemory, identity: ChildIdentity, view: StoredView, uid: str) -> bool:
    """Whether we created an object that names this owner as its controller; other programs may create such objects too."""
    if was_made(view, uid):
        return True
    if memory.meets_first(view.uid):
        words = "belongs to it, but was not created under field manager"
        ctx.logger.info(
            "%s: %s %s %s; Steersman does not prune it", ctx.request, identity, words, ctx.client.field_manager
        )
    return False


async def _delete_all(
    ctx: Context, owner: Object, members: Sequence[_Member], *, why: str, ordered: bool = False
) -> dict[ChildIdentity, str]:
    """Delete several children concurrently. Each result is "gone", "marked", or "changed": left for the next reconcile."""
    left: dict[ChildIdentity, str] = {}
    failures: list[Exception] = []
    waiting = iter(members)

    async def work_off() -> None:
        for member in waiting:
            try:
                left[member.identity] = await _delete(internal_client(ctx), member, ordered=ordered)
                if left[member.identity] != "changed":
                    log_change(ctx, "deleted", member.identity, why)
            except Exception as error:  # noqa: BLE001 - raised below, after the others were tried
                failures.append(error)

    async with Supervisor() as tasks:
        for number in range(min(_AT_ONCE, len(members))):
            tasks.start(work_off(), name=f"delete children of {owner.kind} {owner.key} ({number})")
    if failures:
        raise failures[0]
    return left


async def _delete(client: InternalClient, member: _Member, *, ordered: bool) -> str:
    propagation = _propagation(member.identity.kind) if ordered else "Background"
    try:
        return "marked" if await client.delete_seen(member.kind, member.view, propagation) else "gone"
    except Conflict:
        # It changed or was replaced: that event triggers the next reconcile, which compares again.
        return "changed"


def _propagation(kind: GroupKind) -> PropagationPolicy:
    """In an ordered deletion, wait for the Pods of a child that creates some.

    Custom kinds are deleted in the background: in the foreground, the garbage collector deletes everything below the child at once,
    and so breaks the order of the child's own operator. Its finalizer holds the child as long as it has work to do.
    """
    return "Foreground" if kind.group in _MAKERS else "Background"
