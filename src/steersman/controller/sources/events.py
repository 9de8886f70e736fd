"""Events of watched objects, as predicates and mappers see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

from steersman.controller.causes import Cause, Event
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


class ObjectEvent:
    """An object appeared, changed or vanished.

    ``old`` and ``new`` are its states. An object that appeared has no old state; one that vanished has no new state.
    """

    __slots__ = ("created", "event", "initial", "new", "old", "resync", "unbroken")

    def __init__(
        self,
        event: Event,
        *,
        old: View[Any] | None = None,
        new: View[Any] | None = None,
        initial: bool = False,
        resync: bool = False,
        unbroken: bool = False,
        created: bool = False,
    ) -> None:
        if (event != "appeared") != (old is not None) or (event != "vanished") != (new is not None):
            raise ValueError(f"event {event!r} does not fit its states: old={old!r}, new={new!r}")
        self.event: Event = event
        self.old = old
        self.new = new
        #: The object was present when the watch began.
        self.initial = initial
        #: Nothing changed; the periodic resync is due.
        self.resync = resync
        #: Its own frame on a watch without a gap; no other event was merged into it.
        self.unbroken = unbroken
        #: The object was created since the watch began.
        self.created = created

    def __repr__(self) -> str:
        return f"<{self.latest.kind.kind} {self.key} {self.event}>"

    @property
    def latest(self) -> View[Any]:
        """The newest known state."""
        found = self.new or self.old
        assert found is not None
        return found

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.latest.key

    @property
    def states(self) -> tuple[View[Any], ...]:
        """All states of the event: the old and the new one, and those between."""
        return tuple(view for view in (self.old, self.new) if view is not None)

    def cause(self) -> Cause:
        """This event as a cause."""
        latest = self.latest
        return Cause(
            what="initial" if self.initial else "resync" if self.resync else "object",
            kind=latest.kind,
            event=self.event,
            key=latest.key,
            generation=latest.generation or None,
            resource_version=latest.resource_version,
            unbroken=self.unbroken,
            created=latest.uid if self.created else "",
        )


class MergedEvent(ObjectEvent):
    """Several events of one object: the mapper is called with every state that was not mapped yet.

    That includes the states between the first and the last: a reconcile that read the object in one of them must run
    again now that it changed.
    """

    __slots__ = ("_between", "_cause")

    def __init__(
        self,
        event: Event,
        *,
        old: View[Any] | None = None,
        new: View[Any] | None = None,
        between: tuple[View[Any], ...],
        initial: bool = False,
        resync: bool = False,
        created: bool = False,
        cause: Cause | None = None,
    ) -> None:
        # Not a single frame of a watch, so it is not unbroken.
        super().__init__(event, old=old, new=new, initial=initial, resync=resync, created=created)
        self._between = between
        self._cause = cause

    def __repr__(self) -> str:
        return f"<{self.cause()}>"

    @property
    def states(self) -> tuple[View[Any], ...]:
        """All states, oldest first."""
        old, new = self.old, self.new
        return (*((old,) if old is not None else ()), *self._between, *((new,) if new is not None else ()))

    def cause(self) -> Cause:
        """The latest event as the cause."""
        return self._cause or super().cause()
