"""Runs the plugins that objects of admissionregistration.k8s.io configure: policies and webhooks.

Guarantees
- Without such objects, a write costs only two searches in the store's index.
- The plugins are made at the first write after the store has such an object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.storage import Storage

_PREFIX: Final = "admissionregistration.k8s.io/"


class StoredPlugins(Plugin):
    """Calls plugins in order, if the store has any object that configures one of them."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})

    def __init__(self, storage: Storage, make: Callable[[], Sequence[Plugin]]) -> None:
        self._storage = storage
        self._make = make
        self._made: Sequence[Plugin] | None = None

    async def admit(self, attributes: Attributes) -> None:
        """Call `admit` of every plugin."""
        for plugin in await self._plugins():
            if attributes.operation in plugin.operations:
                await plugin.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Call `validate` of every plugin."""
        for plugin in await self._plugins():
            if attributes.operation in plugin.operations:
                await plugin.validate(attributes)

    async def _plugins(self) -> Sequence[Plugin]:
        if not (await self._storage.list(_PREFIX, limit=1)).records:
            return ()
        if self._made is None:
            self._made = self._make()
        return self._made
