"""Creates and completes the objects of a server at its start."""

from __future__ import annotations

from steersman.apiserver.bootstrap.creation import create_missing
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.storage import Storage


async def create_objects(registry: ResourceRegistry, storage: Storage, *, policy: bool) -> None:
    """Create the missing objects of a server. With ``policy``, also create and complete roles and bindings."""
    stored = await create_missing(registry, storage, ("objects", "policy") if policy else ("objects",))
    if policy:
        from steersman.apiserver.bootstrap.policy import complete_policy  # noqa: PLC0415 - only needed for RBAC

        await complete_policy(storage, stored)
