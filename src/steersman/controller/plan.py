"""A controller before it runs: what it watches, and how that leads to objects to reconcile.

Guarantees
- A plan is data: a manager can read from it which kinds are watched, and how, before anything starts.
- `assemble` makes a new controller every time, with nothing of an earlier one in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec

from steersman.cache import Cache
from steersman.client import Client
from steersman.controller.context import NO_EVENTS, Events, Reconciler
from steersman.controller.events import KindLike, ObjectEvent
from steersman.controller.mappers import Mapper, Owners, SameObject, kind_name
from steersman.controller.predicates import Predicate, when
from steersman.controller.records import KeyRecord
from steersman.controller.sources import KindSource, Source
from steersman.controller.watching import CachedKinds
from steersman.controller.workers import Controller, ControllerOptions
from steersman.objects import GroupVersionKind
from steersman.telemetry import Registry


class WatchedKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind that is watched, and whom its events concern."""

    kind: KindLike
    #: Makes the mapper: each assembled controller has its own.
    mapper: Callable[[], Mapper]
    #: How the mapper is spoken of.
    words: str = ""
    predicate: Predicate | None = None
    metadata_only: bool = False
    #: Kinds between this one and the one that is reconciled, the nearest first.
    through: tuple[KindLike, ...] = ()
    #: Every so many seconds all objects are looked at again.
    resync: float | None = None


class ControllerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a controller is made of."""

    name: str
    primary: KindLike
    watches: tuple[WatchedKind, ...]
    sources: tuple[Source, ...]
    reconciler: Reconciler[Any]
    options: ControllerOptions
    #: Kinds that it makes, changes and deletes, beside those that it owns.
    writes: tuple[KindLike, ...] = ()
    #: The conditions of the reconciled object that are its own: no other controller of a manager may set them.
    conditions: tuple[str, ...] = ()

    def kinds(self) -> dict[KindLike, bool]:
        """Every kind that is listened to or looked up, and whether its metadata is enough."""
        found: dict[KindLike, bool] = {}
        for watch in self.watches:
            for kind in (watch.kind, *watch.through):
                found[kind] = watch.metadata_only and found.get(kind, True)
        return found

    def assemble(
        self,
        cache: Cache,
        client: Client | None = None,
        *,
        on_record: Callable[[KeyRecord], None] | None = None,
        events: Events = NO_EVENTS,
        registry: Registry | None = None,
    ) -> Controller:
        """Make the controller; it reads from the cache and writes with ``client``, the cache's own unless given.

        ``on_record`` is told of every run, for metrics and traces; ``events`` and ``registry`` are what reconciles find
        in their context.
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
        )

    def _watched(self) -> list[GroupVersionKind]:
        return [kind.gvk() for kind in self.kinds()]

    def _kind_sources(self, kinds: CachedKinds) -> Iterator[KindSource]:
        for watch in self.watches:
            mapper = watch.mapper()
            watched = kinds.watched(watch.kind, resync=watch.resync)
            name = f"{kind_name(watch.kind)} ({watch.words})" if watch.words else kind_name(watch.kind)
            yield KindSource(name, watched, mapper, predicate=watch.predicate, stores=kinds)
            if isinstance(mapper, Owners):
                yield from self._links(watch, mapper, kinds)

    @staticmethod
    def _links(watch: WatchedKind, mapper: Owners, kinds: CachedKinds) -> Iterator[KindSource]:
        """Listen to the kinds between.

        One that appears after what it owns tells the owner above, which could not be found before; one that vanishes
        is remembered, so that what it owned is still understood.
        """
        for position, kind in enumerate(watch.through):
            above = mapper.above(watch.through[position + 1 :])
            name = f"{kind_name(kind)} (between {kind_name(watch.kind)} and its owner)"
            yield KindSource(
                name,
                kinds.watched(kind),
                above,
                predicate=when(_appeared),
                stores=kinds,
                before=_remembering(mapper),
            )


class Planned(Protocol):
    """Whatever can say which controller it is: a `StateMachine`, for example."""

    def plan(self) -> ControllerPlan:
        """Everything that the controller is made of."""
        ...


def _appeared(event: ObjectEvent) -> bool:
    return event.event == "appeared"


def _remembering(mapper: Owners) -> Callable[[ObjectEvent], None]:
    def remember(event: ObjectEvent) -> None:
        if event.event == "vanished":
            mapper.remember_vanished(event.latest)

    return remember


def same_object() -> Mapper:
    """The object itself is reconciled."""
    return SameObject()
