"""An application as its files declare it: services with Compose's keys and meanings, after merging and interpolation."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec

from steersman.objects import Tree
from steersman.workloads.kinds import AddedAction

#: The largest number of replicas of a service.
SCALE_MAX: Final = 1000
#: What changes when a file is edited or replaced; empty for a file that cannot be read, or is missing.
FileVersion = tuple[int, ...]


class Place(msgspec.Struct, frozen=True):
    """A position in a file. Lines and columns start at 1."""

    file: Path
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Problem(msgspec.Struct, frozen=True):
    """An error or a warning, with its place."""

    text: str
    place: Place | None = None

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place is not None else self.text


class ApplicationError(Exception):
    """The files of an application cannot be used."""

    def __init__(self, *problems: Problem, files: tuple[Path, ...] = ()) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
        #: The files that were read until then: an edit of one of them may mend the problems.
        self.files = files


class Port(msgspec.Struct, frozen=True, kw_only=True):
    """A port of a service on this machine."""

    #: The port that clients use; None: a free one, which then stays the same.
    published: int | None = None
    #: The port that the process or container listens on; None: Steersman chooses one and passes it in ``PORT``.
    target: int | None = None
    protocol: Literal["tcp", "udp"] = "tcp"
    #: The address to publish on; None: loopback.
    host_address: str | None = None
    name: str | None = None


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A folder, a volume or a file system in memory inside a container."""

    type: Literal["bind", "volume", "tmpfs"]
    #: An absolute path of the host, or the key of a volume; empty for an anonymous one.
    source: str = ""
    target: str
    read_only: bool = False


class HealthCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The health check of a service. Times are in seconds."""

    #: What to check. Compose files have only commands.
    action: AddedAction
    interval: float = 30.0
    timeout: float = 30.0
    #: Failures in a row after which the service is unhealthy.
    retries: int = 3
    #: Failures in this time after the start do not count.
    start_period: float = 0.0
    start_interval: float | None = None


class DependsOn(msgspec.Struct, frozen=True, kw_only=True):
    """A service that another one waits for."""

    service: str
    condition: Literal["service_started", "service_healthy", "service_completed_successfully"] = "service_started"
    #: Whether a restart of the dependency also restarts the service.
    restart: bool = False
    #: If false, the service also starts without the dependency, or after its failure.
    required: bool = True


class Restart(msgspec.Struct, frozen=True, kw_only=True):
    """When a service that has ended starts again."""

    policy: Literal["no", "always", "on-failure", "unless-stopped"] = "no"
    maximum: int | None = None


class WatchRule(msgspec.Struct, frozen=True, kw_only=True):
    """Files whose change restarts, rebuilds or updates the service."""

    #: Globs, absolute or relative to the service's working folder.
    paths: tuple[str, ...]
    ignore: tuple[str, ...] = ()
    action: Literal["restart", "rebuild", "sync", "sync+restart", "sync+exec"] = "restart"
    #: The file or folder to copy to ``target`` inside the container.
    root: str | None = None
    target: str | None = None
    #: The command to run inside the container after a change, for sync+exec.
    command: tuple[str, ...] = ()
    #: Seconds without a further change before the action.
    debounce: float = 0.3


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """How to build the image of a service."""

    context: str
    dockerfile: str | None = None
    dockerfile_inline: str | None = None
    args: dict[str, str] = {}
    target: str | None = None
    labels: dict[str, str] = {}
    tags: tuple[str, ...] = ()
    platform: str | None = None
    secrets: tuple[str, ...] = ()


class NetworkUse(msgspec.Struct, frozen=True, kw_only=True):
    """A network that a container joins."""

    name: str
    aliases: tuple[str, ...] = ()


class FileGrant(msgspec.Struct, frozen=True, kw_only=True):
    """A secret or config that a container gets as a file."""

    #: The key of the secret or config.
    source: str
    #: The absolute path inside the container.
    target: str
    mode: int | None = None
    user: str | None = None
    group: str | None = None


class FileContent(msgspec.Struct, frozen=True, kw_only=True):
    """A secret or a config: exactly one source is set."""

    file: Path | None = None
    content: str | None = None
    #: The variable that holds the content; ``content`` is then its value, or None if it is unset.
    environment: str | None = None
    external: bool = False


class ServiceDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """One service: a process, or a container if it has an image or a build."""

    name: str
    place: Place
    image: str | None = None
    build: Build | None = None
    #: The words of the command; None: that of the image; empty: none. A process needs one.
    command: tuple[str, ...] | None = None
    entrypoint: tuple[str, ...] | None = None
    #: The variables of ``env_file`` and ``environment``, resolved. Templates such as ``{{portFor "db"}}`` stay.
    environment: dict[str, str] = {}
    ports: tuple[Port, ...] = ()
    #: The port in PORT of a Procfile's process that need not listen. Several processes get one each.
    own_port: int | None = None
    #: Ports for other containers only, not published on this machine.
    expose: tuple[int, ...] = ()
    depends_on: tuple[DependsOn, ...] = ()
    healthcheck: HealthCheck | None = None
    restart: Restart = Restart()
    volumes: tuple[Mount, ...] = ()
    #: None: the default network of the application; empty: none.
    networks: tuple[NetworkUse, ...] | None = None
    #: The network of the runtime to use instead: host, none, bridge or container:NAME; then ``networks`` is empty.
    network_mode: str | None = None
    secrets: tuple[FileGrant, ...] = ()
    configs: tuple[FileGrant, ...] = ()
    #: For a process an absolute folder; for a container a path inside it.
    working_folder: str | None = None
    user: str | None = None
    profiles: tuple[str, ...] = ()
    stop_signal: str | None = None
    stop_grace_period: float | None = None
    scale: int = 1
    container_name: str | None = None
    hostname: str | None = None
    labels: dict[str, str] = {}
    tty: bool = False
    stdin_open: bool = False
    pull_policy: str | None = None
    platform: str | None = None
    watch: tuple[WatchRule, ...] = ()
    #: Arguments of the container runtime, for keys without a field here (cap_add, sysctls, ulimits, ...).
    run_arguments: tuple[str, ...] = ()

    @property
    def is_process(self) -> bool:
        """Whether it runs as a process of this machine."""
        return self.image is None and self.build is None


class Volume(msgspec.Struct, frozen=True, kw_only=True):
    """A named volume."""

    #: The name in the container runtime.
    name: str
    external: bool = False


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """A network of containers."""

    name: str
    external: bool = False
    internal: bool = False


class Application(msgspec.Struct, frozen=True, kw_only=True):
    """What the files of a folder declare."""

    name: str
    folder: Path
    #: In the order of the file.
    services: dict[str, ServiceDefinition]
    volumes: dict[str, Volume] = {}
    networks: dict[str, Network] = {}
    secrets: dict[str, FileContent] = {}
    configs: dict[str, FileContent] = {}
    #: The service that collects telemetry; None: the one that looks like a collector, if there is exactly one.
    collector: str | None = None
    #: Kubernetes objects in the files, unchanged.
    objects: tuple[Tree, ...] = ()
    #: The place of each of the objects.
    object_places: tuple[Place, ...] = ()
    #: Every file that was read, or would be if it existed: the files to watch for edits.
    files: tuple[Path, ...] = ()
    #: The version of each of the files when it was read.
    file_versions: tuple[FileVersion, ...] = ()
    #: The file that was found or named first.
    main_file: Path | None = None
    #: The profiles in COMPOSE_PROFILES, for a selection without profiles.
    profiles: tuple[str, ...] = ()
    #: Keys without an effect, and other warnings.
    warnings: tuple[Problem, ...] = ()
