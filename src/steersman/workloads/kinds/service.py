"""Service: a stable address. Endpoint: a process or container behind it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from steersman.markers import Int32, Maximum, Minimum, MinLength
from steersman.objects import PrinterColumn, Resource, Spec, Status, Struct
from steersman.workloads.kinds.environment import GROUP, VERSION

#: The condition of a Service whose address belongs to it: the proxy listens there, or no other program has the port.
SERVED: Final = "Served"

AddressAllocationMode = Literal[
    "Localhost",
    "IPv4ZeroOne",
    "IPv4Loopback",
    "IPv6ZeroOne",
    "AllInterfaces",
    "IPv4AllInterfaces",
    "IPv6AllInterfaces",
    "Proxyless",
]


class ServiceObservation(Struct):
    """What Steersman observes beside the fields of DCP."""

    message: str | None = None
    """Why the service is not ready, such as the process that holds its port."""
    endpoints: int = 0
    parked_connections: int = 0
    """Connections that wait for the first endpoint."""


class ServiceSpec(Spec):
    """Where the service listens. All of it can change; the proxy then moves."""

    address: str | None = None
    """The address to listen at, in place of the one that the mode chooses: an IP address, or localhost."""
    port: Annotated[Int32, Minimum(0), Maximum(65535)] = 0
    """The port to listen at; 0: a free one, which is then kept."""
    protocol: Literal["TCP", "UDP"] = "TCP"
    address_allocation_mode: AddressAllocationMode = "Localhost"
    """How the address is chosen.

    - Localhost: 127.0.0.1 and ::1.
    - IPv4ZeroOne: 127.0.0.1. IPv6ZeroOne: ::1.
    - IPv4Loopback: an address 127.x.y.z that no other service has.
    - AllInterfaces, IPv4AllInterfaces, IPv6AllInterfaces: every address of the machine.
    - Proxyless: no proxy; the service has the address of its first endpoint.
    """


class ServiceStatus(Status):
    """Where the service listens, and whether anything answers there."""

    state: Literal["NotReady", "Ready"] = "NotReady"
    """Ready if there is an endpoint."""
    proxy_process_pid: int | None = None
    proxy_config_file: str | None = None
    effective_address: str | None = None
    """The address, known before there is an endpoint."""
    effective_port: Int32 | None = None
    proxyless_endpoint_namespace: str | None = None
    proxyless_endpoint_name: str | None = None
    steersman: ServiceObservation | None = None


class Service(
    Resource[ServiceSpec, ServiceStatus],
    group=GROUP,
    version=VERSION,
    scope="Cluster",
    short_names=("svc",),
    columns=(
        PrinterColumn(name="State", type="string", json_path=".status.state"),
        PrinterColumn(name="Address", type="string", json_path=".status.effectiveAddress"),
        PrinterColumn(name="Port", type="integer", json_path=".status.effectivePort"),
        PrinterColumn(name="Endpoints", type="integer", json_path=".status.steersman.endpoints"),
        PrinterColumn(name="Message", type="string", json_path=".status.steersman.message"),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ),
):
    """A stable address for the processes and containers behind it."""


class EndpointSpec(Spec):
    """An address behind a service. It cannot change."""

    service_namespace: str = ""
    service_name: Annotated[str, MinLength(1)]
    address: Annotated[str, MinLength(1)]
    port: Annotated[Int32, Minimum(1), Maximum(65535)]


class Endpoint(
    Resource[EndpointSpec, Status],
    group=GROUP,
    version=VERSION,
    scope="Cluster",
    columns=(
        PrinterColumn(name="Service", type="string", json_path=".spec.serviceName"),
        PrinterColumn(name="Address", type="string", json_path=".spec.address"),
        PrinterColumn(name="Port", type="integer", json_path=".spec.port"),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ),
):
    """An address at which a process or a container serves a Service. Its owner is the Executable or the Container."""
