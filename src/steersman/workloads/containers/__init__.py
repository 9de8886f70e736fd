"""Containers of Podman or Docker, through their command lines.

Guarantees
- What belongs to a session is removed with it, also after kill -9 of the control plane: a reaper, a small process of its own,
  removes it by its label. If both are killed, the next session removes it.
- A process of a container ends with it, also if the runtime was killed while it started the container.
- No value of a variable stands in the arguments of a command.
- A runtime that does not answer is an error of its own, `RuntimeUnavailable`.
"""

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.workloads.containers.archive import InvalidFiles as InvalidFiles, archive as archive
from steersman.workloads.containers.arguments import attach_arguments as attach_arguments
from steersman.workloads.containers.command import reported_error as reported_error
from steersman.workloads.containers.command_line import CommandLineRunner as CommandLineRunner
from steersman.workloads.containers.dialects import DOCKER as DOCKER, PODMAN as PODMAN, Dialect as Dialect
from steersman.workloads.containers.runner import (
    Attachment as Attachment,
    CannotExecute as CannotExecute,
    ContainerFacts as ContainerFacts,
    ContainerLaunch as ContainerLaunch,
    ContainerRunner as ContainerRunner,
    ContainerRuntimeError as ContainerRuntimeError,
    ExecLaunch as ExecLaunch,
    ImageBuild as ImageBuild,
    InUse as InUse,
    Missing as Missing,
    Mount as Mount,
    NameInUse as NameInUse,
    NetworkFacts as NetworkFacts,
    PublishedPort as PublishedPort,
    RuntimeEvent as RuntimeEvent,
    RuntimeUnavailable as RuntimeUnavailable,
    StartupLog as StartupLog,
    VolumeFacts as VolumeFacts,
)

# Imported on first use: a session does not need it.
if TYPE_CHECKING:
    from steersman.workloads.containers.simulated_containers import SimulatedContainers as SimulatedContainers
else:
    __getattr__, __dir__ = lazy_names(
        __name__, {"steersman.workloads.containers.simulated_containers": ["SimulatedContainers"]}
    )
