"""From an object that changed to the objects to reconcile.

Guarantees
- A mapper is asked about the old *and* the new state, and about those between: who was let go of and who was taken on
  both hear of it.
- A mapper for another kind than the one that is watched is an error for a type checker.
- It may answer with keys in any namespace.
- Owners are found by group and kind, in whatever version the reference is written.
- A chain of owners is followed by uid, also when a link in the middle was deleted a moment ago.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Protocol, TypeAlias, TypeVar, cast, overload

from steersman.controller.causes import Request
from steersman.controller.events import KindLike, ObjectEvent, View
from steersman.objects import (
    GroupKind,
    GroupVersionKind,
    Key,
    Kind,
    Object,
    OwnerReference,
    Selector,
    Unstructured,
)

T = TypeVar("T")
ObjectT = TypeVar("ObjectT", bound=Object)

#: What a mapper may answer with.
Target: TypeAlias = Request | Key | str
#: How labels are asked for: ``"app=web,tier!=cache"``, ``{"app": "web"}`` or a selector.
Labels: TypeAlias = Selector | str | dict[str, str]

#: Deleted links that are remembered, so that what they owned still finds the way up.
_VANISHED_LIMIT = 4096


class Stores(Protocol):
    """What mappers may look up: the kinds that the controller watches."""

    @overload
    def get(self, kind: type[ObjectT], key: Key) -> View[ObjectT] | None: ...
    @overload
    def get(self, kind: Kind, key: Key) -> View[Unstructured] | None: ...

    def get(self, kind: KindLike, key: Key) -> View[Any] | None:
        """The object as last seen, or None."""
        ...

    @overload
    def list(
        self, kind: type[ObjectT], *, namespace: str = ..., labels: Labels | None = ...
    ) -> Iterable[View[ObjectT]]: ...
    @overload
    def list(
        self, kind: Kind, *, namespace: str = ..., labels: Labels | None = ...
    ) -> Iterable[View[Unstructured]]: ...

    def list(self, kind: KindLike, *, namespace: str = "", labels: Labels | None = None) -> Iterable[View[Any]]:
        """The objects of one namespace, or of all, whose labels match."""
        ...

    @overload
    def by_index(self, kind: type[ObjectT], name: str, value: Hashable) -> Iterable[View[ObjectT]]: ...
    @overload
    def by_index(self, kind: Kind, name: str, value: Hashable) -> Iterable[View[Unstructured]]: ...

    def by_index(self, kind: KindLike, name: str, value: Hashable) -> Iterable[View[Any]]:
        """The objects that a declared index (see `Manager.index`) has under a value."""
        ...

    @overload
    def owned_by(self, kind: type[ObjectT], owner: View[Any] | str) -> Iterable[View[ObjectT]]: ...
    @overload
    def owned_by(self, kind: Kind, owner: View[Any] | str) -> Iterable[View[Unstructured]]: ...

    def owned_by(self, kind: KindLike, owner: View[Any] | str) -> Iterable[View[Any]]:
        """The objects that name an object, or its uid, among their owners."""
        ...


#: A mapper of your own: ``def sites_using(secret: View[Secret]) -> list[Key]``. With a second parameter it also gets
#: the `Stores` of the kinds that the controller watches.
MapFunction: TypeAlias = Callable[[View[T]], Iterable[Target]] | Callable[[View[T], Stores], Iterable[Target]]


class Mapper(Protocol):
    """Finds the requests that an event concerns."""

    def requests(self, event: ObjectEvent, stores: Stores) -> Iterable[Request]:
        """Each once, in a defined order."""
        ...


class _NoStores:
    def get(self, kind: KindLike, key: Key) -> View[Any] | None:
        raise LookupError(f"{kind_name(kind)} {key} cannot be looked up: this source was made without stores")

    def list(self, kind: KindLike, *, namespace: str = "", labels: Labels | None = None) -> Iterable[View[Any]]:
        del namespace, labels
        raise LookupError(f"{kind_name(kind)} cannot be looked up: this source was made without stores")

    def by_index(self, kind: KindLike, name: str, value: Hashable) -> Iterable[View[Any]]:
        raise LookupError(
            f"{kind_name(kind)} by {name}={value} cannot be looked up: this source was made without stores"
        )

    def owned_by(self, kind: KindLike, owner: View[Any] | str) -> Iterable[View[Any]]:
        raise LookupError(f"{kind_name(kind)} of {owner} cannot be looked up: this source was made without stores")


#: For sources whose mappers look up nothing.
NO_STORES: Stores = _NoStores()


def kind_of(kind: KindLike) -> GroupVersionKind:
    """Group, version and kind."""
    return kind.gvk()


def kind_name(kind: KindLike) -> str:
    """How to speak of a kind: the name of its class."""
    return kind.kind if isinstance(kind, Kind) else kind.__name__


class SameObject:
    """The object itself is reconciled."""

    def requests(self, event: ObjectEvent, stores: Stores) -> Iterable[Request]:
        """The object's own key."""
        del stores
        return (Request(event.key),)


class Owners:
    """The owners of a kind, reached directly or through other kinds."""

    def __init__(
        self, owner: KindLike, *, namespaced: bool, through: tuple[KindLike, ...] = (), any_owner: bool = False
    ) -> None:
        self._kind = owner
        self._owner = kind_of(owner).group_kind
        self._namespaced = namespaced
        self._through = through
        self._any_owner = any_owner
        #: uid of a deleted link -> its owners
        self._vanished: OrderedDict[str, tuple[str, list[OwnerReference]]] = OrderedDict()

    def requests(self, event: ObjectEvent, stores: Stores) -> Iterable[Request]:
        """The owners in every state."""
        found: dict[Request, None] = {}
        for view in event.states:
            references = view.metadata.owner_references or []
            for request in self._climb(view.key.namespace, references, self._through, stores):
                found[request] = None
        return found

    def above(self, through: tuple[KindLike, ...]) -> Owners:
        """The rest of the chain, with the same memory."""
        rest = Owners(self._kind, namespaced=self._namespaced, through=through, any_owner=self._any_owner)
        rest._vanished = self._vanished
        return rest

    def remember_vanished(self, view: View[Any]) -> None:
        """A link of the chain is gone; what it owned may still have something to tell."""
        self._vanished[view.uid] = (view.key.namespace, view.metadata.owner_references or [])
        if len(self._vanished) > _VANISHED_LIMIT:
            self._vanished.popitem(last=False)

    def _climb(
        self, namespace: str, references: list[OwnerReference], through: tuple[KindLike, ...], stores: Stores
    ) -> Iterable[Request]:
        for reference in references:
            if not (reference.controller or self._any_owner):
                continue
            kind = _group_kind(reference)
            if kind == self._owner and not through:
                yield Request(Key(namespace if self._namespaced else "", reference.name))
            elif through and kind == kind_of(through[0]).group_kind:
                yield from self._climb_link(namespace, reference, through, stores)

    def _climb_link(
        self, namespace: str, reference: OwnerReference, through: tuple[KindLike, ...], stores: Stores
    ) -> Iterable[Request]:
        link, *rest = through
        # An owner lives in the same namespace or in none.
        view = stores.get(link, Key(namespace, reference.name)) or stores.get(link, Key("", reference.name))
        if view is not None and view.uid == reference.uid:
            yield from self._climb(view.key.namespace, view.metadata.owner_references or [], tuple(rest), stores)
        elif reference.uid in self._vanished:
            above, references = self._vanished[reference.uid]
            yield from self._climb(above, references, tuple(rest), stores)


class Function:
    """A mapper of the user's own, asked about every state."""

    def __init__(self, function: Callable[..., Iterable[Target]], *, wants_stores: bool) -> None:
        self._function = function
        self._wants_stores = wants_stores

    def requests(self, event: ObjectEvent, stores: Stores) -> Iterable[Request]:
        """What the function says of each state, the old one first."""
        found: dict[Request, None] = {}
        for view in event.states:
            targets = self._function(view, stores) if self._wants_stores else self._function(view)
            for target in targets:
                found[as_request(target)] = None
        return found


class Through:
    """A chain of owners, of which the builder knows the end; made by `owners_through`."""

    def __init__(self, kinds: tuple[KindLike, ...]) -> None:
        self.kinds = kinds


def owners_through(*kinds: KindLike) -> Through:
    """Follow controller references upwards: ``watches(Pod, map=owners_through(ReplicaSet, Deployment))``.

    Name the kinds between, the nearest first; the last one's owner is the object to reconcile.
    """
    if not kinds:
        raise TypeError("owners_through() needs the kinds between; if there are none, write .owns(Pod)")
    for kind in kinds:
        check_kind(kind, "owners_through")
    return Through(kinds)


def function_mapper(function: object, where: str) -> Function:
    """Check a function of the user's and make it a mapper."""
    if isinstance(function, type) or not callable(function):
        raise TypeError(
            f"{where}: map={function!r} is no function; write def keys_of(view) -> list[Key] and map=keys_of"
        )
    checked = cast("Callable[..., Iterable[Target]]", function)
    name = getattr(function, "__name__", type(function).__name__)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        raise TypeError(
            f"{where}: {name} is async, but a mapper cannot wait; write def {name}(view, stores) and look things up in stores"
        )
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return Function(checked, wants_stores=False)
    positional = [p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    required = [p for p in positional if p.default is p.empty]
    several = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(required) > 2 or not (positional or several):
        raise TypeError(f"{where}: {name} takes {len(required)} arguments; a mapper takes (view) or (view, stores)")
    return Function(checked, wants_stores=len(required) == 2)


def check_kind(kind: object, where: str) -> None:
    """Refuse what is no kind, and say what to write."""
    if isinstance(kind, Kind):
        return
    if isinstance(kind, Object):
        raise TypeError(f"{where}: {kind.kind} {kind.key} is an object; give its class, {type(kind).__name__}")
    if not isinstance(kind, type) or not issubclass(kind, Object):
        raise TypeError(
            f'{where}: {kind!r} is no kind; give a class, or Kind("group/version", "Name") where there is none'
        )
    if getattr(kind, "__resource__", None) is None:
        raise TypeError(f'{where}: {kind.__name__} has no kind; declare the class with group="..." and version="..."')


def _group_kind(reference: OwnerReference) -> GroupKind:
    try:
        return GroupKind(reference.group, reference.kind)
    except ValueError:
        # A reference that the garbage collector cannot read either.
        return GroupKind("", "")


def as_request(target: object) -> Request:
    """Read what a mapper or a program gave as a request."""
    match target:
        case Request():
            return target
        case Key():
            return Request(target)
        case str():
            return Request(Key.parse(target))
        case _:
            raise TypeError(f"a mapper gave {target!r}; give Key(namespace, name), 'namespace/name' or a Request")
