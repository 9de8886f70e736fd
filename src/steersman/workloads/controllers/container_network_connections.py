"""The controller of ContainerNetworkConnections: a container in a network.

Guarantees
- A connection is made as soon as the network runs, and made once: a container that has it already keeps it.
- Deleting a connection disconnects the container, unless the container or the network is gone.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import msgspec

from steersman.aio import utc_now
from steersman.controller import Blueprint, Context, Done, Outcome, Request, RequeueAfter, View, controller_for
from steersman.objects import Condition, Key, set_condition
from steersman.patterns import add_finalizer, has_finalizer, remove_finalizer
from steersman.workloads.containers import ContainerRunner, ContainerRuntimeError, Missing
from steersman.workloads.kinds import ContainerNetwork, ContainerNetworkConnection
from steersman.workloads.world import World

#: Keeps a connection until the container has left the network.
FINALIZER: Final = "steersman.dev/container-connections"
#: Seconds until a command that failed is repeated.
_RETRY = 2.0


class Connection(msgspec.Struct, kw_only=True):
    """The record of a ContainerNetworkConnection."""

    work: bool = False
    network: str = ""
    """The name of the network in the runtime, once the container is connected."""
    left: bool = False
    failure: str = ""
    retry_at: float = 0.0
    """When a command that failed is repeated, in the time of the loop."""


def container_network_connections(*, runner: ContainerRunner) -> Blueprint:
    """The controller of ContainerNetworkConnections, for a `Manager`."""
    world: World[Connection] = World("container connections", Connection, limit=4)
    reconciler = _Connections(world, runner)
    builder = controller_for(ContainerNetworkConnection).on(world)
    return builder.watches(ContainerNetwork, map=reconciler.waiters).run_with(reconciler)


class _Connections:
    def __init__(self, world: World[Connection], runner: ContainerRunner) -> None:
        self._world, self._runner = world, runner
        self._waiters: dict[str, set[Key]] = {}

    def waiters(self, view: View[ContainerNetwork]) -> list[Key]:
        """The connections to a network."""
        return sorted(self._waiters.get(view.key.name, ()))

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Bring one connection closer to its spec."""
        connection = await ctx.client.find(ContainerNetworkConnection, request.key)
        if connection is None:
            for keys in self._waiters.values():
                keys.discard(request.key)
            return Done()
        record = self._world.record(connection)
        if connection.deleting:
            return await self._delete(ctx, connection, record)
        connection = await add_finalizer(ctx.client, connection, FINALIZER)
        name = connection.spec.container_network_name
        self._waiters.setdefault(name, set()).add(connection.key)
        network = await ctx.client.find(ContainerNetwork, Key("", name))
        status = network.status if network is not None else None
        is_ready = status is not None and status.state == "Running"
        left = record.retry_at - asyncio.get_running_loop().time()
        may_connect = not record.work and not record.network and left <= 0
        if may_connect and is_ready and status is not None and status.network_name:
            record.work = True
            self._world.work(self._connect(connection, status.network_name), name=f"connect {connection.key}")
        waits = "" if is_ready else f"Waits for ContainerNetwork {name} to run."
        connected = bool(record.network)
        condition = Condition(
            type="Ready",
            status="True" if connected else "False",
            reason="Connected" if connected else "NotConnected",
            message="" if connected else record.failure or waits,
        )
        set_condition(connection.ensure_status(), condition, now=utc_now())
        await ctx.client.save(connection)
        return RequeueAfter(left) if left > 0 else Done()

    async def _delete(self, ctx: Context, connection: ContainerNetworkConnection, record: Connection) -> Outcome:
        if not has_finalizer(connection, FINALIZER) or record.work:
            return Done()
        if record.network and not record.left:
            left = record.retry_at - asyncio.get_running_loop().time()
            if left > 0:
                return RequeueAfter(left)
            record.work = True
            self._world.work(self._disconnect(connection, record.network), name=f"disconnect {connection.key}")
            return Done()
        await remove_finalizer(ctx.client, connection, FINALIZER)
        self._world.forget(connection.uid)
        return Done()

    async def _connect(self, connection: ContainerNetworkConnection, network: str) -> None:
        container, connected, failure = connection.spec.container_id, "", ""
        try:
            facts = await self._runner.find(container)
            if facts is not None and network not in facts.networks:
                await self._runner.connect(network, container, connection.spec.aliases or ())
            connected = network
        except ContainerRuntimeError as error:
            failure = str(error)
        finally:
            self._world.defer(connection.uid, partial(_set_connected, connected, failure), "connected")

    async def _disconnect(self, connection: ContainerNetworkConnection, network: str) -> None:
        left = False
        try:
            await self._runner.disconnect(network, connection.spec.container_id)
            left = True
        except Missing:
            left = True
        except ContainerRuntimeError:
            # It is tried again.
            left = False
        finally:
            self._world.defer(connection.uid, partial(_set_left, left), "disconnected")


def _set_connected(network: str, failure: str, record: Connection) -> None:
    record.work, record.network, record.failure = False, network, failure
    _set_retry(record, failed=not network)


def _set_left(left: bool, record: Connection) -> None:  # noqa: FBT001 - the argument of an operation
    record.work, record.left = False, left
    _set_retry(record, failed=not left)


def _set_retry(record: Connection, *, failed: bool) -> None:
    record.retry_at = asyncio.get_running_loop().time() + _RETRY if failed else 0.0
