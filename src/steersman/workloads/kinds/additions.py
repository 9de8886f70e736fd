"""What Steersman adds to the kinds of DCP: the fields under ``spec.steersman`` and ``status.steersman``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from steersman.markers import ListMap, Maximum, Minimum, MinItems, MinLength
from steersman.objects import MicroTime, Struct
from steersman.workloads.kinds.environment import Duration
from steersman.workloads.kinds.health import AddedProbe, HealthProbe


class Dependency(Struct):
    """A workload that another one waits for."""

    kind: Literal["Executable", "ExecutableReplicaSet", "Container", "Service"]
    name: Annotated[str, MinLength(1)]
    condition: Literal["Started", "Healthy", "Completed"] = "Started"
    """What to wait for.

    - Started: it runs, or a Service has an endpoint.
    - Healthy: all of its probes succeed.
    - Completed: it ended with exit code 0.
    """
    optional: bool | None = None
    """Whether the workload also starts once the other one has failed: it has ended for good, or is unhealthy."""


class RestartPolicy(Struct):
    """When a replica that has ended is replaced. The delay doubles with each restart and returns to its start after a while."""

    policy: Literal["Never", "OnFailure", "Always"] = "Never"
    delay: Duration = "1s"
    """The delay before the first restart."""
    maximum_delay: Duration = "1m"
    maximum_restarts: Annotated[int, Minimum(0)] | None = None
    """The number of restarts in a row after which the workload stays ended; no limit if unset."""


class FileWatch(Struct):
    """Files whose change restarts the workload."""

    paths: Annotated[list[Annotated[str, MinLength(1)]], MinItems(1)]
    """Globs, relative to the working directory; ``**`` stands for any folders."""
    ignore: list[str] | None = None
    """Globs of files that restart nothing; .git is always among them."""
    debounce: Duration = "300ms"
    """How long the files must rest before the restart."""
    cascade: bool = False
    """Whether the workloads that depend on this one restart too, in the order of their dependencies."""


class WorkloadAdditions(Struct):
    """Options of one process or container."""

    depends_on: Annotated[list[Dependency], ListMap("kind", "name")] | None = None
    """What must hold before the process starts."""
    health_probes: Annotated[list[AddedProbe], ListMap("name")] | None = None
    """TCP, exec and HTTP probes, beside ``spec.healthProbes``."""
    startup_deadline: Duration | None = None
    """How long the process may take until it is healthy; after that it is stopped, and its start has failed."""
    stop_timeout: Duration | None = None
    """How long the process may take to end after the stop signal; 10 s if unset."""
    stop_signal: Annotated[str, MinLength(1)] | None = None
    """The signal that asks the process to end; SIGTERM if unset."""


def probes_of(
    declared: Iterable[HealthProbe] | None, additions: WorkloadAdditions | None
) -> list[HealthProbe | AddedProbe]:
    """All probes of a process or a container: ``spec.healthProbes`` and those of ``spec.steersman``."""
    added = additions.health_probes if additions is not None else None
    return [*(declared or ()), *(added or ())]


class ProcessAdditions(WorkloadAdditions):
    """Options of one process."""

    user: Annotated[str, MinLength(1)] | None = None
    """The user that the program runs as: ``name``, ``uid``, ``name:group`` or ``uid:gid``. Needs root."""


class ReplicaSetAdditions(Struct):
    """Options of a set of processes."""

    restart: RestartPolicy | None = None
    watch: FileWatch | None = None


class ContainerAttach(Struct):
    """The program of this machine that starts a container, and is its input and output."""

    pid: Annotated[int, Minimum(1), Maximum(2**22)]
    start_ticks: int | None = None
    """When the program began, in clock ticks since the start of the system: a pid can be used again."""
    terminal: bool = False
    """Whether the container has a terminal."""


class ContainerAdditions(WorkloadAdditions):
    """Options of a container."""

    watch: FileWatch | None = None
    attach: ContainerAttach | None = None
    """The program that starts the container, with ``start --attach`` of the runtime; the control plane starts it if unset.

    The control plane keeps no output of the container, and deletes the Container when the program has ended.
    """


class ProcessObservation(Struct):
    """What Steersman observes beside the fields of DCP."""

    waiting_for: str | None = None
    """What the workload waits for, as a sentence."""
    message: str | None = None
    """Why it is in its state, as a sentence."""
    start_time: MicroTime | None = None
    """When the process with this pid began, by the kernel; with the pid it names one process for good."""
    descendants: int | None = None
    """The number of processes that a stop still waits for."""


class ContainerObservation(ProcessObservation):
    """What Steersman observes of a container beside the fields of DCP."""

    std_out_file: str | None = None
    """The file that the container's output is copied to."""
    std_err_file: str | None = None
    restarts: int = 0
    """How often the annotation ``steersman.dev/restarted-at``, or a start after a stop, began another run."""
    restarted_at: str | None = None
    """The value of the annotation ``steersman.dev/restarted-at`` that the container has followed."""
    attachable: bool = False
    """Whether the container waits for the program of ``spec.steersman.attach`` to start it."""
    problem: str | None = None
    """Why a command of the runtime for this container failed; it is repeated."""
    start_code: int | None = None
    """127 if the image has no such command, 126 if it cannot be executed, as in a shell; none after any other failure."""


class ReplicaSetObservation(Struct):
    """What Steersman observes of a set of processes."""

    restarts: int = 0
    last_restart_reason: str | None = None
    next_restart: MicroTime | None = None
    waiting_for: str | None = None
    message: str | None = None
    """Why the set does not run its replicas, as a sentence."""
    unwatched: str | None = None
    """Why changes of some watched files are missed, and what to do."""
