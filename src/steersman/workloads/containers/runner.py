"""The interface between controllers and a container runtime: what to create, what there is, and a runner that does it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from steersman.workloads.processes import Listener, Process


class ContainerRuntimeError(Exception):
    """The container runtime rejected a command. The message is a sentence with the runtime's own words."""


class Missing(ContainerRuntimeError):
    """The container, image, network or volume does not exist."""


class NameInUse(ContainerRuntimeError):
    """Another container, network or volume has the name."""


class InUse(ContainerRuntimeError):
    """A container uses the network or the volume."""


class CannotExecute(ContainerRuntimeError):
    """The image has no such command, or it cannot be executed; ``code`` is the exit code that a shell has for it."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class RuntimeUnavailable(ContainerRuntimeError):
    """The runtime does not answer: it is not installed, its service does not run, or a command took too long."""


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of the host, or a named volume, inside a container."""

    type: Literal["bind", "volume"]
    source: str
    target: str
    read_only: bool = False


class PublishedPort(msgspec.Struct, frozen=True, kw_only=True):
    """A port of a container at an address of the host. Host port 0: the runtime chooses a free one."""

    container_port: int
    host_port: int = 0
    host_ip: str = "127.0.0.1"
    protocol: Literal["tcp", "udp"] = "tcp"


class Attachment(msgspec.Struct, frozen=True):
    """A network that a container joins, and the names that it has there."""

    network: str
    aliases: tuple[str, ...] = ()


class ContainerLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """What a container is created from; everything is resolved."""

    name: str
    image: str
    command: str | None = None
    args: Sequence[str] = ()
    env: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    mounts: Sequence[Mount] = ()
    ports: Sequence[PublishedPort] = ()
    networks: Sequence[Attachment] | None = None
    """None: the runtime's own default network. Empty: no network."""
    hosts: Mapping[str, str] = {}
    """Names that the container resolves, and their addresses."""
    restart_policy: str = "no"
    stop_signal: str = ""
    stop_timeout: float = 10.0
    """Seconds between the stop signal and SIGKILL when the control plane was killed."""
    bound: bool = True
    """Whether the container ends with the session, also if the control plane is killed."""
    run_args: Sequence[str] = ()
    attach: Literal["", "streams", "terminal"] = ""
    """What the program that starts the container gives it; empty if it has no input, and the runtime keeps its output."""


class ImageBuild(msgspec.Struct, frozen=True, kw_only=True):
    """What an image is built from."""

    context: str
    tags: Sequence[str]
    dockerfile: str = ""
    args: Mapping[str, str] = {}
    secrets: Sequence[tuple[str, str]] = ()
    """Pairs of the secret's id and the rest of its specification, such as ``src=/path`` or ``env=NAME``."""
    env: Mapping[str, str] = {}
    """Variables of the build command: the values of secrets."""
    stage: str = ""
    labels: Mapping[str, str] = {}
    platform: str = ""
    pull: bool = False


class ExecLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A command to run inside a container."""

    container: str
    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = {}
    folder: str = ""
    stdout: str
    stderr: str


class NetworkAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A container's place in a network."""

    address: str = ""
    gateway: str = ""
    aliases: tuple[str, ...] = ()


class ContainerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the runtime reports about a container."""

    id: str
    name: str
    image: str
    state: str
    """The runtime's own word: created, running, paused, restarting, exited, dead and so on."""
    exit_code: int = 0
    error: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    labels: Mapping[str, str] = {}
    ports: Mapping[tuple[int, str], tuple[str, int]] = {}
    """Address and port of the host, by port and protocol of the container."""
    networks: Mapping[str, NetworkAddress] = {}

    @property
    def is_alive(self) -> bool:
        """Whether it has processes: it runs, is paused or is about to run again."""
        return self.state in {"running", "paused", "restarting", "stopping"}


class NetworkFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the runtime reports about a network."""

    id: str
    name: str
    driver: str = ""
    ipv6: bool = False
    subnets: tuple[str, ...] = ()
    gateways: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}


class VolumeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the runtime reports about a volume."""

    name: str
    labels: Mapping[str, str] = {}


class RuntimeEvent(msgspec.Struct, frozen=True):
    """Something happened to a container, a network or a volume. Read its facts to learn what.

    An event with an empty id means that events may have been lost: read the facts of everything.
    """

    kind: Literal["", "container", "network", "volume"]
    id: str
    action: str = ""


class StartupLog(msgspec.Struct, frozen=True):
    """The files for the output of the commands that build, pull and create."""

    stdout: str
    stderr: str


class ContainerRunner(Protocol):
    """A container runtime. Every method raises `RuntimeUnavailable` if the runtime does not answer.

    Its ``async with`` block owns the processes that it needs. Names and ids are interchangeable.
    """

    name: str
    """The name of the runtime, for messages."""
    host_alias: str
    """The name by which a container reaches the host."""

    async def check(self) -> None:
        """Raise `RuntimeUnavailable` unless the runtime answers."""
        ...

    async def harvest(self, *, is_alone: bool = False) -> tuple[str, ...]:
        """Remove what earlier sessions left behind, because control plane and reaper were killed; return the names.

        ``is_alone``: the caller holds the lock of the folder, so every other session of its record is gone.
        """
        ...

    def events(self) -> AsyncIterator[RuntimeEvent]:
        """All events from now on; it never ends by itself."""
        ...

    async def has_image(self, image: str) -> bool:
        """Whether the image is on this machine."""
        ...

    async def pull(self, image: str, log: StartupLog) -> None:
        """Get an image from its registry."""
        ...

    async def build(self, build: ImageBuild, log: StartupLog) -> None:
        """Build an image."""
        ...

    async def create(self, launch: ContainerLaunch) -> str:
        """Create a container, without starting it, and return its id. The image must be on this machine."""
        ...

    async def copy(self, container: str, archive: bytes, destination: str) -> None:
        """Unpack a tar archive inside a container."""
        ...

    async def initialize(self, container: str) -> None:
        """Do all that can fail before the program runs, for a container that another program starts."""
        ...

    async def start(self, container: str) -> None:
        """Start a container that was created. Raises `CannotExecute` if its command cannot be executed."""
        ...

    async def stop(self, container: str, grace: float) -> None:
        """Send the stop signal; after so many seconds kill the container. Returns when it has stopped."""
        ...

    async def remove(self, container: str) -> None:
        """Kill and remove a container. A container that is missing is no error."""
        ...

    async def find(self, container: str) -> ContainerFacts | None:
        """The facts of a container; None if it does not exist."""
        ...

    async def exec(self, launch: ExecLaunch, listener: Listener) -> Process:
        """Run a command inside a container. The events are those of a process."""
        ...

    def exec_command(self, container: str, words: tuple[str, ...]) -> tuple[str, ...]:
        """The command line that runs words inside a container, for a probe."""
        ...

    async def follow_output(
        self, container: str, stdout: str, stderr: str, listener: Listener, *, since: datetime | None = None
    ) -> Process:
        """Write a container's output to files until it ends, or until the returned process is stopped.

        ``since`` leaves out what it wrote before.
        """
        ...

    async def create_network(
        self, name: str, *, ipv6: bool, labels: Mapping[str, str], bound: bool, internal: bool = False
    ) -> None:
        """Create a network with name resolution. A bound one ends with the session; an internal one has no way out."""
        ...

    async def find_network(self, name: str) -> NetworkFacts | None:
        """The facts of a network; None if it does not exist."""
        ...

    async def remove_network(self, name: str) -> None:
        """Remove a network. A network that is missing is no error; one with containers raises `InUse`."""
        ...

    async def containers_in(self, network: str) -> tuple[str, ...]:
        """The ids of the containers in a network, also of those that do not run."""
        ...

    async def connect(self, network: str, container: str, aliases: Sequence[str]) -> None:
        """Connect a container to a network. A connection that exists is no error."""
        ...

    async def disconnect(self, network: str, container: str) -> None:
        """Disconnect a container from a network. A connection that is missing is no error."""
        ...

    async def create_volume(self, name: str, labels: Mapping[str, str], *, bound: bool) -> None:
        """Create a volume. A bound one ends with the session."""
        ...

    async def find_volume(self, name: str) -> VolumeFacts | None:
        """The facts of a volume; None if it does not exist."""
        ...

    async def remove_volume(self, name: str) -> None:
        """Remove a volume. A volume that is missing is no error; one in use raises `InUse`."""
        ...
