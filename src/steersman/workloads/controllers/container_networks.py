"""The controller of ContainerNetworks.

Guarantees
- A network is created once, and removed with its object if it belongs to the session or is cleaned up.
- Containers that are left in a network are disconnected before it is removed.
- As long as containers are in a network, every service of the host can be reached at its gateway, at the service's own port.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import msgspec

from steersman import aio
from steersman.controller import Blueprint, Context, Done, Outcome, Request, RequeueAfter, View, controller_for
from steersman.objects import Condition, Key, set_condition
from steersman.patterns import add_finalizer, has_finalizer, remove_finalizer
from steersman.transport import local_address
from steersman.workloads.containers import (
    ContainerRunner,
    ContainerRuntimeError,
    NameInUse,
    NetworkFacts,
    RuntimeUnavailable,
)
from steersman.workloads.containers.creator import NAME, UID
from steersman.workloads.kinds import (
    Container,
    ContainerNetwork,
    ContainerNetworkState,
    Service,
    runtime_names,
)
from steersman.workloads.proxies import CannotListen, Forwarding, Proxy
from steersman.workloads.serving import unserved
from steersman.workloads.transitions import steps
from steersman.workloads.world import World

#: Keeps a ContainerNetwork until its network is gone.
FINALIZER: Final = "steersman.dev/container-networks"
#: Seconds until a command that failed is repeated, and between two looks at the containers of a network.
_RETRY, _LOOK = 2.0, 15.0
#: Seconds between two looks while containers change.
_NEWS = 0.2


class Network(msgspec.Struct, kw_only=True):
    """The record of a ContainerNetwork."""

    work: bool = False
    facts: NetworkFacts | None = None
    members: tuple[str, ...] = ()
    missing: bool = False
    vanished: bool = False
    removed: bool = False
    failure: str = ""
    retry_at: float = 0.0
    looked_at: float = 0.0
    services: frozenset[str] = frozenset()
    """The services that can be reached at the gateway."""


Change = Callable[[Network], None]
Doing = Callable[[ContainerNetwork, str], Coroutine[Any, Any, Change]]


def container_networks(*, runner: ContainerRunner, proxy: Proxy) -> Blueprint:
    """The controller of ContainerNetworks, for a `Manager`."""
    world: World[Network] = World("container networks", Network, limit=4)
    reconciler = _Networks(world, runner, proxy)
    proxy.watch(lambda service: _wake(world, service))
    builder = controller_for(ContainerNetwork).on(world)
    builder = builder.watches(Container, map=reconciler.networks_of_container)
    builder = builder.watches(Service, map=reconciler.networks_of_service)
    return builder.options(concurrency=4).run_with(reconciler)


class _Networks:
    def __init__(self, world: World[Network], runner: ContainerRunner, proxy: Proxy) -> None:
        self._world, self._runner, self._proxy = world, runner, proxy
        self._known: set[Key] = set()
        #: The networks whose containers may have changed.
        self._stale: set[Key] = set()

    def networks_of_container(self, view: View[Container]) -> list[Key]:  # noqa: ARG002 - a mapper's signature
        """Every network: a container that comes or goes may be in any of them."""
        self._stale |= self._known
        return sorted(self._known)

    def networks_of_service(self, view: View[Service]) -> list[Key]:  # noqa: ARG002 - a mapper's signature
        """Every network: each of them offers every service at its gateway."""
        return sorted(self._known)

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Bring one ContainerNetwork closer to its spec."""
        network = await ctx.client.find(ContainerNetwork, request.key)
        if network is None:
            self._known.discard(request.key)
            return Done()
        record = self._world.record(network)
        if network.deleting:
            return await self._delete(ctx, network, record)
        self._known.add(network.key)
        network = await add_finalizer(ctx.client, network, FINALIZER)
        now = asyncio.get_running_loop().time()
        look_at = record.looked_at + (_NEWS if network.key in self._stale else _LOOK)
        if not record.work and not record.vanished:
            if record.facts is None and now >= record.retry_at:
                self._begin(network, record, self._create)
            elif record.facts is not None and now >= look_at:
                is_news = network.key in self._stale
                self._stale.discard(network.key)
                self._begin(network, record, partial(self._look_at_members, record.facts) if is_news else self._look)
        await self._keep_gateway(ctx, network, record)
        await self._write(ctx, network, record)
        if record.vanished or record.work:
            return Done()
        return RequeueAfter((look_at if record.facts is not None else record.retry_at) - now)

    # the network

    def _begin(self, network: ContainerNetwork, record: Network, doing: Doing) -> None:
        record.work = True
        name = record.facts.name if record.facts is not None else _name(network)
        self._world.work(self._reported(network, name, doing), name=f"network {network.key}")

    async def _reported(self, network: ContainerNetwork, name: str, doing: Doing) -> None:
        change: Change = _unchanged
        try:
            change = await doing(network, name)
        except ContainerRuntimeError as error:
            again = asyncio.get_running_loop().time() + _RETRY
            change = partial(_set_failure, str(error), again, is_outage=isinstance(error, RuntimeUnavailable))
        finally:
            self._world.defer(network.uid, partial(_finish, change), "done")

    async def _create(self, network: ContainerNetwork, name: str) -> Change:
        mode = mode_of(network)
        # A session's network rarely exists: each command of the runtime takes a tenth of a second.
        found = await self._runner.find_network(name) if mode != "session" else None
        if found is None and mode in {"existing", "cleanup"}:
            return partial(_set_missing, asyncio.get_running_loop().time() + _RETRY)
        if found is not None:
            return await self._look(network, name)
        for candidate in runtime_names(network, name):
            try:
                await self._create_named(network, candidate, bound=mode == "session")
            except NameInUse:
                found = await self._runner.find_network(candidate)
                if found is None or found.labels.get(UID) == network.uid:
                    return await self._look(network, candidate)
                continue
            facts = await self._runner.find_network(candidate)
            if facts is None:
                return _set_vanished
            return partial(_set_facts, facts, (), asyncio.get_running_loop().time())
        raise NameInUse(
            f"another network has the name {name}: remove it with {self._runner.name} network rm, or use mode existing"
        )

    async def _create_named(self, network: ContainerNetwork, name: str, *, bound: bool) -> None:
        await self._runner.create_network(
            name,
            ipv6=network.spec.ipv6,
            labels={NAME: network.key.name, UID: network.uid},
            bound=bound,
            internal=network.spec.steersman is not None and network.spec.steersman.internal,
        )

    async def _look(self, _: ContainerNetwork, name: str) -> Change:
        facts = await self._runner.find_network(name)
        if facts is None:
            return _set_vanished
        members = await self._runner.containers_in(name)
        return partial(_set_facts, facts, members, asyncio.get_running_loop().time())

    async def _look_at_members(self, facts: NetworkFacts, _: ContainerNetwork, name: str) -> Change:
        members = await self._runner.containers_in(name)
        return partial(_set_facts, facts, members, asyncio.get_running_loop().time())

    async def _remove(self, _: ContainerNetwork, name: str) -> Change:
        for member in await self._runner.containers_in(name):
            await self._runner.disconnect(name, member)
        await self._runner.remove_network(name)
        return _set_removed

    # the host, as the containers of the network see it

    async def _keep_gateway(self, ctx: Context, network: ContainerNetwork, record: Network) -> None:
        """Listen at the gateway for each service that listens on the host."""
        gateway = next(iter(record.facts.gateways), "") if record.facts is not None and record.members else ""
        wanted: dict[str, Forwarding] = {}
        for each in await ctx.client.list(Service) if gateway else ():
            status = each.status
            if status is not None and status.effective_port and status.effective_address and not unserved(each):
                port = status.effective_port
                place = (_local(status.effective_address), port)
                wanted[each.key.name] = Forwarding((gateway,), port, (place,), (status.proxy_process_pid or 0,))
        kept: set[str] = set()
        for name, forwarding in wanted.items():
            try:
                await self._proxy.keep(_gateway_key(network, name), forwarding)
                kept.add(name)
            except CannotListen:
                # The bridge has no address before its first container runs; the next look tries again.
                continue
        for name in record.services - kept:
            await self._proxy.remove(_gateway_key(network, name))
        record.services = frozenset(kept)

    # the status and the end

    async def _write(self, ctx: Context, network: ContainerNetwork, record: Network) -> ContainerNetwork:
        before: ContainerNetworkState = network.status.state if network.status is not None else ""
        state = _state_of(record)
        for step in steps("ContainerNetwork", before, state) or [state]:
            _write_status(network, step, record)  # type: ignore[arg-type]
            network = (await ctx.client.save(network)).object
        if before != state and record.failure:
            ctx.events.record(network, "Warning", state, "Creating", record.failure)
        return network

    async def _delete(self, ctx: Context, network: ContainerNetwork, record: Network) -> Outcome:
        self._known.discard(network.key)
        if not has_finalizer(network, FINALIZER) or record.work:
            return Done()
        for name in record.services:
            await self._proxy.remove(_gateway_key(network, name))
        record.services = frozenset()
        ours = record.facts is not None and not record.vanished and mode_of(network) in {"session", "cleanup"}
        if ours and not record.removed:
            now = asyncio.get_running_loop().time()
            if now < record.retry_at:
                return RequeueAfter(record.retry_at - now)
            self._begin(network, record, self._remove)
            return Done()
        await remove_finalizer(ctx.client, network, FINALIZER)
        self._world.forget(network.uid)
        return Done()


def mode_of(network: ContainerNetwork) -> str:
    """The mode of a network: the flag ``persistent`` wins."""
    return "persistent" if network.spec.persistent else network.spec.mode


def _name(network: ContainerNetwork) -> str:
    return network.spec.network_name or f"{network.key.name[:200]}-{network.uid[:8]}"


def _gateway_key(network: ContainerNetwork, service: str) -> str:
    return f"{service}@{network.key.name}"


def _wake(world: World[Network], service: str) -> None:
    """Reconcile the network at whose gateway a service listens: the proxy may have been restarted."""
    _, separator, network = service.partition("@")
    if separator:
        world.send(Key("", network), "proxy")


def _local(address: str) -> str:
    """Where this machine reaches a service that listens at an address or at localhost: the proxy looks up no names."""
    return "127.0.0.1" if address == "localhost" else local_address(address)


def _state_of(record: Network) -> ContainerNetworkState:
    if record.vanished:
        return "Removed"
    if record.facts is not None:
        return "Running"
    if record.missing:
        return "NotFound"
    return "FailedToStart" if record.failure else "Pending"


def _write_status(network: ContainerNetwork, state: ContainerNetworkState, record: Network) -> None:
    status = network.ensure_status()
    status.state = state
    status.observed_generation = network.generation
    status.message = record.failure or (f"There is no network {_name(network)}." if record.missing else None)
    facts = record.facts
    if facts is not None:
        status.id, status.network_name, status.driver, status.ipv6 = facts.id, facts.name, facts.driver, facts.ipv6
        status.subnets, status.gateways = list(facts.subnets), list(facts.gateways)
        status.container_ids = sorted(record.members) or None
    is_ready = state == "Running"
    condition = Condition(
        type="Ready",
        status="True" if is_ready else "False",
        reason=state,
        message="" if is_ready else status.message or f"It is {state}.",
        observed_generation=network.generation,
    )
    set_condition(status, condition, now=aio.utc_now())


def _finish(change: Change, record: Network) -> None:
    record.work = False
    change(record)


def _unchanged(record: Network) -> None:
    """The work was cancelled."""


def _set_facts(facts: NetworkFacts, members: tuple[str, ...], now: float, record: Network) -> None:
    record.facts, record.members, record.looked_at = facts, members, now
    record.failure, record.missing = "", False


def _set_missing(again: float, record: Network) -> None:
    record.missing, record.retry_at, record.failure = True, again, ""


def _set_vanished(record: Network) -> None:
    record.vanished = True
    record.failure = "Another program removed the network."


def _set_removed(record: Network) -> None:
    record.removed = True


def _set_failure(error: str, again: float, record: Network, *, is_outage: bool) -> None:
    record.failure = f"The container runtime does not answer: {error}" if is_outage else error
    record.retry_at = record.looked_at = again
