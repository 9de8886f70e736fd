"""A container runtime on paper, for simulations and tests."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from steersman.aio import utc_now
from steersman.workloads.containers.runner import (
    ContainerFacts,
    ContainerLaunch,
    ContainerRuntimeError,
    ExecLaunch,
    ImageBuild,
    InUse,
    Missing,
    NameInUse,
    NetworkAddress,
    NetworkFacts,
    RuntimeEvent,
    RuntimeUnavailable,
    StartupLog,
    VolumeFacts,
)
from steersman.workloads.processes import Ended, Exited, Listener, Process, Started


class SimulatedCommand:
    """A command inside a simulated container: it runs until `finish` or a stop."""

    def __init__(self, launch: ExecLaunch, listener: Listener) -> None:
        self.launch, self._listener = launch, listener
        self._over = False

    def finish(self, code: int) -> None:
        """End with an exit code."""
        if not self._over:
            self._over = True
            self._listener(Exited(code))
            self._listener(Ended())

    def stop(self, *, signal: int, timeout: float) -> None:  # noqa: ARG002 - see `Process`
        """End by a signal."""
        self.finish(-signal)

    def signal(self, number: int) -> None:
        """Ignore a signal."""

    def close(self) -> None:
        """Report no more events."""
        self._over = True


class SimulatedContainers:
    """Containers, networks and volumes in memory. Tests set what happens to them."""

    name = "simulated"
    host_alias = "host.simulated.internal"

    def __init__(self) -> None:
        self.images: set[str] = set()
        #: Images that a registry has.
        self.registry: set[str] = {"app:1"}
        self.containers: dict[str, ContainerFacts] = {}
        self.launches: dict[str, ContainerLaunch] = {}
        self.networks: dict[str, NetworkFacts] = {}
        self.volumes: dict[str, VolumeFacts] = {}
        self.commands: list[SimulatedCommand] = []
        #: Archives that were unpacked, by the id of the container and the destination.
        self.copied: dict[tuple[str, str], bytes] = {}
        #: The calls that change something, in order: ``("start", "web")``.
        self.calls: list[tuple[str, str]] = []
        #: The names of containers that a killed session has left.
        self.leftovers: tuple[str, ...] = ()
        #: Why the runtime does not answer; empty while it does.
        self.outage = ""
        #: The error of the next call of a method, by its name.
        self.failures: dict[str, ContainerRuntimeError] = {}
        #: A method waits for its event, by its name.
        self.gates: dict[str, asyncio.Event] = {}
        self._streams: list[asyncio.Queue[RuntimeEvent]] = []
        self._made = 0

    # what tests do

    def exit(self, container: str, code: int) -> None:
        """End a container by itself."""
        self._set(self._found(container), state="exited", exit_code=code, finished_at=utc_now(), action="die")

    def change(self, container: str, state: str) -> None:
        """Put a container in another state, such as paused."""
        self._set(self._found(container), state=state, action=state)

    def lose(self, container: str) -> None:
        """Remove a container behind the back of its controller."""
        facts = self._found(container)
        del self.containers[facts.id]
        self._emit("container", facts.id, "destroy")

    def add(self, name: str, *, state: str = "running", labels: Mapping[str, str] | None = None) -> str:
        """A container that was not made here."""
        return self._put(ContainerLaunch(name=name, image="app:1", labels=labels or {}), state=state)

    # the runner

    async def check(self) -> None:
        """Raise `RuntimeUnavailable` during an outage."""
        await self._call("check", "")

    async def harvest(self, *, is_alone: bool = False) -> tuple[str, ...]:
        """Remove the containers of `leftovers`."""
        del is_alone
        await self._call("harvest", "")
        names, self.leftovers = self.leftovers, ()
        for each in names:
            self.lose(each)
        return names

    async def events(self) -> AsyncIterator[RuntimeEvent]:
        """All events from now on."""
        stream: asyncio.Queue[RuntimeEvent] = asyncio.Queue()
        self._streams.append(stream)
        try:
            while True:
                yield await stream.get()
        finally:
            self._streams.remove(stream)

    async def has_image(self, image: str) -> bool:
        """Whether the image was pulled or built."""
        await self._call("has_image", image)
        return image in self.images

    async def pull(self, image: str, log: StartupLog) -> None:  # noqa: ARG002 - see `ContainerRunner`
        """Get an image of the registry."""
        await self._call("pull", image)
        if image not in self.registry:
            raise Missing(f"simulated: {image}: no such image in the registry")
        self.images.add(image)

    async def build(self, build: ImageBuild, log: StartupLog) -> None:  # noqa: ARG002 - see `ContainerRunner`
        """Make an image with the tags of a build."""
        await self._call("build", build.context)
        self.images.update(build.tags)

    async def create(self, launch: ContainerLaunch) -> str:
        """Create a container and return its id."""
        await self._call("create", launch.name)
        if launch.image not in self.images:
            raise Missing(f"simulated: no such image {launch.image}")
        if any(facts.name == launch.name for facts in self.containers.values()):
            raise NameInUse(f"simulated: the container name {launch.name} is already in use")
        return self._put(launch, state="created")

    async def copy(self, container: str, archive: bytes, destination: str) -> None:
        """Keep the archive in `copied`."""
        await self._call("copy", container)
        self.copied[self._found(container).id, destination] = archive

    async def initialize(self, container: str) -> None:
        """Change nothing."""
        await self._call("initialize", self._name(container))

    async def start(self, container: str) -> None:
        """Start a container."""
        await self._call("start", self._name(container))
        self._set(self._found(container), state="running", started_at=utc_now(), finished_at=None, action="start")

    async def stop(self, container: str, grace: float) -> None:  # noqa: ARG002 - it obeys at once
        """Stop a container, which obeys at once."""
        await self._call("stop", self._name(container))
        if self._found(container).is_alive:
            self.exit(container, 143)

    async def remove(self, container: str) -> None:
        """Remove a container."""
        await self._call("remove", self._name(container))
        if await self.find(container) is not None:
            self.lose(container)

    async def find(self, container: str) -> ContainerFacts | None:
        """The facts of a container by its id or name."""
        await self._call("find", container)
        return next((each for each in self.containers.values() if container in {each.id, each.name}), None)

    async def exec(self, launch: ExecLaunch, listener: Listener) -> Process:
        """Run a command, which tests finish."""
        await self._call("exec", launch.command)
        command = SimulatedCommand(launch, listener)
        self.commands.append(command)
        self._made += 1
        listener(Started(self._made, self._made, self._made))
        return command

    def exec_command(self, container: str, words: tuple[str, ...]) -> tuple[str, ...]:
        """A command line for a simulated prober."""
        return ("simulated-exec", self._name(container), *words)

    async def follow_output(
        self,
        container: str,
        stdout: str,
        stderr: str,
        listener: Listener,
        *,
        since: datetime | None = None,  # noqa: ARG002 - see `ContainerRunner`
    ) -> Process:
        """Follow nothing: a simulated container is silent."""
        await self._call("follow_output", self._name(container))
        listener(Ended())
        return SimulatedCommand(ExecLaunch(container=container, command="", stdout=stdout, stderr=stderr), listener)

    async def create_network(
        self,
        name: str,
        *,
        ipv6: bool,
        labels: Mapping[str, str],
        bound: bool,  # noqa: ARG002 - see `ContainerRunner`
        internal: bool = False,
    ) -> None:
        """Create a network."""
        await self._call("create_network", f"{name} (internal)" if internal else name)
        if name in self.networks:
            raise NameInUse(f"simulated: network {name} already exists")
        number = len(self.networks) + 1
        self.networks[name] = NetworkFacts(
            id=_digest(name),
            name=name,
            driver="bridge",
            ipv6=ipv6,
            subnets=(f"10.89.{number}.0/24",),
            gateways=(f"10.89.{number}.1",),
            labels=labels,
        )

    async def find_network(self, name: str) -> NetworkFacts | None:
        """The facts of a network."""
        await self._call("find_network", name)
        return next((each for each in self.networks.values() if name in {each.id, each.name}), None)

    async def remove_network(self, name: str) -> None:
        """Remove a network without containers."""
        await self._call("remove_network", name)
        if self._members(name):
            raise InUse(f"simulated: network {name} is being used")
        if self.networks.pop(name, None) is not None:
            self._emit("network", name, "remove")

    async def containers_in(self, network: str) -> tuple[str, ...]:
        """The ids of the containers in a network."""
        await self._call("containers_in", network)
        return self._members(network)

    async def connect(self, network: str, container: str, aliases: Sequence[str]) -> None:
        """Connect a container to a network."""
        await self._call("connect", f"{self._name(container)} to {network}")
        facts = self._found(container)
        if network not in self.networks:
            raise Missing(f"simulated: network {network} not found")
        self._set(facts, networks={**facts.networks, network: self._address(network, aliases)}, action="connect")

    async def disconnect(self, network: str, container: str) -> None:
        """Disconnect a container from a network."""
        await self._call("disconnect", f"{self._name(container)} from {network}")
        facts = await self.find(container)
        if facts is not None:
            left = {name: at for name, at in facts.networks.items() if name != network}
            self._set(facts, networks=left, action="disconnect")

    async def create_volume(self, name: str, labels: Mapping[str, str], *, bound: bool) -> None:  # noqa: ARG002 - see `ContainerRunner`
        """Create a volume."""
        await self._call("create_volume", name)
        self.volumes[name] = VolumeFacts(name=name, labels=labels)

    async def find_volume(self, name: str) -> VolumeFacts | None:
        """The facts of a volume."""
        await self._call("find_volume", name)
        return self.volumes.get(name)

    async def remove_volume(self, name: str) -> None:
        """Remove a volume that no container uses."""
        await self._call("remove_volume", name)
        users = [self.launches[each] for each in self.containers if each in self.launches]
        if any(mount.source == name for launch in users for mount in launch.mounts):
            raise InUse(f"simulated: volume {name} is being used")
        self.volumes.pop(name, None)

    async def _call(self, method: str, subject: str) -> None:
        if not method.startswith(("find", "has_", "check", "containers_in", "harvest")):
            self.calls.append((method, subject))
        if (gate := self.gates.get(method)) is not None:
            await gate.wait()
        if self.outage:
            raise RuntimeUnavailable(f"simulated: {self.outage}")
        if (error := self.failures.pop(method, None)) is not None:
            raise error

    def _put(self, launch: ContainerLaunch, *, state: str) -> str:
        self._made += 1
        identity = _digest(f"{launch.name}/{self._made}")
        self.launches[identity] = launch
        ports = {
            (port.container_port, port.protocol): (port.host_ip, port.host_port or 30000 + self._made)
            for port in launch.ports
        }
        self.containers[identity] = ContainerFacts(
            id=identity,
            name=launch.name,
            image=launch.image,
            state=state,
            started_at=utc_now() if state == "running" else None,
            labels=launch.labels,
            ports=ports,
            networks={each.network: self._address(each.network, each.aliases) for each in launch.networks or ()},
        )
        self._emit("container", identity, "create")
        return identity

    def _address(self, network: str, aliases: Sequence[str]) -> NetworkAddress:
        facts = self.networks.get(network)
        gateway = facts.gateways[0] if facts is not None else ""
        return NetworkAddress(address=gateway[:-1] + "2", gateway=gateway, aliases=tuple(aliases))

    def _members(self, network: str) -> tuple[str, ...]:
        return tuple(each.id for each in self.containers.values() if network in each.networks)

    def _found(self, container: str) -> ContainerFacts:
        for facts in self.containers.values():
            if container in {facts.id, facts.name}:
                return facts
        raise Missing(f"simulated: no such container {container}")

    def _name(self, container: str) -> str:
        return next((each.name for each in self.containers.values() if container == each.id), container)

    def _set(self, facts: ContainerFacts, *, action: str, **changes: object) -> None:
        self.containers[facts.id] = msgspec.structs.replace(facts, **changes)
        self._emit("container", facts.id, action)

    def _emit(self, kind: Literal["container", "network"], identity: str, action: str) -> None:
        for stream in self._streams:
            stream.put_nowait(RuntimeEvent(kind, identity, action))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
