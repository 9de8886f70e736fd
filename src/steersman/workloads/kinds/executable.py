"""Executable: one run of a program. ExecutableReplicaSet: a number of them that is kept running."""

from __future__ import annotations

from typing import Annotated, Literal

from steersman.markers import Int32, ListMap, ListSet, Minimum, MinLength
from steersman.objects import MicroTime, PrinterColumn, Resource, ScaleSubresource, Spec, Status, Struct, field
from steersman.workloads.kinds.additions import (
    ProcessAdditions,
    ProcessObservation,
    ReplicaSetAdditions,
    ReplicaSetObservation,
)
from steersman.workloads.kinds.environment import (
    GROUP,
    VERSION,
    AmbientEnvironment,
    EnvVar,
    PemCertificate,
    TerminalSpec,
)
from steersman.workloads.kinds.health import HealthProbe, HealthProbeResult, HealthStatus

ExecutableState = Literal[
    "", "Starting", "Running", "NotFound", "Stopping", "Terminated", "FailedToStart", "Finished", "Unknown"
]


class ExecutablePemCertificates(Struct):
    """Certificates to write to files for the process."""

    certificates: list[PemCertificate]
    continue_on_error: bool = False
    """Whether invalid certificates are skipped instead of failing the start."""


class ExecutableSpec(Spec):
    """A program, its arguments and its environment."""

    executable_path: Annotated[str, MinLength(1)]
    """The program: an absolute path, a path relative to the working directory, or a name to find in PATH."""
    working_directory: str | None = None
    args: list[str] | None = None
    env: Annotated[list[EnvVar], ListMap("name")] | None = None
    env_files: Annotated[list[str], ListSet()] | None = None
    """Files of lines NAME=value. Variables in env win over them."""
    execution_type: Literal["Process", "IDE"] = "Process"
    fallback_execution_types: list[Literal["Process", "IDE"]] | None = None
    ambient_environment: AmbientEnvironment | None = None
    start: bool = True
    """Whether to start the program. Set it later to start a program that was held back."""
    stop: bool = False
    """Whether to end the program."""
    mode: Literal["session", "persistent", "cleanup"] = "session"
    """What becomes of the process.

    - session: it ends with this object, and with the control plane.
    - persistent: it survives both, and a later Executable with the same lifecycle key adopts it.
    - cleanup: adopts an existing process, never starts one, and ends it with this object.
    """
    persistent: bool = False
    """The same as mode persistent; wins over mode."""
    lifecycle_key: str | None = None
    """Names the persistent process to adopt; by default a hash of what the program starts with."""
    monitor_pid: int | None = None
    """A process whose end also ends this one."""
    monitor_timestamp: MicroTime | None = None
    """When that process began. If another process has its pid now, the start fails."""
    health_probes: list[HealthProbe] | None = None
    pem_certificates: ExecutablePemCertificates | None = None
    terminal: TerminalSpec | None = None
    steersman: ProcessAdditions | None = None


class ExecutableStatus(Status):
    """What became of the program."""

    execution_id: str | None = field(default=None, name="executionID")
    pid: int | None = None
    state: ExecutableState = ""
    startup_timestamp: MicroTime | None = None
    finish_timestamp: MicroTime | None = None
    exit_code: Int32 | None = None
    std_out_file: str | None = None
    std_err_file: str | None = None
    terminal_socket_path: str | None = None
    effective_env: list[EnvVar] | None = None
    """The environment after templates; values that look like secrets are masked."""
    effective_args: list[str] | None = None
    health_status: HealthStatus | None = None
    health_probe_results: Annotated[list[HealthProbeResult], ListMap("probeName")] | None = None
    steersman: ProcessObservation | None = None


class Executable(
    Resource[ExecutableSpec, ExecutableStatus],
    group=GROUP,
    version=VERSION,
    scope="Cluster",
    short_names=("exe",),
    columns=(
        PrinterColumn(name="State", type="string", json_path=".status.state"),
        PrinterColumn(name="Health", type="string", json_path=".status.healthStatus"),
        PrinterColumn(name="PID", type="integer", json_path=".status.pid"),
        PrinterColumn(name="Exit", type="integer", json_path=".status.exitCode"),
        PrinterColumn(name="Waiting For", type="string", json_path=".status.steersman.waitingFor"),
        PrinterColumn(name="Message", type="string", json_path=".status.steersman.message", priority=1),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ),
):
    """One run of a program, as a process of this machine. After creation only start, stop and the probes can change."""


class ExecutableTemplate(Struct):
    """The Executables of a set."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    spec: ExecutableSpec


class ExecutableReplicaSetSpec(Spec):
    """How many processes, and of which program. A changed template replaces the processes."""

    replicas: Annotated[Int32, Minimum(0)] = 1
    stop_on_scale_down: bool = False
    """Whether scaling down stops Executables and keeps them as objects, instead of deleting them."""
    template: ExecutableTemplate
    steersman: ReplicaSetAdditions | None = None


class ExecutableReplicaSetStatus(Status):
    """How many processes there are."""

    observed_replicas: Int32 = 0
    running_replicas: Int32 = 0
    failed_replicas: Int32 = 0
    finished_replicas: Int32 = 0
    last_scale_time: MicroTime | None = None
    health_status: HealthStatus | None = None
    steersman: ReplicaSetObservation | None = None


class ExecutableReplicaSet(
    Resource[ExecutableReplicaSetSpec, ExecutableReplicaSetStatus],
    group=GROUP,
    version=VERSION,
    scope="Cluster",
    short_names=("ers",),
    scale=ScaleSubresource(status_replicas_path=".status.observedReplicas"),
    columns=(
        PrinterColumn(name="Replicas", type="integer", json_path=".spec.replicas"),
        PrinterColumn(name="Running", type="integer", json_path=".status.runningReplicas"),
        PrinterColumn(name="Failed", type="integer", json_path=".status.failedReplicas"),
        PrinterColumn(name="Finished", type="integer", json_path=".status.finishedReplicas"),
        PrinterColumn(name="Health", type="string", json_path=".status.healthStatus"),
        PrinterColumn(name="Restarts", type="integer", json_path=".status.steersman.restarts"),
        PrinterColumn(name="Waiting For", type="string", json_path=".status.steersman.waitingFor"),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ),
):
    """A number of processes of one program that is kept running."""
