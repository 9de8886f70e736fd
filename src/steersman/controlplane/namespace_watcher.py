"""The shared part of controllers that reconcile namespaces by name.

Guarantee: every new or changed namespace is reconciled, including those that exist at the start.
"""

from __future__ import annotations

from collections.abc import Sequence

from steersman.controller import Cause, Request
from steersman.controlplane.object_changes import ObjectChange, Watcher
from steersman.objects import Key

NAMESPACES = "core/namespaces/"


class NamespaceWatcher(Watcher):
    """Queues namespaces."""

    def add(self, namespace: str, note: str) -> None:
        """Queue a namespace."""
        assert self._add is not None
        self._add(Request(Key("", namespace)), Cause(what="external", note=note))

    def seen_all(self, changes: Sequence[ObjectChange]) -> None:
        super().seen_all([change for change in changes if change.definition.prefix == NAMESPACES])

    def seen(self, change: ObjectChange) -> None:
        if change.definition.prefix == NAMESPACES and not change.gone:
            self.add(change.metadata.name, "the namespace changed")
