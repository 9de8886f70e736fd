"""What a running controller learns about its children; the declaration itself never changes.

Guarantees
- Each assembled controller has its own memory. Two managers of one process, and two terms of one manager, share nothing that
  they learned, even if they run the same class, the same decorated function or the same blueprint.
- A controller watches every kind that it produces, so that a child that changes or vanishes triggers its owner. It watches
  retired kinds too, by metadata only, to find and prune the children that are left; it works without them too.
- Steersman never guesses whether a kind without a class is namespaced: `ChildMemory.learn_scopes` asks the server, once.
- An orphan whose labels an owner claims triggers that owner.
- The uids of owners are remembered from their children's labels, for owners that are gone (see `ownerless_children`).
- Objects in the way of a child, and children without a mark of their owner, trigger the owner too (see `subscriptions`).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, cast
from weakref import WeakKeyDictionary

import msgspec

from steersman.cache import StoredView as CacheView
from steersman.client import Reader
from steersman.controller import (
    Context,
    ControllerBuilder,
    InternalClient,
    KindLike,
    Stores,
    View,
    WatchedKind,
    claiming,
    internal_client,
)
from steersman.errors import KindNotServed
from steersman.objects import Key, Object
from steersman.patterns.children.conflicts import WriteConflicts
from steersman.patterns.children.declaration_history import DeclarationHistory
from steersman.patterns.children.intent_annotation import NormalizedKinds
from steersman.patterns.children.kinds import ChildIdentity, Children, is_namespaced
from steersman.patterns.children.membership import OWNER_ANNOTATION, OWNER_UID_LABEL
from steersman.patterns.children.server_defaults import ServerDefaults
from steersman.patterns.children.subscriptions import Subscriptions
from steersman.patterns.readiness import Readiness, readiness_at_sight, readiness_of

#: The limit of objects of other programs that are remembered as logged.
_MET_MAX = 10_000
#: The limit of children that are remembered as taken over from a former name of the program.
_TAKEN_OVER_MAX = 100_000
#: The limit of owners whose earlier finalizers are remembered as given up.
_GIVEN_UP_MAX = 100_000
#: The limit of owners that are remembered with a new finalizer.
_NEWLY_GUARDED_MAX = 10_000
#: The limit of children whose mark is remembered as moved.
_MOVED_MAX = 10_000
#: The limit of children whose readiness is remembered.
_JUDGED_MAX = 100_000
#: Seconds between two lookups of a kind that the server does not serve.
_ASK_AGAIN = 10.0


class ChildMemory:
    """What one controller has learned about its children since it was assembled."""

    def __init__(self, children: Children) -> None:
        #: The declaration, with the scopes that the server reported.
        self.children = children
        #: Which kinds the server normalizes.
        self.normalized_kinds = NormalizedKinds()
        #: Defaults that the server restores in fields that children want to be absent, or adds to overwritten children.
        self.server_defaults = ServerDefaults()
        #: Children that another writer keeps changing back.
        self.conflicts = WriteConflicts()
        #: Which states declared which children.
        self.declaration_history = DeclarationHistory()
        #: Owners that subscribe to objects that do not name them.
        self.subscriptions = Subscriptions()
        #: Children that no state declares anymore, and that stay until all states of their owner are complete.
        self.pending: dict[Key, tuple[ChildIdentity, ...]] = {}
        #: The uids of owners by name, as far as they may have children that only a label ties to them.
        self._owner_uids: dict[Key, dict[str, None]] = {}
        self._asked_at: float | None = None
        self._judged: OrderedDict[ChildIdentity, tuple[tuple[str, str], Readiness]] = OrderedDict()
        self._met: OrderedDict[str, None] = OrderedDict()
        self._taken_over: OrderedDict[str, str] = OrderedDict()
        self._moved: OrderedDict[str, str] = OrderedDict()
        self._given_up: OrderedDict[str, frozenset[str]] = OrderedDict()
        #: The uids of owners of which a search by label in all kinds found no far child since the program started.
        self.searched: dict[Key, str] = {}
        #: The uids of owners in deletion whose clean-up is complete.
        self.cleaned_up: dict[Key, str] = {}
        #: Owners with a new finalizer, and their version with it: a deletion at the same moment may ignore the finalizer.
        self.newly_guarded: OrderedDict[Key, tuple[str, str]] = OrderedDict()
        #: The last states of owners that the server deleted in spite of a new finalizer, until their clean-up is complete.
        self.lost: dict[Key, Object] = {}

    async def learn_scopes(self, client: Reader, *, again: bool = False) -> bool:
        """Ask the server which of the kinds without a class are namespaced. Returns whether it reported a new one.

        A kind that the server does not serve has no objects. It is looked up again after a while, or immediately with ``again``.
        """
        now = asyncio.get_running_loop().time()
        recently = self._asked_at is not None and 0 <= now - self._asked_at < _ASK_AGAIN
        if self.children.scopes_known or (recently and not again):
            return False
        self._asked_at = now
        learned: dict[Any, bool] = {}
        for gvk in self.children.unknown_scopes:
            try:
                learned[gvk] = (await client.discovery.resource_of(gvk)).namespaced
            except KindNotServed:
                continue
        if learned:
            self.children = self.children.with_scopes(learned)
        return bool(learned)

    def readiness_of(self, identity: ChildIdentity, view: CacheView) -> Readiness:
        """Whether a child is ready; computed once per version."""
        if not view.deleting and (at_sight := readiness_at_sight(identity.kind)) is not None:
            return at_sight
        state = (view.uid, view.resource_version)
        known = self._judged.get(identity)
        if known is not None and known[0] == state:
            return known[1]
        readiness = readiness_of(view.object)
        self._judged[identity] = (state, readiness)
        if len(self._judged) > _JUDGED_MAX:
            self._judged.popitem(last=False)
        return readiness

    def meets_first(self, uid: str) -> bool:
        """Whether this is the first call with this uid, of an object that another program created."""
        first = uid not in self._met
        self._met[uid] = None
        if len(self._met) > _MET_MAX:
            self._met.popitem(last=False)
        return first

    @contextmanager
    def takes_over_first(self, uid: str) -> Generator[bool]:
        """Whether this is the first block with this uid, of a child that a former name of the program owns.

        A child is taken over once. While the former program still runs, both would otherwise take it from each other forever.
        A block that raises does not count.
        """
        with _first(self._taken_over, uid, "", _TAKEN_OVER_MAX) as first:
            yield first

    @contextmanager
    def moves_mark_first(self, uid: str, part: str) -> Generator[bool]:
        """Whether this is the first block with this uid and part since one with another part, not counting those that raised."""
        with _first(self._moved, uid, part, _MOVED_MAX) as first:
            yield first

    def keeps(self, uid: str, finalizers: Iterable[str]) -> list[str]:
        """The finalizers of earlier releases or names that an owner has, and that were not given up yet."""
        given_up = self._given_up.get(uid, frozenset())
        return [name for name in finalizers if name not in given_up]

    def note_given_up(self, uid: str, finalizers: Iterable[str]) -> None:
        """Remember finalizers as given up: an earlier release of the program may add them again, forever."""
        self._given_up[uid] = self._given_up.get(uid, frozenset()).union(finalizers)
        if len(self._given_up) > _GIVEN_UP_MAX:
            self._given_up.popitem(last=False)

    def was_searched(self, owner: Object) -> bool:
        """Whether a search by label in all kinds has found no child of an owner beyond the reach of a reference."""
        return self.searched.get(owner.key) == owner.uid

    def note_finalizer(self, owner: Object) -> None:
        """Remember an owner that gets its finalizer now, with a version from which a watch shows how it ends."""
        self.newly_guarded[owner.key] = (owner.uid, owner.metadata.resource_version or "")
        self.newly_guarded.move_to_end(owner.key)
        if len(self.newly_guarded) > _NEWLY_GUARDED_MAX:
            self.newly_guarded.popitem(last=False)

    def note_owner(self, owner: Key, uid: str) -> None:
        """Remember an owner whose children may have only a label."""
        self._owner_uids.setdefault(owner, {})[uid] = None

    def earlier_owners(self, owner: Key, uid: str) -> tuple[str, ...]:
        """The uids that other owners of this name have had."""
        return tuple(other for other in self._owner_uids.get(owner, ()) if other != uid)

    def forget_owners(self, owner: Key, uids: Iterable[str]) -> None:
        """Drop uids that owners of this name have had."""
        for uid in uids:
            self._owner_uids[owner].pop(uid, None)

    def forget(self, owner: Key) -> None:
        """Drop a deleted owner."""
        self._owner_uids.pop(owner, None)
        self.declaration_history.forget(owner)
        self.searched.pop(owner, None)
        self.cleaned_up.pop(owner, None)
        self.pending.pop(owner, None)
        self.subscriptions.forget(owner)

    def leave(self, concerns: Callable[[Key], bool]) -> None:
        """Forget owners that another process reconciles from now on."""
        known = (self.cleaned_up, self.pending, self._owner_uids, self.searched, self.newly_guarded, self.lost)
        for key in {key: None for each in known for key in each if concerns(key)}:
            self.forget(key)
            for each in known:
                each.pop(key, None)


class Memories:
    """The memories of all controllers assembled from one blueprint."""

    def __init__(self, children: Children) -> None:
        self.children = children
        self._of: WeakKeyDictionary[Any, ChildMemory] = WeakKeyDictionary()

    def of(self, where: Context | Stores) -> ChildMemory:
        """The memory of the controller behind a reconcile or behind a mapper."""
        life = internal_client(where).life if isinstance(where, Context) else where.life
        memory = self._of.get(life)
        if memory is None:
            memory = self._of[life] = ChildMemory(self.children)
        return memory

    def watch(self, controller: ControllerBuilder[Any]) -> None:
        """Make a controller watch its children."""
        owners = _Owners(self)
        for child in self.children.kinds:
            controller.watches(child.kind, map=owners)
        for child in self.children.retired:
            # Without its CRD, a retired kind has no children left.
            controller.watches(child.kind, map=owners, metadata_only=True, optional=True)

    def leave(self, stores: Stores, concerns: Callable[[Key], bool]) -> None:
        """Forget owners that another process reconciles from now on."""
        self.of(stores).leave(concerns)

    def local_watches(self, watches: Iterable[WatchedKind]) -> tuple[WatchedKind, ...]:
        """The watches, those of children marked whose owners are always in the same namespace."""
        near = {
            child.kind
            for child in (*self.children.kinds, *self.children.retired)
            if not child.across_namespaces and child.claims is None
        }
        owned = "owned"  # the name of `_Owners`
        return tuple(
            msgspec.structs.replace(each, local=True) if each.words == owned and each.kind in near else each
            for each in watches
        )


class _Owners:
    """Maps an object to the owners to trigger: its controller, the owner that its annotation names, and its subscribers."""

    #: The name that `ControllerBuilder.owns` uses.
    __name__ = "owned"

    def __init__(self, memories: Memories) -> None:
        self._memories = memories
        self._primary = memories.children.primary.gvk().group_kind
        self._named = f"{self._primary}/"
        self._namespaced = is_namespaced(memories.children.primary, default=True)
        self._claimers = {
            child.kind.gvk().group_kind: claiming(cast("type[Object]", memories.children.primary), child.claims)
            for child in memories.children.kinds
            if child.claims is not None
        }

    def __call__(self, view: View[Any], stores: Stores) -> Iterable[Key]:
        owners: dict[Key, None] = {}
        metadata = view.metadata
        for reference in metadata.owner_references or ():
            if (
                reference.controller
                and reference.kind == self._primary.kind
                and _group(reference) == self._primary.group
            ):
                owners[Key(view.key.namespace if self._namespaced else "", reference.name)] = None
        named = metadata.annotations.get(OWNER_ANNOTATION, "") if metadata.annotations else ""
        if named.startswith(self._named):
            namespace, _, name = named.removeprefix(self._named).partition("/")
            owners[owner := Key(namespace, name)] = None
            if uid := (metadata.labels or {}).get(OWNER_UID_LABEL):
                self._memories.of(stores).note_owner(owner, uid)
        if self._claimers and (claimers := self._claimers.get(view.kind.group_kind)) is not None:
            owners |= dict.fromkeys(claimers(view, stores))
        if subscriptions := self._memories.of(stores).subscriptions:
            owners |= dict.fromkeys(subscriptions.owners(ChildIdentity(view.kind.group_kind, view.key)))
        return owners


def _group(reference: Any) -> str:
    group, slash, _ = reference.api_version.rpartition("/")
    return group if slash else ""


async def taken_over(client: InternalClient, memory: ChildMemory, kind: KindLike, view: CacheView) -> CacheView | None:
    """The child after its ``managedFields`` entries of former names were renamed; None if it was deleted meanwhile.

    A child with the mark of a former name (``Manager(name="new", formerly=("old",))``) is ours like any other. Every child
    that a reconcile sees, declared or not, is moved to the current name. Once all objects were reconciled,
    ``formerly=`` can be removed.
    """
    if len(client.field_managers) < 2:
        return view
    with memory.takes_over_first(view.uid) as first:
        if not first or not await client.take_over(kind, view.key):
            return view
    return await client.view(kind, view.key)


@contextmanager
def _first(known: OrderedDict[str, str], name: str, value: str, most: int) -> Generator[bool]:
    """Whether a name has this value for the first time since it had another. A block that raises does not count."""
    before = known.get(name)
    known[name] = value
    if len(known) > most:
        known.popitem(last=False)
    try:
        yield before != value
    except BaseException:
        if before != value:
            known.pop(name, None)
        raise
