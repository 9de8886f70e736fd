"""Owners and their children, for tests of one control plane."""

from __future__ import annotations

from steersman import Client
from steersman.controlplane import CONTROLLERS
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import ObjectMeta, OwnerReference

GARBAGE = next(iter(CONTROLLERS))


def config_map(name: str, *owners: ConfigMap, namespace: str = "default", finalizers: list[str] | None = None):
    references = [
        OwnerReference(api_version="v1", kind="ConfigMap", name=each.key.name, uid=each.metadata.uid or "")
        for each in owners
    ]
    metadata = ObjectMeta(name=name, namespace=namespace, finalizers=finalizers)
    if references:
        metadata.owner_references = references
    return ConfigMap(metadata=metadata)


async def family(client: Client) -> tuple[ConfigMap, ConfigMap]:
    """An owner and its child."""
    owner = await client.create(config_map("owner"))
    return owner, await client.create(config_map("child", owner))


async def names(client: Client, namespace: str = "default") -> list[str]:
    found = [each.key.name for each in await client.list(ConfigMap, namespace=namespace)]
    return [name for name in found if name != "kube-root-ca.crt"]
