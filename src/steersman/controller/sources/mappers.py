"""Map an object that changed to the objects to reconcile.

Guarantees
- A mapper is called with the old *and* the new state, and those between, so both the previous and the new targets are
  reconciled.
- A mapper for another kind than the watched one is an error for a type checker.
- A mapper may return keys in any namespace.
- Owners are found by group and kind, in any version of the reference.
- A chain of owners is followed by uid, even if a link in the middle was just deleted.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast, overload

from steersman.cache import ObjectEvent
from steersman.controller.causes import Request
from steersman.controller.sources.views import KindLike, View
from steersman.controller.targets import ANY_SCOPE, Scope, Target
from steersman.objects import (
    GroupKind,
    GroupVersionKind,
    Key,
    Kind,
    Object,
    OwnerReference,
    Selector,
    Unstructured,
    kind_name,
)

if TYPE_CHECKING:
    from steersman.cache import ReferenceFunction, Referrers

T = TypeVar("T")
ObjectT = TypeVar("ObjectT", bound=Object)

#: A label selector: ``"app=web,tier!=cache"``, ``{"app": "web"}`` or a `Selector`.
Labels: TypeAlias = Selector | str | dict[str, str]

#: Number of deleted links to remember, so that events of the objects they owned still find the owner.
_VANISHED_LIMIT = 4096


class Stores(Protocol):
    """Read access to the kinds that the controller watches, for mappers.

    The first lookup by namespace, label or owner builds that index, and so does a lookup by a declared index that is not
    complete yet. With many objects the lookup raises `IndexPending`, which is no Exception: Steersman builds the index in
    small steps, and calls the mapper again.
    """

    @property
    def life(self) -> object:
        """The same object as `InternalClient.life` in every reconcile of this assembled controller."""
        ...

    @overload
    def get(self, kind: type[ObjectT], key: Key) -> View[ObjectT] | None: ...
    @overload
    def get(self, kind: Kind, key: Key) -> View[Unstructured] | None: ...

    def get(self, kind: KindLike, key: Key) -> View[Any] | None:
        """The object as last seen; None if it is missing."""
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
        """The objects that a declared index (see `Manager.index`) holds for a value."""
        ...

    @overload
    def owned_by(self, kind: type[ObjectT], owner: View[Any] | str) -> Iterable[View[ObjectT]]: ...
    @overload
    def owned_by(self, kind: Kind, owner: View[Any] | str) -> Iterable[View[Unstructured]]: ...

    def owned_by(self, kind: KindLike, owner: View[Any] | str) -> Iterable[View[Any]]:
        """The objects with an owner reference to an object or its uid."""
        ...


#: What a mapper may return: several targets, or one.
Targets: TypeAlias = Iterable[Target] | Target
#: A user's mapper: ``def sites_using(secret: View[Secret]) -> list[Key]``. If it has a second parameter, it also gets
#: the `Stores` of the kinds that the controller watches.
MapFunction: TypeAlias = Callable[[View[T]], Targets] | Callable[[View[T], Stores], Targets]


class Mapper(Protocol):
    """Finds the requests for an event."""

    def requests(self, event: ObjectEvent, stores: Stores) -> Iterable[Request]:
        """The requests, each once, in a defined order."""
        ...


class _NoStores:
    @property
    def life(self) -> object:
        return self

    def get(self, kind: KindLike, key: Key) -> View[Any] | None:
        raise LookupError(f"{kind_name(kind)} {key} cannot be looked up: this source has no stores")

    def list(self, kind: KindLike, *, namespace: str = "", labels: Labels | None = None) -> Iterable[View[Any]]:
        del namespace, labels
        raise LookupError(f"{kind_name(kind)} cannot be looked up: this source has no stores")

    def by_index(self, kind: KindLike, name: str, value: Hashable) -> Iterable[View[Any]]:
        raise LookupError(f"{kind_name(kind)} by {name}={value} cannot be looked up: this source has no stores")

    def owned_by(self, kind: KindLike, owner: View[Any] | str) -> Iterable[View[Any]]:
        raise LookupError(f"{kind_name(kind)} of {owner} cannot be looked up: this source has no stores")


#: For sources whose mappers look up nothing.
NO_STORES: Stores = _NoStores()


def kind_of(kind: KindLike) -> GroupVersionKind:
    """The group, version and kind."""
    return kind.gvk()


class SameObject:
    """Maps an object to itself."""

    def requests(self, event: ObjectEvent, stores: Stores) -> Iterable[Request]:
        """The object's own key."""
        del stores
        return (Request(event.key),)


class Owners:
    """Maps an object to its owners of one kind, directly or through other kinds."""

    def __init__(
        self, owner: KindLike, *, namespaced: bool, through: tuple[KindLike, ...] = (), any_owner: bool = False
    ) -> None:
        self._kind = owner
        self._owner = kind_of(owner).group_kind
        self._namespaced = namespaced
        self._through = through
        self._any_owner = any_owner
        #: Owners of deleted links, by the link's uid.
        self._vanished: OrderedDict[str, tuple[str, list[OwnerReference]]] = OrderedDict()

    def requests(self, event: ObjectEvent, stores: Stores) -> Iterable[Request]:
        """The owners in every state."""
        requests: dict[Request, None] = {}
        for view in event.states:
            references = view.metadata.owner_references or []
            for request in self._climb(view.key.namespace, references, self._through, stores):
                requests[request] = None
        return requests

    def above(self, through: tuple[KindLike, ...]) -> Owners:
        """The rest of the chain, sharing the memory of deleted links."""
        rest = Owners(self._kind, namespaced=self._namespaced, through=through, any_owner=self._any_owner)
        rest._vanished = self._vanished
        return rest

    def remember_vanished(self, view: View[Any]) -> None:
        """Remember a deleted link of the chain: events of the objects it owned may still arrive."""
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
        # An owner is in the same namespace, or cluster-scoped.
        view = stores.get(link, Key(namespace, reference.name)) or stores.get(link, Key("", reference.name))
        if view is not None and view.uid == reference.uid:
            yield from self._climb(view.key.namespace, view.metadata.owner_references or [], tuple(rest), stores)
        elif reference.uid in self._vanished:
            above, references = self._vanished[reference.uid]
            yield from self._climb(above, references, tuple(rest), stores)


class Function:
    """A user's mapper, called with every state."""

    def __init__(self, function: Callable[..., Targets], *, wants_stores: bool, scope: Scope = ANY_SCOPE) -> None:
        self._function = function
        self._wants_stores = wants_stores
        self._scope = scope

    def requests(self, event: ObjectEvent, stores: Stores) -> Iterable[Request]:
        """The function's results for each state, oldest first."""
        requests: dict[Request, None] = {}
        for view in event.states:
            returned: object = self._function(view, stores) if self._wants_stores else self._function(view)
            try:
                requests |= dict.fromkeys(self._scope.requests(returned))
            except (TypeError, ValueError) as error:
                name = getattr(self._function, "__name__", type(self._function).__name__)
                raise type(error)(f"mapper {name} on {view.kind.kind} {view.key}: {error}") from error
        return requests


class Referring:
    """Maps an object to the objects that refer to it."""

    def __init__(self, owner: KindLike, function: ReferenceFunction) -> None:
        self.owner = owner
        self.function = function
        #: Set while the source listens.
        self.referrers: Referrers | None = None

    def requests(self, event: ObjectEvent, stores: Stores) -> Iterable[Request]:
        """The owners that refer to the object now: one that did before has changed, which is an event of its own."""
        del stores
        return () if self.referrers is None else [Request(owner) for owner in self.referrers.owners(event.key)]


class Through:
    """A chain of owners whose end the builder adds; made by `owners_through`."""

    def __init__(self, kinds: tuple[KindLike, ...]) -> None:
        self.kinds = kinds


def owners_through(*kinds: KindLike) -> Through:
    """Follow controller references upward: ``watches(Pod, map=owners_through(ReplicaSet, Deployment))``.

    Pass the kinds between, nearest first. The owner of the last one is the object to reconcile.
    """
    if not kinds:
        raise TypeError("owners_through() needs the kinds between; without any, write .owns(Pod)")
    for kind in kinds:
        check_kind(kind, "owners_through")
    return Through(kinds)


def function_mapper(function: object, where: str, *, scope: Scope = ANY_SCOPE) -> Function:
    """Check a user's function and wrap it as a mapper."""
    if isinstance(function, type) or not callable(function):
        raise TypeError(
            f"{where}: map={function!r} is not a function; write def keys_of(view) -> list[Key] and map=keys_of"
        )
    checked = cast("Callable[..., Targets]", function)
    name = getattr(function, "__name__", type(function).__name__)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        raise TypeError(
            f"{where}: {name} is async, but a mapper cannot await; write def {name}(view, stores) and look things up in stores"
        )
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return Function(checked, wants_stores=False, scope=scope)
    positional = [p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    required = [p for p in positional if p.default is p.empty]
    several = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(required) > 2 or not (positional or several):
        raise TypeError(f"{where}: {name} takes {len(required)} arguments; a mapper takes (view) or (view, stores)")
    return Function(checked, wants_stores=len(required) == 2, scope=scope)


def reference_function(function: object, where: str, name: str) -> ReferenceFunction:
    """Check a user's function that returns references."""
    if isinstance(function, type) or not callable(function):
        raise TypeError(
            f"{where}: by={function!r} is not a function; write def names_of(view) -> list[str] and by=names_of"
        )
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        raise TypeError(f"{where}: it is async, but references follow from the {name} alone; write def, without await")
    try:
        inspect.signature(function).bind(object())
    except TypeError as error:
        raise TypeError(f"{where}: it cannot be called with a view ({error}); write def names_of(view)") from None
    except ValueError:
        pass  # a builtin without a signature
    return cast("ReferenceFunction", function)


def check_kind(kind: object, where: str) -> None:
    """Raise `TypeError` unless this is a kind, with what to write instead."""
    if isinstance(kind, Kind):
        return
    if isinstance(kind, Object):
        raise TypeError(f"{where}: {kind.kind} {kind.key} is an object; pass its class, {type(kind).__name__}")
    if not isinstance(kind, type) or not issubclass(kind, Object):
        raise TypeError(
            f'{where}: {kind!r} is not a kind; pass a class, or Kind("group/version", "Name") if there is none'
        )
    if getattr(kind, "__resource__", None) is None:
        raise TypeError(f'{where}: {kind.__name__} has no kind; declare the class with group="..." and version="..."')


def _group_kind(reference: OwnerReference) -> GroupKind:
    try:
        return GroupKind(reference.group, reference.kind)
    except ValueError:
        # The garbage collector cannot read such a reference either.
        return GroupKind("", "")
