"""Custom resource definitions under deletion: what the server itself still has to do for them.

Guarantees: read-only. A definition whose instances are all held by finalizers does not count as busy.
"""

from __future__ import annotations

from collections.abc import Sequence

from steersman.apiserver import ApiServer
from steersman.controlplane.object_changes import ObjectChange, Watcher, metadata_of

_PREFIX = "apiextensions.k8s.io/customresourcedefinitions/"
_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


class EndingDefinitions(Watcher):
    """Tracks definitions under deletion."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._ending: dict[str, None] = {}

    def seen_all(self, changes: Sequence[ObjectChange]) -> None:
        self._ending.clear()
        super().seen_all(changes)

    def seen(self, change: ObjectChange) -> None:
        if change.definition.prefix == _PREFIX:
            metadata = change.metadata
            if not change.gone and metadata.deletion_timestamp is not None and _FINALIZER in metadata.finalizers:
                self._ending[metadata.name] = None
            else:
                self._ending.pop(metadata.name, None)

    async def busy(self) -> list[str]:
        """The definitions whose instances the server is deleting."""
        return [name for name in self._ending if await self._is_busy(name)]

    async def _is_busy(self, name: str) -> bool:
        resource, _, group = name.partition(".")
        page = await self._server.storage.list(f"{group}/{resource}/")
        if not page.records:
            return True
        return any(metadata_of(each.value).deletion_timestamp is None for each in page.records)
