"""What containers share: networks, connections to them, and volumes."""

from __future__ import annotations

from typing import Annotated, Literal

from steersman.markers import MinLength
from steersman.objects import PrinterColumn, Resource, Spec, Status, Struct, field
from steersman.workloads.kinds.environment import GROUP, VERSION

ContainerNetworkState = Literal["", "Pending", "Running", "FailedToStart", "Removed", "NotFound"]
ContainerVolumeState = Literal["", "Pending", "RuntimeUnhealthy", "Ready"]


class NetworkAdditions(Struct):
    """Options of a network."""

    internal: bool = False
    """Whether its containers reach no other network."""


class ContainerNetworkSpec(Spec):
    """A network. It cannot change."""

    network_name: str | None = None
    """The name in the container runtime; a unique one if unset."""
    ipv6: bool = False
    mode: Literal["session", "persistent", "existing", "cleanup"] = "session"
    persistent: bool = False
    steersman: NetworkAdditions | None = None


class ContainerNetworkStatus(Status):
    """What became of the network."""

    state: ContainerNetworkState = ""
    message: str | None = None
    id: str | None = None
    network_name: str | None = None
    driver: str | None = None
    ipv6: bool = False
    subnets: list[str] | None = None
    gateways: list[str] | None = None
    container_ids: list[str] | None = None


class ContainerNetwork(
    Resource[ContainerNetworkSpec, ContainerNetworkStatus],
    group=GROUP,
    version=VERSION,
    scope="Cluster",
    columns=(
        PrinterColumn(name="State", type="string", json_path=".status.state"),
        PrinterColumn(name="Network", type="string", json_path=".status.networkName"),
        PrinterColumn(name="Message", type="string", json_path=".status.message"),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ),
):
    """A network of the container runtime."""


class ContainerNetworkConnectionSpec(Spec):
    """A container in a network. It cannot change."""

    container_network_name: Annotated[str, MinLength(1)]
    container_id: Annotated[str, MinLength(1)] = field(name="containerID")
    aliases: list[str] | None = None


class ContainerNetworkConnection(
    Resource[ContainerNetworkConnectionSpec, Status],
    group=GROUP,
    version=VERSION,
    scope="Cluster",
    columns=(
        PrinterColumn(name="Ready", type="string", json_path='.status.conditions[?(@.type=="Ready")].status'),
        PrinterColumn(name="Network", type="string", json_path=".spec.containerNetworkName"),
        PrinterColumn(name="Container", type="string", json_path=".spec.containerID"),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ),
):
    """A container's connection to a network. Its owner is the Container."""


class ContainerVolumeSpec(Spec):
    """A volume. It cannot change."""

    name: Annotated[str, MinLength(1)]
    """The name in the container runtime."""
    persistent: bool = True
    """Whether the volume stays when this object is deleted."""


class ContainerVolumeStatus(Status):
    """What became of the volume."""

    state: ContainerVolumeState = "Pending"


class ContainerVolume(
    Resource[ContainerVolumeSpec, ContainerVolumeStatus],
    group=GROUP,
    version=VERSION,
    scope="Cluster",
    columns=(
        PrinterColumn(name="State", type="string", json_path=".status.state"),
        PrinterColumn(name="Volume", type="string", json_path=".spec.name"),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ),
):
    """A named volume of the container runtime."""
