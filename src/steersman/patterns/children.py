"""Which kinds a controller produces: said once, checked when it is said.

Guarantees
- A slip in the declaration is raised where it is made, with what to write instead.
- Every kind that is produced is watched, so that a child that changes or vanishes wakes its owner; retired kinds are
  watched too, by their metadata alone, so that what is left of them is found and pruned.
- Whether a kind without a class is namespaced is never guessed where something is written: `Children.learn_scopes` asks the
  server, once.
- Objects that stand in the way of a child, and children without a mark of their owner, wake him as well for as long as the
  process remembers them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import msgspec

from steersman.cache import View as CacheView
from steersman.client.missing import KindNotServed
from steersman.client.reads import Reading
from steersman.controller import ControllerBuilder, KindLike, View
from steersman.controller.mappers import check_kind, kind_name
from steersman.objects import GroupKind, GroupVersionKind, Key, Kind, Object, Unstructured
from steersman.patterns.contests import Contests
from steersman.patterns.membership import OWNER_ANNOTATION
from steersman.patterns.notations import Notations
from steersman.patterns.put_back import PutBack
from steersman.patterns.readiness import Readiness, readiness, readiness_at_sight

#: Objects that are remembered at most because somebody waits for them.
_WATCHED_FOR_MAX = 10_000
#: Children whose readiness is remembered.
_JUDGED_MAX = 100_000
#: Seconds between two questions about a kind that the server does not know.
_ASK_AGAIN = 10.0


class Identity(NamedTuple):
    """Which object, whatever version of its kind is spoken of."""

    kind: GroupKind
    key: Key

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.key}"


class ChildKind(msgspec.Struct, frozen=True):
    """A kind of children, and whether they may live outside of the namespace of their owner."""

    kind: KindLike
    across_namespaces: bool = False


def child(kind: KindLike, *, across_namespaces: bool = False) -> ChildKind:
    """Name a kind of children that may live in other namespaces than their owner's.

    ``children=(Deployment, child(ConfigMap, across_namespaces=True))``
    """
    return ChildKind(kind, across_namespaces)


class KnownKind(NamedTuple):
    """What declaring a child needs to know of its kind."""

    kind: KindLike
    gvk: GroupVersionKind
    group_kind: GroupKind
    #: None: only the server knows, of a `Kind` without a class (see `Children.learn_scopes`).
    namespaced: bool | None
    across_namespaces: bool


class Children:
    """The kinds that are produced for objects of one kind; ``where`` is how errors name the place."""

    def __init__(
        self,
        primary: KindLike,
        children: Iterable[KindLike | ChildKind],
        *,
        retired: Iterable[KindLike | ChildKind] = (),
        where: str,
    ) -> None:
        self.where = where
        check_kind(primary, where)
        self.primary = primary
        self.kinds: tuple[ChildKind, ...] = self._checked(children, "children")
        self.retired: tuple[ChildKind, ...] = self._checked(retired, "retired")
        #: Whether kinds are namespaced, as far as that is known.
        self._scopes = {each.kind.gvk(): _scope_of(each.kind) for each in (*self.kinds, *self.retired)}
        self._known = {each.kind.gvk(): self._known_kind(each) for each in self.kinds}
        self._by_class: dict[type[Object], KnownKind | None] = {}
        self._refuse_twice()
        #: Every kind of which there may be children, retired ones too, and whether some belong to their owner by a label.
        self.all_kinds: tuple[tuple[KindLike, GroupKind, bool], ...] = ()
        #: Some child cannot be held by an owner reference.
        self.needs_finalizer = False
        #: No kind is left of which only the server knows whether it is namespaced.
        self.scopes_known = False
        self._asked_at: float | None = None
        self._settle_scopes()
        #: Which of these kinds the server writes down otherwise.
        self.notations = Notations()
        #: Defaults of the server in fields that children want to be absent.
        self.put_back = PutBack()
        #: Children that somebody else changes back.
        self.contests = Contests()
        self._judged: OrderedDict[Identity, tuple[tuple[str, str], Readiness]] = OrderedDict()
        self._watched_for: OrderedDict[Identity, dict[Key, None]] = OrderedDict()
        self._met: OrderedDict[str, None] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Children of {kind_name(self.primary)}: {self.names()}>"

    def names(self) -> str:
        """The kinds as they are written in a declaration: ``(Deployment, Service)``."""
        return _tuple_text(self.kinds)

    def known(self, child: Object | Unstructured) -> KnownKind | None:
        """The declared kind of an object; None if it was not declared."""
        if isinstance(child, Unstructured):
            return self._known.get(GroupVersionKind.of(child.api_version, child.kind))
        cls = type(child)
        try:
            return self._by_class[cls]
        except KeyError:
            found = self._by_class[cls] = self._known.get(cls.gvk()) if hasattr(cls, "__resource__") else None
            return found

    def may_be_labelled(self, kind: ChildKind) -> bool:
        """Whether some children of a kind belong to their owner by a label."""
        if not _is_namespaced(self.primary, default=True):
            return False
        return kind.across_namespaces or self._scopes.get(kind.kind.gvk()) is False

    async def learn_scopes(self, client: Reading, *, again: bool = False) -> bool:
        """Ask the server which of the kinds without a class are namespaced; whether something was learned.

        A kind that is not served has no objects; it is asked for once more after a while, or if ``again`` is said.
        """
        now = asyncio.get_running_loop().time()
        if self.scopes_known or (not again and self._asked_at is not None and 0 <= now - self._asked_at < _ASK_AGAIN):
            return False
        self._asked_at = now
        learned = False
        for gvk in [gvk for gvk, namespaced in self._scopes.items() if namespaced is None]:
            try:
                self._scopes[gvk] = (await client.discovery.resource_of(gvk)).namespaced
            except KindNotServed:
                continue
            learned = True
        if learned:
            self._known = {each.kind.gvk(): self._known_kind(each) for each in self.kinds}
            self._settle_scopes()
        return learned

    def _settle_scopes(self) -> None:
        self.scopes_known = None not in self._scopes.values()
        self.all_kinds = tuple(
            (each.kind, each.kind.gvk().group_kind, self.may_be_labelled(each)) for each in (*self.kinds, *self.retired)
        )
        self.needs_finalizer = any(labelled for _, _, labelled in self.all_kinds)

    def _known_kind(self, each: ChildKind) -> KnownKind:
        gvk = each.kind.gvk()
        return KnownKind(each.kind, gvk, gvk.group_kind, self._scopes[gvk], each.across_namespaces)

    def watch(self, controller: ControllerBuilder[Any]) -> None:
        """Let a controller hear of its children."""
        owners = _Owners(self)
        self.contests = Contests()  # a controller that begins knows of none
        for each in self.kinds:
            controller.watches(each.kind, map=owners)
        for each in self.retired:
            controller.watches(each.kind, map=owners, metadata_only=True)

    def readiness_of(self, identity: Identity, view: CacheView) -> Readiness:
        """Whether a child is ready; judged once for each version of it."""
        state = (view.uid, view.resource_version)
        known = self._judged.get(identity)
        if known is not None and known[0] == state:
            return known[1]
        at_sight = None if view.deleting else readiness_at_sight(view.kind.group_kind)
        found = at_sight or readiness(view.object)
        self._judged[identity] = (state, found)
        if len(self._judged) > _JUDGED_MAX:
            self._judged.popitem(last=False)
        return found

    def meets_first(self, uid: str) -> bool:
        """Whether an object of another program's is met for the first time, as far as anybody remembers."""
        first = uid not in self._met
        self._met[uid] = None
        if len(self._met) > _WATCHED_FOR_MAX:
            self._met.popitem(last=False)
        return first

    def watch_for(self, identity: Identity, owner: Key) -> None:
        """Wake an owner when this object changes, although nothing on it says that it concerns him."""
        waiting = self._watched_for.setdefault(identity, {})
        waiting[owner] = None
        self._watched_for.move_to_end(identity)
        if len(self._watched_for) > _WATCHED_FOR_MAX:
            self._watched_for.popitem(last=False)

    def watching_for(self, identity: Identity) -> Iterable[Key]:
        """The owners that wait for a change of this object."""
        return self._watched_for.get(identity, ())

    def watched_enough(self, identity: Identity, owner: Key) -> None:
        """The object now says itself whom it concerns."""
        waiting = self._watched_for.get(identity)
        if waiting is not None:
            waiting.pop(owner, None)
            if not waiting:
                del self._watched_for[identity]

    def _checked(self, kinds: object, name: str) -> tuple[ChildKind, ...]:
        if isinstance(kinds, (type, Kind, ChildKind)):
            given = kinds.kind if isinstance(kinds, ChildKind) else cast("KindLike", kinds)
            shown = kind_name(given) if isinstance(given, Kind) else given.__name__
            raise TypeError(f"{self.where}: {name}={shown} is one kind; write {name}=({shown},)")
        found: list[ChildKind] = []
        for each in cast("Iterable[object]", kinds):
            declared = each if isinstance(each, ChildKind) else ChildKind(cast("KindLike", each))
            check_kind(declared.kind, f"{self.where}: {name}")
            found.append(declared)
        return tuple(found)

    def _refuse_twice(self) -> None:
        seen: dict[GroupKind, tuple[str, KindLike]] = {}
        for name, kinds in (("children", self.kinds), ("retired", self.retired)):
            for each in kinds:
                place, other = seen.setdefault(each.kind.gvk().group_kind, (name, each.kind))
                if other is each.kind and place == name and sum(e.kind is other for e in kinds) == 1:
                    continue
                shown = kind_name(each.kind)
                if place != name:
                    raise ValueError(
                        f"{self.where}: {shown} is in children= and in retired=, which names kinds that are no longer"
                        " produced; take it out of one of them"
                    )
                if other.gvk() != each.kind.gvk():
                    raise ValueError(
                        f"{self.where}: {other.gvk()} and {each.kind.gvk()} are the same objects in two versions; name the"
                        " one that you build"
                    )
                raise ValueError(f"{self.where}: {shown} is in {name}= twice; once is enough")


class _Owners:
    """Finds whom an object concerns: who controls it, who is named on it, and who waits for it."""

    #: As `ControllerBuilder.owns` calls it.
    __name__ = "owned"

    def __init__(self, children: Children) -> None:
        self._children = children
        self._primary = children.primary.gvk().group_kind
        self._named = f"{self._primary}/"
        self._namespaced = _is_namespaced(children.primary, default=True)

    def __call__(self, view: View[Any]) -> Iterable[Key]:
        found: dict[Key, None] = {}
        metadata = view.metadata
        for reference in metadata.owner_references or ():
            if (
                reference.controller
                and reference.kind == self._primary.kind
                and _group(reference) == self._primary.group
            ):
                found[Key(view.key.namespace if self._namespaced else "", reference.name)] = None
        named = (metadata.annotations or {}).get(OWNER_ANNOTATION, "")
        if named.startswith(self._named):
            namespace, _, name = named.removeprefix(self._named).partition("/")
            found[Key(namespace, name)] = None
        for owner in self._children.watching_for(Identity(view.kind.group_kind, view.key)):
            found[owner] = None
        return found


def _group(reference: Any) -> str:
    group, slash, _ = reference.api_version.rpartition("/")
    return group if slash else ""


def _scope_of(kind: KindLike) -> bool | None:
    """Whether a kind is namespaced; None if only the server knows."""
    if not isinstance(kind, Kind):
        return kind.__resource__.namespaced
    from steersman.kinds import class_of  # noqa: PLC0415 - only kinds without a class need it

    try:
        return cast("Any", class_of(kind.gvk())).__resource__.namespaced
    except LookupError:
        return None


def _is_namespaced(kind: KindLike, *, default: bool) -> bool:
    return default if isinstance(kind, Kind) else kind.__resource__.namespaced


def _tuple_text(kinds: tuple[ChildKind, ...]) -> str:
    names = [kind_name(each.kind) for each in kinds]
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"
