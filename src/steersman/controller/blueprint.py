"""The blueprint of a controller: what it watches, and how events map to objects to reconcile.

Guarantees
- A blueprint is data: a manager can read which kinds are watched, and how, before anything starts.
- `assemble` makes a new controller every time, which shares nothing with an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from steersman.cache import Cache, ObjectEvent
from steersman.client import Client
from steersman.controller.cached_kinds import CachedKinds
from steersman.controller.causes import Request
from steersman.controller.context import NO_EVENTS, Events, LeavingReconciler, Reconciler
from steersman.controller.controller import Controller
from steersman.controller.options import ControllerOptions
from steersman.controller.records import KeyRecord
from steersman.controller.sources.mappers import Mapper, Owners, SameObject
from steersman.controller.sources.predicates import Predicate, when
from steersman.controller.sources.source import KindSource, Source
from steersman.controller.sources.views import KindLike
from steersman.controller.targets import Scope
from steersman.objects import GroupVersionKind, kind_name
from steersman.telemetry import Registry

if TYPE_CHECKING:
    from steersman.cache import ReferenceFunction


class WatchedKind(msgspec.Struct, frozen=True, kw_only=True):
    """A watched kind, and the mapper for its events."""

    kind: KindLike
    #: Makes the mapper: each assembled controller has its own.
    mapper: Callable[[], Mapper]
    #: A description of the mapper.
    words: str = ""
    predicate: Predicate | None = None
    metadata_only: bool = False
    #: Kinds between this one and the reconciled one, nearest first.
    through: tuple[KindLike, ...] = ()
    #: The interval, in seconds, at which all objects are reconciled again.
    resync: float | None = None
    #: The controller works while the server does not serve this kind.
    optional: bool = False
    #: Whether the mapper names only objects in the namespace of the watched one.
    local: bool = False
    #: What a reconciled object refers to of this kind. Without it, the controller needs all objects.
    references: ReferenceFunction | None = None


class Blueprint(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a controller is made of."""

    name: str
    primary: KindLike
    watches: tuple[WatchedKind, ...]
    sources: tuple[Source, ...]
    reconciler: Reconciler[Any]
    options: ControllerOptions
    #: Earlier names of the controller, whose status and finalizers it takes over.
    formerly: tuple[str, ...] = ()
    #: Kinds that it creates, changes and deletes, beside those that it owns.
    writes: tuple[KindLike, ...] = ()
    #: Those of them that it writes in other namespaces than that of the reconciled object.
    across_namespaces: tuple[KindLike, ...] = ()
    #: The conditions that it owns on the reconciled object: no other controller of a manager may set them.
    conditions: tuple[str, ...] = ()
    #: Whether the reconciled kind is namespaced; None if unknown.
    namespaced: bool | None = None

    def kinds(self) -> dict[KindLike, bool]:
        """Every kind that is watched or looked up, and whether its metadata is enough."""
        kinds: dict[KindLike, bool] = {}
        for watch in self.watches:
            for kind in (watch.kind, *watch.through):
                kinds[kind] = watch.metadata_only and kinds.get(kind, True)
        return kinds

    def referenced_kinds(self) -> frozenset[KindLike]:
        """The kinds of which it needs only objects that reconciled objects refer to."""
        whole = {kind for watch in self.watches for kind in (watch.kind, *watch.through) if watch.references is None}
        return frozenset(watch.kind for watch in self.watches if watch.kind not in whole)

    def references(self) -> list[tuple[KindLike, ReferenceFunction]]:
        """The functions that return what reconciled objects refer to, each with its kind."""
        return [(watch.kind, watch.references) for watch in self.watches if watch.references is not None]

    def required_kinds(self) -> list[KindLike]:
        """Every kind without which the controller cannot work."""
        return list(
            dict.fromkeys(kind for watch in self.watches if not watch.optional for kind in (watch.kind, *watch.through))
        )

    def assemble(
        self,
        cache: Cache,
        client: Client | None = None,
        *,
        on_record: Callable[[KeyRecord], None] | None = None,
        events: Events = NO_EVENTS,
        registry: Registry | None = None,
        admits: Callable[[Request], bool] | None = None,
    ) -> Controller:
        """Make the controller. It reads from the cache and writes with ``client`` (default: the cache's own).

        ``on_record`` is called for every reconcile, for metrics and traces. Reconciles find ``events`` and ``registry``
        in their context. Requests that ``admits`` refuses are not queued.
        """
        kinds = CachedKinds(cache)
        return Controller(
            self.name,
            (*self._kind_sources(kinds), *self.sources),
            self.reconciler,
            client=kinds.client_for(client or cache.client),
            options=self.options,
            primary=self.primary.gvk(),
            watched=self._watched(),
            on_record=on_record,
            traces=kinds.traces,
            events=events,
            registry=registry,
            scope=Scope(kind_name(self.primary), self.namespaced),
            admits=admits,
            on_left=partial(self.reconciler.leave, kinds) if isinstance(self.reconciler, LeavingReconciler) else None,
        )

    def _watched(self) -> list[GroupVersionKind]:
        return [kind.gvk() for kind in self.required_kinds()]

    def _kind_sources(self, kinds: CachedKinds) -> Iterator[KindSource]:
        for watch in self.watches:
            mapper = watch.mapper()
            watched = kinds.watched(watch.kind, resync=watch.resync, optional=watch.optional, mapper=mapper)
            name = f"{kind_name(watch.kind)} ({watch.words})" if watch.words else kind_name(watch.kind)
            yield KindSource(name, watched, mapper, kind=watch.kind.gvk(), predicate=watch.predicate, stores=kinds)
            if isinstance(mapper, Owners):
                yield from self._links(watch, mapper, kinds)

    @staticmethod
    def _links(watch: WatchedKind, mapper: Owners, kinds: CachedKinds) -> Iterator[KindSource]:
        """Watch the kinds between.

        One that appears after the object it owns triggers the owner above, which could not be found before. One that
        vanishes is remembered, so that later events of the objects it owned still find the owner.
        """
        for position, kind in enumerate(watch.through):
            above = mapper.above(watch.through[position + 1 :])
            name = f"{kind_name(kind)} (between {kind_name(watch.kind)} and its owner)"
            yield KindSource(
                name,
                kinds.watched(kind),
                above,
                kind=kind.gvk(),
                predicate=when(_appeared),
                stores=kinds,
                before=_remembering(mapper),
            )


class SupportsBlueprint(Protocol):
    """An object with a blueprint, such as a `StateMachine`."""

    def blueprint(self) -> Blueprint:
        """The blueprint of its controller."""
        ...


def _appeared(event: ObjectEvent) -> bool:
    return event.type == "appeared"


def _remembering(mapper: Owners) -> Callable[[ObjectEvent], None]:
    def remember(event: ObjectEvent) -> None:
        if event.type == "vanished":
            mapper.remember_vanished(event.latest)

    return remember


def same_object() -> Mapper:
    """A mapper from an object to itself."""
    return SameObject()
