"""The notifications that an informer sends to its handlers: a closed union, to be matched exhaustively.

``passed`` lists intermediate states without a notification of their own, oldest first: a reader may have seen them.
Their number is bounded; the most recent are kept.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from steersman.cache.stored_object import StoredView
from steersman.objects import GroupVersionKind, Key


class Appeared(msgspec.Struct, frozen=True):
    """An object that is new to the handler exists."""

    new: StoredView
    #: The object existed when the handler was added, or was in the first list.
    initial: bool = False
    #: The notification stands for exactly one event of an uninterrupted watch.
    unbroken: bool = False
    passed: tuple[StoredView, ...] = ()
    #: The object was created after the handler was added. Only the watch of a whole kind or namespace proves that: a
    #: selected object may have existed before, and so may one that is in a list.
    created: bool = False

    @property
    def key(self) -> Key:
        """The object's key."""
        return self.new.key

    @property
    def kind(self) -> GroupVersionKind:
        """The object's kind."""
        return self.new.kind


class Changed(msgspec.Struct, frozen=True):
    """An object known to the handler has changed, or is delivered again (``resync``)."""

    old: StoredView
    new: StoredView
    resync: bool = False
    #: The notification stands for several changes, because the handler was slower than the watch.
    coalesced: bool = False
    #: The notification stands for exactly one event of an uninterrupted watch.
    unbroken: bool = False
    passed: tuple[StoredView, ...] = ()

    @property
    def key(self) -> Key:
        """The object's key."""
        return self.new.key

    @property
    def kind(self) -> GroupVersionKind:
        """The object's kind."""
        return self.new.kind


class Vanished(msgspec.Struct, frozen=True):
    """An object known to the handler is gone, or the cache no longer selects it."""

    last: StoredView
    #: The watch reported the deletion, and ``last`` is the final state. If false, the object was missing from a list.
    certain: bool = True
    #: The notification stands for exactly one event of an uninterrupted watch.
    unbroken: bool = False
    passed: tuple[StoredView, ...] = ()

    @property
    def key(self) -> Key:
        """The object's key."""
        return self.last.key

    @property
    def kind(self) -> GroupVersionKind:
        """The object's kind."""
        return self.last.kind


Notification: TypeAlias = Appeared | Changed | Vanished
