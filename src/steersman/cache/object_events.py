"""What happened to an object, as handlers, predicates and mappers see it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from steersman.cache.stored_object import StoredView
from steersman.objects import GroupVersionKind, Key

EventType: TypeAlias = Literal["appeared", "changed", "vanished"]


class ObjectEvent(msgspec.Struct, frozen=True, eq=False):
    """An object appeared, changed or vanished.

    ``old`` and ``new`` are its states. An object that appeared has no old state. One that vanished has no new state: it was
    deleted, or the cache no longer selects it.
    """

    type: EventType
    old: StoredView | None = None
    new: StoredView | None = None
    #: States between without an event of their own, oldest first: a reader may have seen them. The most recent are kept.
    passed: tuple[StoredView, ...] = ()
    #: The object was present when the handler was added, or was in the first list.
    initial: bool = False
    #: Nothing changed; the periodic resync is due.
    resync: bool = False
    #: Its own frame on a watch without a gap; no other event was merged into it.
    unbroken: bool = False
    #: The object was created after the handler was added. Only the watch of a whole kind or namespace proves that: a
    #: selected object may have existed before, and so may one that is in a list.
    created: bool = False
    #: Of an object that vanished: the watch reported the deletion, and ``old`` is the final state. If false, it was
    #: missing from a list.
    certain: bool = True

    def __post_init__(self) -> None:
        if (self.type != "appeared") != (self.old is not None) or (self.type != "vanished") != (self.new is not None):
            raise ValueError(f"event {self.type!r} does not fit its states: old={self.old!r}, new={self.new!r}")

    def __repr__(self) -> str:
        return f"<{self.kind.kind} {self.key} {self.type}>"

    @property
    def latest(self) -> StoredView:
        """The newest known state."""
        view = self.new or self.old
        assert view is not None
        return view

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.latest.key

    @property
    def kind(self) -> GroupVersionKind:
        """The object's kind."""
        return self.latest.kind

    @property
    def states(self) -> tuple[StoredView, ...]:
        """All states of the event: the old and the new one, and those between."""
        return tuple([view for view in (self.old, *self.passed, self.new) if view is not None])
