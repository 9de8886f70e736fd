"""The shared part of controllers that reconcile namespaces by name.

Guarantee: every new or changed namespace is reconciled, including those that exist at the start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from steersman.controller import Cause, Request
from steersman.controlplane.object_changes import ObjectChange
from steersman.objects import Key

#: Queues a request.
Add = Callable[[Request, Cause], None]

NAMESPACES = "core/namespaces/"


class NamespaceWatcher:
    """Queues namespaces."""

    def __init__(self) -> None:
        self._add: Add | None = None

    def feeds(self, add: Add) -> None:
        """Set where requests are queued."""
        self._add = add

    def add(self, namespace: str, note: str) -> None:
        """Queue a namespace."""
        assert self._add is not None
        self._add(Request(Key("", namespace)), Cause(what="external", note=note))

    def seen_all(self, changes: Sequence[ObjectChange]) -> None:
        """See `Watcher`."""
        for change in changes:
            if change.definition.prefix == NAMESPACES:
                self.seen(change)

    def seen(self, change: ObjectChange) -> None:
        """See `Watcher`."""
        if change.definition.prefix == NAMESPACES and not change.gone:
            self.add(change.metadata.name, "the namespace changed")

    def kinds_changed(self) -> None:
        """See `Watcher`."""
