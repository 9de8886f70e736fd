"""What an informer tells its handlers: a closed union, to be matched exhaustively.

``passed`` are states that the object went through and that the handler was not told of, the oldest first: a reader may have
seen it so. They are bounded; of more than that, the last are kept.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from steersman.cache.stored import View
from steersman.objects import GroupVersionKind, Key


class Appeared(msgspec.Struct, frozen=True):
    """An object that the handler had not seen is there."""

    new: View
    #: It was there already when the handler was added, or when the cache was first filled.
    initial: bool = False
    #: It stands for exactly one frame of a watch that was not interrupted.
    unbroken: bool = False
    passed: tuple[View, ...] = ()

    @property
    def key(self) -> Key:
        """Which object."""
        return self.new.key

    @property
    def kind(self) -> GroupVersionKind:
        """Of which kind."""
        return self.new.kind


class Changed(msgspec.Struct, frozen=True):
    """An object that the handler had seen is in another state now, or is shown again (``resync``)."""

    old: View
    new: View
    resync: bool = False
    #: It stands for several changes: the handler was slower than they came.
    coalesced: bool = False
    #: It stands for exactly one frame of a watch that was not interrupted.
    unbroken: bool = False
    passed: tuple[View, ...] = ()

    @property
    def key(self) -> Key:
        """Which object."""
        return self.new.key

    @property
    def kind(self) -> GroupVersionKind:
        """Of which kind."""
        return self.new.kind


class Vanished(msgspec.Struct, frozen=True):
    """An object that the handler had seen is gone, or outside of the cache's selection."""

    last: View
    #: The watch said so, and ``last`` is its final state; otherwise it was missing from a list.
    certain: bool = True
    #: It stands for exactly one frame of a watch that was not interrupted.
    unbroken: bool = False
    passed: tuple[View, ...] = ()

    @property
    def key(self) -> Key:
        """Which object."""
        return self.last.key

    @property
    def kind(self) -> GroupVersionKind:
        """Of which kind."""
        return self.last.kind


Notification: TypeAlias = Appeared | Changed | Vanished
