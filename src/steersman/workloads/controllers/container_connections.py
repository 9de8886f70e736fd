"""The ContainerNetworkConnections of a Container: one for each network that it joins."""

from __future__ import annotations

import hashlib

from steersman.controller import Context
from steersman.errors import AlreadyExists
from steersman.objects import ObjectMeta
from steersman.workloads.controllers.container_addresses import aliases_of, connections_of
from steersman.workloads.kinds import Container, ContainerNetworkConnection
from steersman.workloads.kinds.container_network import ContainerNetworkConnectionSpec


async def keep_connections(ctx: Context, container: Container, identity: str) -> None:
    """Make the connections of a Container exactly those of its spec. The Container owns them."""
    wanted = {
        _name(container, each.name, identity): ContainerNetworkConnectionSpec(
            container_network_name=each.name, container_id=identity, aliases=list(aliases_of(container, each))
        )
        for each in connections_of(container.spec)
    }
    present = {each.key.name: each for each in await ctx.client.owned_by(ContainerNetworkConnection, container)}
    for name, spec in wanted.items():
        if name not in present:
            try:
                await ctx.client.create(
                    ContainerNetworkConnection(metadata=ObjectMeta(name=name), spec=spec), owner=container
                )
            except AlreadyExists:
                # The name says what it is and whose: an earlier reconcile created it, and the cache has yet to see it.
                continue
    for name, connection in present.items():
        # A connection cannot change: the reconcile after its end creates it anew.
        if not connection.deleting and wanted.get(name) != connection.spec:
            await ctx.client.delete(connection, missing_ok=True)


def _name(container: Container, network: str, identity: str) -> str:
    digest = hashlib.sha256(f"{container.uid}/{network}/{identity}".encode()).hexdigest()[:10]
    return f"{container.key.name[:100].rstrip('-.')}-{network[:100].rstrip('-.')}-{digest}"
