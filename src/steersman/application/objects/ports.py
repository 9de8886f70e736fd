"""The ports of services, and the Service objects that publish them.

If the published port of a process is its target, the process listens there itself. Otherwise the proxy listens on the
published port. A container always has the proxy in front of it: its address outlives it, and replicas share it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from steersman.application.model import Application, Port, ServiceDefinition
from steersman.application.objects.names import object_name
from steersman.application.objects.remarks import Remarks
from steersman.transport import ALL_INTERFACES, local_address
from steersman.workloads.kinds import ServiceSpec

_LOOPBACK = "127.0.0.1"


class ServedPort(msgspec.Struct, frozen=True, kw_only=True):
    """A TCP port of a service."""

    #: The name of the Service object.
    service: str
    port: Port
    #: The port that the process or container listens on; None: one that it gets in its environment.
    listens_at: int | None
    #: The port that clients connect to; None: one that is chosen once and stays the same.
    published_at: int | None
    #: Whether the process itself listens on the published port, without the proxy.
    is_direct: bool = False
    #: Whether clients are shown the address: False for a port where the process need not listen.
    is_shown: bool = True

    @property
    def host(self) -> str:
        """The address for clients on this machine, as the Service's status will have it."""
        return local_address(self.port.host_address or (_LOOPBACK if self.is_direct else "localhost"))

    @property
    def client_port(self) -> str:
        """The port for clients on this machine, or a template for it."""
        return str(self.published_at) if self.published_at else f'{{{{portFor "{self.service}"}}}}'

    @property
    def reached_port(self) -> str:
        """The port for clients that do not depend on the service: a template, which waits until the proxy listens there.

        A process that listens itself has no address before it runs: a template for it could wait in a circle.
        """
        return self.client_port if self.is_direct else f'{{{{portFor "{self.service}"}}}}'

    @property
    def own_port(self) -> str:
        """The port that the process listens on, or a template for it."""
        return str(self.listens_at) if self.listens_at else f'{{{{portForServing "{self.service}"}}}}'

    @property
    def spec(self) -> ServiceSpec:
        """The spec of the Service object."""
        if self.is_direct:
            return ServiceSpec(address_allocation_mode="Proxyless", port=self.listens_at or 0)
        given = {"port": self.published_at, "address": self.port.host_address}
        return ServiceSpec(**{name: value for name, value in given.items() if value})  # type: ignore[arg-type]

    @property
    def producer(self) -> dict[str, object]:
        """The entry of the annotation ``service-producer``."""
        entry: dict[str, object] = {"serviceName": self.service}
        if self.is_direct and self.host != _LOOPBACK:
            entry["address"] = self.host
        return entry | ({"port": self.listens_at} if self.listens_at else {})


def served_ports(definition: ServiceDefinition, remarks: Remarks) -> tuple[ServedPort, ...]:
    """The TCP ports of a service. The first Service object has the service's name, the others NAME-TARGET."""
    found: list[ServedPort] = []
    for port in declared_ports(definition):
        if port.protocol == "udp":
            _check_udp(definition, port, remarks)
            continue
        name = _service_name(definition, port, {each.service for each in found})
        if definition.is_process:
            found.append(_of_process(definition, port, name, remarks))
        elif port.target is None:
            remarks.error(definition, "ports: a port of a container needs a target (the port inside the container)")
        else:
            found.append(ServedPort(service=name, port=port, listens_at=port.target, published_at=port.published))
    for each in found[1:]:
        if each.listens_at is None and not each.port.name:
            remarks.error(
                definition, "ports: a second port without a target needs a name; the process gets it in PORT_<NAME>"
            )
    return tuple(found)


def declared_ports(definition: ServiceDefinition) -> tuple[Port, ...]:
    """The ports of a service. A process also publishes what it exposes: it has no network of its own.

    A container with ``network_mode`` publishes none.
    """
    if definition.network_mode:
        return ()
    if not definition.is_process:
        return definition.ports
    if definition.own_port is not None and definition.scale > 1:
        return (Port(published=definition.own_port, target=definition.own_port),)
    known = {each.target for each in definition.ports}
    return (*definition.ports, *(Port(target=each) for each in definition.expose if each not in known))


def _of_process(definition: ServiceDefinition, port: Port, name: str, remarks: Remarks) -> ServedPort:
    published = port.published or port.target
    if port.target is None or definition.scale > 1:
        is_shown = definition.own_port is None
        return ServedPort(service=name, port=port, listens_at=None, published_at=published, is_shown=is_shown)
    is_direct = published == port.target
    if is_direct and port.host_address in ALL_INTERFACES:
        remarks.warn(
            definition,
            f"ports: the process itself listens on port {port.target}, so Steersman cannot make it listen on"
            f" {port.host_address}; publish another port, and the proxy listens there",
        )
    return ServedPort(service=name, port=port, listens_at=port.target, published_at=published, is_direct=is_direct)


def _service_name(definition: ServiceDefinition, port: Port, taken: set[str]) -> str:
    name = object_name(definition.name)
    which = port.target or port.published or object_name(port.name or "")
    candidates = (name, f"{name}-{which}", f"{name}-{which}-{port.published}")
    return next((each for each in candidates if each not in taken), f"{candidates[-1]}-{len(taken)}")


def _check_udp(definition: ServiceDefinition, port: Port, remarks: Remarks) -> None:
    """The proxy forwards only TCP: the runtime publishes UDP ports, and a process listens on the published port."""
    if definition.is_process and (port.target is None or port.published not in {None, port.target}):
        remarks.error(definition, "ports: the proxy does not forward UDP: use the same port for published and target")
    if not definition.is_process and port.target is None:
        remarks.error(definition, "ports: a port of a container needs a target (the port inside the container)")
    if definition.scale > 1 and (definition.is_process or port.published):
        remarks.error(definition, "ports: a UDP port cannot be shared by several replicas: remove it, or use scale 1")


def check_ports(application: Application, ports: dict[str, tuple[ServedPort, ...]], remarks: Remarks) -> None:
    """Report services that need the same port on this machine."""
    seen: dict[int, list[tuple[str, ServiceDefinition]]] = {}
    for definition in application.services.values():
        _check_published(definition, ports[definition.name], remarks)
        for number, host in sorted(_listeners(definition, ports[definition.name])):
            for other_host, other in seen.setdefault(number, []):
                if other is not definition and _overlap(host, other_host):
                    remarks.error(
                        definition,
                        f"ports: service {other.name} ({other.place}) also needs port {number} on this machine:"
                        " change one of them",
                    )
            seen[number].append((host, definition))


def _check_published(definition: ServiceDefinition, ports: Iterable[ServedPort], remarks: Remarks) -> None:
    """Report a port on this machine that one service publishes twice, for two ports of its own."""
    seen: dict[int, list[str]] = {}
    for each in ports:
        host = each.port.host_address or _LOOPBACK
        others = seen.setdefault(each.published_at or 0, [])
        if each.published_at and any(_overlap(host, other) for other in others):
            remarks.error(definition, f"ports: it publishes port {each.published_at} of this machine twice: remove one")
        others.append(host)


def _listeners(definition: ServiceDefinition, ports: Iterable[ServedPort]) -> set[tuple[int, str]]:
    found = {(each.published_at, each.port.host_address or _LOOPBACK) for each in ports}
    if definition.is_process:
        found |= {(each.listens_at, _LOOPBACK) for each in ports if not each.is_direct}
    return {(number, host) for number, host in found if number}


def _overlap(host: str, other: str) -> bool:
    same = {"localhost": _LOOPBACK}
    return same.get(host, host) == same.get(other, other) or host in ALL_INTERFACES or other in ALL_INTERFACES
