"""The shared part of controllers that reconcile namespaces by name.

Guarantee: every new or changed namespace is reconciled, including those that exist at the start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from steersman.controller import Cause, Request
from steersman.controlplane.sightings import Sighting
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

    def seen_all(self, sightings: Sequence[Sighting]) -> None:
        """See `Watcher`."""
        for sighting in sightings:
            if sighting.definition.prefix == NAMESPACES:
                self.seen(sighting)

    def seen(self, sighting: Sighting) -> None:
        """See `Watcher`."""
        if sighting.definition.prefix == NAMESPACES and not sighting.gone:
            self.add(sighting.metadata.name, "the namespace changed")

    def kinds_changed(self) -> None:
        """See `Watcher`."""
