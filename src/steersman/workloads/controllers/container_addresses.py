"""Names, addresses and networks of a container: where it reaches services, and where it is reached.

- A service that a container of a shared network serves is reached directly, by its name and the port inside the container.
- Any other service is reached through the host: the name stands for the gateway of the network, where the proxy listens too.
"""

from __future__ import annotations

from collections.abc import Callable

from steersman.controller import Context
from steersman.errors import AlreadyExists
from steersman.objects import Key, ObjectMeta
from steersman.workloads.containers import Attachment, ContainerFacts, ContainerRunner
from steersman.workloads.controllers.container_launch import reuses
from steersman.workloads.kinds import (
    Container,
    ContainerNetwork,
    ContainerNetworkSpec,
    ContainerSpec,
    NetworkConnection,
    Service,
)
from steersman.workloads.launches import texts_with_templates
from steersman.workloads.serving import InvalidProducers, is_settled, producers, unserved
from steersman.workloads.templates import Address, Addresses, NotYet, calls

#: The ContainerNetwork that a Container joins if its spec names none.
DEFAULT_NETWORK = "default"
#: Called with the kind and the name of an object that a Container waits for.
Wait = Callable[[str, str], None]


def connections_of(spec: ContainerSpec) -> list[NetworkConnection]:
    """The networks that a container joins.

    If the spec is silent, a container of the session joins the default network, which ends with the session too. One that
    outlives the session stays in the network that the runtime gives it.
    """
    if spec.networks is not None:
        return spec.networks
    return [] if reuses(spec) else [NetworkConnection(name=DEFAULT_NETWORK)]


def aliases_of(container: Container, connection: NetworkConnection) -> tuple[str, ...]:
    """The names of a container in a network: its own, those of its services, and those of its spec."""
    served = (producer.service_name for producer in producers(container))
    return tuple(dict.fromkeys((*(connection.aliases or ()), container.key.name, *served)))


class ContainerAddresses:
    """Finds the addresses of services from inside and outside of containers."""

    def __init__(self, runner: ContainerRunner) -> None:
        self._runner = runner
        #: The services by the addresses on the host, as last read.
        self.known: dict[str, Address] = {}

    async def networks(self, ctx: Context, container: Container, wait: Wait) -> list[Attachment] | None:
        """The networks to join, all of which exist; None for the runtime's own. Raises `NotYet`."""
        if container.spec.networks is None and reuses(container.spec):
            return None
        attachments: list[Attachment] = []
        for connection in connections_of(container.spec):
            wait("ContainerNetwork", connection.name)
            network = await ctx.client.find(ContainerNetwork, Key("", connection.name))
            if network is None and container.spec.networks is None:
                await _create_default(ctx)
            status = network.status if network is not None else None
            if status is None or status.state != "Running" or not status.network_name:
                why = f": {status.message}" if status is not None and status.message else ""
                raise NotYet(f"ContainerNetwork {connection.name} to run{why}")
            attachments.append(Attachment(status.network_name, aliases_of(container, connection)))
        return attachments

    async def of_templates(self, ctx: Context, container: Container, wait: Wait) -> Addresses:
        """The addresses that templates can name, as seen from inside the container."""
        serving = {
            producer.service_name: Address(producer.address or "0.0.0.0", producer.port or _first_port(container))  # noqa: S104 - inside
            for producer in producers(container)
        }
        reached: dict[str, Address] = {}
        inside = await self._inside(ctx, container)
        for name in sorted(calls(texts_with_templates(container.spec)).reached):
            wait("Service", name)
            service = await ctx.client.find(Service, Key("", name))
            if name in inside:
                reached[name] = Address(name, inside[name])
            elif service is not None:
                # At the address of a service that is not served, another program may listen.
                is_served = is_settled(service) and not unserved(service)
                port = service.status.effective_port if service.status is not None and is_served else None
                reached[name] = Address(name, port or 0)
        return Addresses(serving, reached)

    async def hosts(self, ctx: Context, container: Container) -> dict[str, str]:
        """The names of services that are reached through the gateway of the first network, and its address."""
        inside = await self._inside(ctx, container)
        services = [service.key.name for service in await ctx.client.list(Service)]
        self.known = {}
        for service in await ctx.client.list(Service):
            if service.status is None or unserved(service):
                continue
            if service.status.effective_address and service.status.effective_port:
                self.known[service.key.name] = Address(service.status.effective_address, service.status.effective_port)
        gateway = ""
        for connection in connections_of(container.spec)[:1]:
            network = await ctx.client.find(ContainerNetwork, Key("", connection.name))
            if network is not None and network.status is not None:
                gateway = next(iter(network.status.gateways or ()), "")
        return {name: gateway for name in sorted(services) if name not in inside} if gateway else {}

    def published(self, port: int | None, facts: ContainerFacts) -> Address:
        """Where the host reaches a port of a container."""
        for (inside, _), (host, outside) in sorted(facts.ports.items()):
            if port in {None, inside}:
                return Address(host, outside)
        return Address()

    async def _inside(self, ctx: Context, container: Container) -> dict[str, int]:
        """The services that other containers of a shared network serve, and their ports inside."""
        ours = {connection.name for connection in connections_of(container.spec)}
        ports: dict[str, int] = {}
        for other in await ctx.client.list(Container):
            if ours & {connection.name for connection in connections_of(other.spec)}:
                try:
                    for producer in producers(other):
                        ports[producer.service_name] = producer.port or _first_port(other)
                except InvalidProducers:
                    continue
        return {name: port for name, port in ports.items() if port}


def _first_port(container: Container) -> int:
    return next((port.container_port for port in container.spec.ports or ()), 0)


async def _create_default(ctx: Context) -> None:
    try:
        await ctx.client.create(
            ContainerNetwork(metadata=ObjectMeta(name=DEFAULT_NETWORK), spec=ContainerNetworkSpec())
        )
    except AlreadyExists:
        return
