"""What the controllers of namespaces share: they reconcile a namespace by its name.

Guarantees: a namespace that came or changed is reconciled, also one that was there at the start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from steersman.controller import Cause, Request
from steersman.controlplane.sightings import Sighting
from steersman.objects import Key

#: Lets a request be reconciled.
Add = Callable[[Request, Cause], None]

NAMESPACES = "core/namespaces/"


class NamespaceWatcher:
    """Lets namespaces be reconciled."""

    def __init__(self) -> None:
        self._add: Add | None = None

    def feeds(self, add: Add) -> None:
        """Say where requests go."""
        self._add = add

    def add(self, namespace: str, note: str) -> None:
        """Let a namespace be reconciled."""
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
