"""Creates and completes the objects of a server at its start."""

from __future__ import annotations

from steersman.apiserver.bootstrap.creation import create_missing
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.registry.builtin.service_addresses import free_unheld
from steersman.apiserver.storage import Storage


async def create_objects(registry: ResourceRegistry, storage: Storage, *, policy: bool) -> None:
    """Create the missing objects of a server, and release what no Service holds.

    With ``policy``, also create and complete roles and bindings.
    """
    services = registry.find("", "v1", "services")
    if services is not None and await storage.revision() > 1:
        await free_unheld(storage, map(decode_stored, (await storage.list(services.prefix)).records))
    stored = await create_missing(registry, storage, ("objects", "policy") if policy else ("objects",))
    if policy:
        from steersman.apiserver.bootstrap.policy import complete_policy  # noqa: PLC0415 - only needed for RBAC

        await complete_policy(storage, stored)
