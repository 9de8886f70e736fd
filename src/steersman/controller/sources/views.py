"""What predicates and mappers see of a watched object, and the cause that an event is for a reconcile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias, TypeVar

from steersman.cache import ObjectEvent
from steersman.controller.causes import Cause
from steersman.objects import GroupVersionKind, Key, Kind, Object, ObjectMeta

T_co = TypeVar("T_co", covariant=True)
#: A kind: its class, or a `Kind` if it has no class.
KindLike: TypeAlias = type[Object] | Kind


class View(Protocol[T_co]):
    """One state of an object. Cheap parts are ready, the rest is decoded on access. Read-only."""

    @property
    def kind(self) -> GroupVersionKind: ...
    @property
    def key(self) -> Key: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def deleting(self) -> bool: ...
    @property
    def metadata(self) -> ObjectMeta: ...
    @property
    def object(self) -> T_co: ...


class Remainder(ObjectEvent, frozen=True, eq=False, kw_only=True):
    """The states of an event on which the mapper failed; ``whole`` is the event."""

    whole: ObjectEvent

    def __repr__(self) -> str:
        return repr(self.whole)


def cause_of(event: ObjectEvent) -> Cause:
    """The event as a cause."""
    if isinstance(event, Remainder):
        event = event.whole
    latest = event.latest
    return Cause(
        what="initial" if event.initial else "resync" if event.resync else "object",
        kind=latest.kind,
        type=event.type,
        key=latest.key,
        generation=latest.generation or None,
        resource_version=latest.resource_version,
        unbroken=event.unbroken,
        created=latest.uid if event.created else "",
    )
