"""The shared part of controllers that reconcile namespaces by name.

Guarantee: every new or changed active namespace is reconciled, including those that exist at the start.
"""

from __future__ import annotations

from collections.abc import Sequence

from steersman.controller import Cause, Request
from steersman.controlplane.object_changes import ObjectChange, Watcher
from steersman.objects import Key

NAMESPACES = "core/namespaces/"


class NamespaceWatcher(Watcher):
    """Queues active namespaces."""

    def __init__(self) -> None:
        #: The terminating namespaces; none of them becomes active again.
        self.terminating: dict[str, None] = {}

    def add(self, namespace: str, note: str) -> None:
        """Queue a namespace."""
        assert self._add is not None
        self._add(Request(Key("", namespace)), Cause(what="external", note=note))

    def seen_all(self, changes: Sequence[ObjectChange]) -> None:
        self.terminating.clear()
        super().seen_all([change for change in changes if change.definition.prefix == NAMESPACES])

    def seen(self, change: ObjectChange) -> None:
        if change.definition.prefix != NAMESPACES:
            return
        name = change.metadata.name
        if change.gone:
            self.terminating.pop(name, None)
        elif change.metadata.deletion_timestamp is not None:
            self.terminating[name] = None
        else:
            self.add(name, "the namespace changed")
