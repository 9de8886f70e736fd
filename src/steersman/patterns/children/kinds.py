"""The kinds that a controller produces: declared once, and checked where the declaration is written.

Guarantees
- A mistake in the declaration raises where it is written, and the error says what to write instead.
- A declaration never changes, so several managers of one process can share it. What a running controller learns about its
  children is in `steersman.patterns.children.memory`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast

import msgspec

from steersman.controller import KindLike, Labels, check_claims, check_kind
from steersman.objects import GroupKind, GroupVersionKind, Key, Kind, Object, Unstructured, kind_name


class ChildIdentity(NamedTuple):
    """Identifies an object by kind and key, independent of the API version."""

    kind: GroupKind
    key: Key

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.key}"


class ChildKind(msgspec.Struct, frozen=True):
    """A kind of children, and how they are tied to their owner."""

    kind: KindLike
    #: Children may live outside the namespace of their owner.
    across_namespaces: bool = False
    #: A function from the owner to the labels of objects that it adopts.
    claims: Callable[[Any], Labels] | None = None
    #: False: the program declares the owner references, and a label identifies the owner.
    owner_references: bool = True


def child(
    kind: KindLike,
    *,
    across_namespaces: bool = False,
    claims: Callable[[Any], Labels] | None = None,
    owner_references: bool = True,
) -> ChildKind:
    """Name a kind of children with options.

    ``children=(Deployment, child(ConfigMap, across_namespaces=True))``: they may live in other namespaces than their owner's.
    ``child(Pod, claims=lambda site: {"app": site.key.name})``: orphans with these labels are adopted, as a ReplicaSet adopts
    Pods, and released when the labels no longer match. States find them with ``out.claimed(Pod)``.
    ``child(ConfigMap, owner_references=False)``: Steersman writes no owner references, and keeps those that the program declares:
    several owners, an owner without ``controller``, or none. Pruning works by a label. When the owner is deleted, the garbage
    collector decides by these references alone.
    """
    return ChildKind(kind, across_namespaces, claims, owner_references)


class KnownKind(NamedTuple):
    """What is known about a declared kind when a child is declared."""

    kind: KindLike
    gvk: GroupVersionKind
    group_kind: GroupKind
    #: None for a `Kind` without a class until the server reports it (see `ChildMemory.learn_scopes`).
    namespaced: bool | None
    across_namespaces: bool
    #: Steersman writes the owner references.
    owner_references: bool = True


class ProducedKind(NamedTuple):
    """What is known about a kind when the children of an owner are looked up."""

    kind: KindLike
    group_kind: GroupKind
    #: Some children may be beyond the reach of an owner reference, so Steersman deletes them before their owner is removed.
    may_be_far: bool
    #: Steersman writes the owner references.
    owner_references: bool

    @property
    def may_be_labeled(self) -> bool:
        """Whether some children are tied to their owner by a label instead of an owner reference."""
        return self.may_be_far or not self.owner_references


class Children:
    """The kinds of children of one kind of owner; ``where`` is how errors name the declaration."""

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
        #: Whether each kind is namespaced; None if unknown.
        self._scopes = {each.kind.gvk(): _scope_of(each.kind) for each in (*self.kinds, *self.retired)}
        self._refuse_twice()
        self._settle_scopes()

    def __repr__(self) -> str:
        return f"<Children of {kind_name(self.primary)}: {self.names()}>"

    def names(self) -> str:
        """The kinds as they are written in a declaration: ``(Deployment, Service)``."""
        return _tuple_text(self.kinds)

    def known(self, child: Object | Unstructured) -> KnownKind | None:
        """The declared kind of an object; None if it is not declared."""
        if isinstance(child, Unstructured):
            return self._known.get(GroupVersionKind.of(child.api_version, child.kind))
        cls = type(child)
        try:
            return self._by_class[cls]
        except KeyError:
            found = self._by_class[cls] = self._known.get(cls.gvk()) if hasattr(cls, "__resource__") else None
            return found

    def _may_be_far(self, kind: ChildKind) -> bool:
        """Whether some children of a kind are beyond the reach of an owner reference."""
        if not is_namespaced(self.primary, default=True):
            return False
        return kind.across_namespaces or self._scopes.get(kind.kind.gvk()) is False

    @property
    def unknown_scopes(self) -> tuple[GroupVersionKind, ...]:
        """The kinds without a class whose scope only the server can report."""
        return tuple(gvk for gvk, namespaced in self._scopes.items() if namespaced is None)

    def with_scopes(self, learned: Mapping[GroupVersionKind, bool]) -> Children:
        """The same declaration with these scopes."""
        other = copy.copy(self)
        other._scopes = {**self._scopes, **learned}  # noqa: SLF001 - its own
        other._settle_scopes()  # noqa: SLF001 - its own
        return other

    def _settle_scopes(self) -> None:
        self._known = {each.kind.gvk(): self._known_kind(each) for each in self.kinds}
        self._by_class: dict[type[Object], KnownKind | None] = {}
        #: Whether all scopes are known.
        self.scopes_known = not self.unknown_scopes
        #: Every kind that may have children, including retired ones.
        self.all_kinds: tuple[ProducedKind, ...] = tuple(
            ProducedKind(each.kind, each.kind.gvk().group_kind, self._may_be_far(each), each.owner_references)
            for each in (*self.kinds, *self.retired)
        )
        #: Whether an owner reference cannot hold some child.
        self.needs_finalizer = any(each.may_be_far for each in self.all_kinds)

    def _known_kind(self, each: ChildKind) -> KnownKind:
        gvk = each.kind.gvk()
        return KnownKind(
            each.kind, gvk, gvk.group_kind, self._scopes[gvk], each.across_namespaces, each.owner_references
        )

    def _checked(self, kinds: object, name: str) -> tuple[ChildKind, ...]:
        if isinstance(kinds, (type, Kind, ChildKind)):
            given = kinds.kind if isinstance(kinds, ChildKind) else cast("KindLike", kinds)
            shown = kind_name(given) if isinstance(given, Kind) else given.__name__
            raise TypeError(f"{self.where}: {name}={shown} is one kind; write {name}=({shown},)")
        found: list[ChildKind] = []
        for each in cast("Iterable[object]", kinds):
            declared = each if isinstance(each, ChildKind) else ChildKind(cast("KindLike", each))
            check_kind(declared.kind, f"{self.where}: {name}")
            if declared.claims is not None:
                self._check_claims(declared, name)
            found.append(declared)
        return tuple(found)

    def _check_claims(self, declared: ChildKind, name: str) -> None:
        shown = kind_name(declared.kind)
        if name == "retired":
            raise ValueError(f"{self.where}: retired kinds cannot claim objects; write child({shown}) without claims=")
        if isinstance(declared.kind, Kind) or not callable(declared.claims):
            raise TypeError(
                f"{self.where}: child({shown}, claims=...) needs a class and a function from the owner to labels; write"
                f' child({shown}, claims=lambda owner: {{"app": owner.key.name}})'
            )
        check_claims(declared.claims, f"{self.where}: child({shown}, claims=...)")
        if not declared.owner_references:
            raise ValueError(
                f"{self.where}: child({shown}, claims=..., owner_references=False) cannot be combined,"
                " because adopting an object writes an owner reference; remove one of the two"
            )
        if not declared.kind.__resource__.namespaced and is_namespaced(self.primary, default=True):
            raise ValueError(
                f"{self.where}: {shown} is cluster-scoped, so {kind_name(self.primary)} cannot own it; remove claims="
            )

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
                        f"{self.where}: {shown} is in both children= and retired=; retired= is for kinds"
                        " that are no longer declared, so remove it from one of them"
                    )
                if other.gvk() != each.kind.gvk():
                    raise ValueError(
                        f"{self.where}: {other.gvk()} and {each.kind.gvk()} are two versions of one kind;"
                        " list only the version that you build"
                    )
                raise ValueError(f"{self.where}: {shown} is listed twice in {name}=; remove one")


def _scope_of(kind: KindLike) -> bool | None:
    """Whether a kind is namespaced; None if only the server can tell."""
    if not isinstance(kind, Kind):
        return kind.__resource__.namespaced
    from steersman.kinds import class_of  # noqa: PLC0415 - only kinds without a class need it

    try:
        return cast("Any", class_of(kind.gvk())).__resource__.namespaced
    except LookupError:
        return None


def is_namespaced(kind: KindLike, *, default: bool) -> bool:
    """Whether a kind is namespaced; ``default`` for a kind without a class."""
    return default if isinstance(kind, Kind) else kind.__resource__.namespaced


def _tuple_text(kinds: tuple[ChildKind, ...]) -> str:
    names = [kind_name(each.kind) for each in kinds]
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"
