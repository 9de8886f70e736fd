"""Container, and a command inside one: ContainerExec."""

from __future__ import annotations

from typing import Annotated, Literal

from steersman.markers import Int32, ListMap, ListSet, Maximum, Minimum, MinLength
from steersman.objects import MicroTime, PrinterColumn, Resource, Spec, Status, Struct, field
from steersman.workloads.kinds.additions import ContainerAdditions, ContainerObservation, ProcessObservation
from steersman.workloads.kinds.container_image import (
    ContainerBuildContext,
    ContainerLabel,
    CreateFileSystem,
    ImageLayer,
)
from steersman.workloads.kinds.environment import GROUP, VERSION, EnvVar, PemCertificate, TerminalSpec
from steersman.workloads.kinds.executable import ExecutableState
from steersman.workloads.kinds.health import HealthProbe, HealthProbeResult, HealthStatus

ContainerState = Literal[
    "",
    "Pending",
    "RuntimeUnhealthy",
    "Building",
    "Starting",
    "NotFound",
    "FailedToStart",
    "Running",
    "Paused",
    "Stopping",
    "Exited",
    "Unknown",
]


class VolumeMount(Struct):
    """A folder of the host, or a named volume, inside the container."""

    type: Literal["bind", "volume"]
    source: str = ""
    target: Annotated[str, MinLength(1)]
    read_only: bool = False


class ContainerPort(Struct):
    """A port of the container on the host."""

    host_port: Annotated[Int32, Minimum(0), Maximum(65535)] = 0
    """0: a free one."""
    container_port: Annotated[Int32, Minimum(1), Maximum(65535)]
    protocol: Literal["TCP", "UDP"] = "TCP"
    host_ip: str | None = field(default=None, name="hostIP")


class NetworkConnection(Struct):
    """A network that the container joins."""

    name: Annotated[str, MinLength(1)]
    aliases: list[str] | None = None


class ContainerPemCertificates(Struct):
    """Certificates to write inside the container."""

    certificates: list[PemCertificate]
    destination: str | None = None
    overwrite_bundle_paths: list[str] | None = None
    continue_on_error: bool = False


class ContainerSpec(Spec):
    """An image and what to run of it. After creation only start, stop, networks and the probes can change."""

    image: str | None = None
    build: ContainerBuildContext | None = None
    container_name: Annotated[str, MinLength(1)] | None = None
    volume_mounts: list[VolumeMount] | None = None
    ports: list[ContainerPort] | None = None
    env: Annotated[list[EnvVar], ListMap("name")] | None = None
    env_files: Annotated[list[str], ListSet()] | None = None
    restart_policy: Literal["no", "on-failure", "unless-stopped", "always"] = "no"
    command: str | None = None
    args: list[str] | None = None
    start: bool = True
    stop: bool = False
    networks: Annotated[list[NetworkConnection], ListMap("name")] | None = None
    """The networks to join; the default network if unset, none if empty."""
    mode: Literal["session", "persistent", "existing", "cleanup"] = "session"
    """What becomes of the container.

    - session: it ends with this object, and with the control plane.
    - persistent: it survives both, and a later Container of the same name and lifecycle key adopts it.
    - existing: adopts a container that exists, and leaves it alone afterwards.
    - cleanup: adopts a container that exists, and removes it with this object.
    """
    persistent: bool = False
    """The same as mode persistent; wins over mode."""
    monitor_pid: int | None = None
    monitor_timestamp: MicroTime | None = None
    run_args: list[str] | None = None
    """More arguments for the command line of the container runtime."""
    labels: Annotated[list[ContainerLabel], ListMap("key")] | None = None
    health_probes: list[HealthProbe] | None = None
    lifecycle_key: str | None = None
    pull_policy: Literal["always", "missing", "never"] = "missing"
    create_files: list[CreateFileSystem] | None = None
    image_layers: list[ImageLayer] | None = None
    pem_certificates: ContainerPemCertificates | None = None
    terminal: TerminalSpec | None = None
    steersman: ContainerAdditions | None = None


class ContainerStatus(Status):
    """What became of the container."""

    state: ContainerState = "Pending"
    container_id: str | None = None
    container_name: str | None = None
    startup_timestamp: MicroTime | None = None
    finish_timestamp: MicroTime | None = None
    startup_std_out_file: str | None = None
    startup_std_err_file: str | None = None
    terminal_socket_path: str | None = None
    exit_code: Int32 | None = None
    message: str | None = None
    effective_env: list[EnvVar] | None = None
    """The environment after templates; values that look like secrets are masked."""
    effective_args: list[str] | None = None
    networks: list[str] | None = None
    health_status: HealthStatus | None = None
    health_probe_results: Annotated[list[HealthProbeResult], ListMap("probeName")] | None = None
    lifecycle_key: str | None = None
    steersman: ContainerObservation | None = None


class Container(
    Resource[ContainerSpec, ContainerStatus],
    group=GROUP,
    version=VERSION,
    scope="Cluster",
    short_names=("ctr",),
    columns=(
        PrinterColumn(name="State", type="string", json_path=".status.state"),
        PrinterColumn(name="Health", type="string", json_path=".status.healthStatus"),
        PrinterColumn(name="Image", type="string", json_path=".spec.image"),
        PrinterColumn(name="Exit", type="integer", json_path=".status.exitCode"),
        PrinterColumn(name="Waiting For", type="string", json_path=".status.steersman.waitingFor"),
        PrinterColumn(name="Message", type="string", json_path=".status.message", priority=1),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ),
):
    """A container of Podman or Docker."""


class ContainerExecSpec(Spec):
    """A command inside a container. It cannot change."""

    container_name: Annotated[str, MinLength(1)]
    """The name of the Container object."""
    env: Annotated[list[EnvVar], ListMap("name")] | None = None
    env_files: Annotated[list[str], ListSet()] | None = None
    working_directory: str | None = None
    command: Annotated[str, MinLength(1)]
    args: list[str] | None = None


class ContainerExecStatus(Status):
    """What became of the command."""

    state: ExecutableState = ""
    startup_timestamp: MicroTime | None = None
    finish_timestamp: MicroTime | None = None
    exit_code: Int32 | None = None
    std_out_file: str | None = None
    std_err_file: str | None = None
    effective_env: list[EnvVar] | None = None
    effective_args: list[str] | None = None
    steersman: ProcessObservation | None = None


class ContainerExec(
    Resource[ContainerExecSpec, ContainerExecStatus],
    group=GROUP,
    version=VERSION,
    scope="Cluster",
    columns=(
        PrinterColumn(name="State", type="string", json_path=".status.state"),
        PrinterColumn(name="Container", type="string", json_path=".spec.containerName"),
        PrinterColumn(name="Exit", type="integer", json_path=".status.exitCode"),
        PrinterColumn(name="Waiting For", type="string", json_path=".status.steersman.waitingFor"),
        PrinterColumn(name="Message", type="string", json_path=".status.steersman.message", priority=1),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ),
):
    """One run of a command inside a container."""
