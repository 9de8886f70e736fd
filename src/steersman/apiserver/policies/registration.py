"""Runs the plugins that objects of admissionregistration.k8s.io configure: policies and webhooks.

Guarantee: without such objects, a write costs only two searches in the store's index.
"""

from __future__ import annotations

from collections.abc import Sequence

from steersman.apiserver.admission import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.storage import Storage
from steersman.apiserver.webhooks.configurations import GROUP


class RegisteredPlugins(Plugin):
    """Calls plugins in order, if the store has any object that configures one of them."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})

    def __init__(self, storage: Storage, plugins: Sequence[Plugin]) -> None:
        self._storage = storage
        self._plugins = tuple(plugins)

    async def admit(self, attributes: Attributes) -> None:
        """Call `admit` of every plugin."""
        if (await self._storage.list(f"{GROUP}/", limit=1)).records:
            for plugin in self._plugins:
                if attributes.operation in plugin.operations:
                    await plugin.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Call `validate` of every plugin."""
        if (await self._storage.list(f"{GROUP}/", limit=1)).records:
            for plugin in self._plugins:
                if attributes.operation in plugin.operations:
                    await plugin.validate(attributes)
