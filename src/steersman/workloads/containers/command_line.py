"""What Podman and Docker have in common: both are driven by their command lines, which are nearly the same.

Guarantees
- No value of a variable stands in an argument: see `arguments`.
- Events arrive as a stream; when it breaks, it is opened again, and an event says that others may have been lost.
- A command that takes too long is killed, and counts as a runtime that does not answer.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from steersman.aio import Backoff, randomness, utc_now
from steersman.workloads.containers import answers
from steersman.workloads.containers.arguments import (
    Environment,
    build_arguments,
    build_variables,
    create_arguments,
    environment,
    exec_arguments,
    full_image_name,
)
from steersman.workloads.containers.build_secrets import opened_secrets
from steersman.workloads.containers.command import run
from steersman.workloads.containers.container_processes import (
    BUILD_SESSION,
    COMMAND_SESSION,
    end_long_commands,
    end_processes,
    is_identity,
    labeled_commands,
)
from steersman.workloads.containers.container_record import ContainerRecord
from steersman.workloads.containers.creator import SESSION, is_leftover
from steersman.workloads.containers.dialects import Dialect
from steersman.workloads.containers.host_gateway import refuses_gateway, with_gateway
from steersman.workloads.containers.runner import (
    ContainerFacts,
    ContainerLaunch,
    ContainerRuntimeError,
    ExecLaunch,
    ImageBuild,
    Missing,
    NameInUse,
    NetworkFacts,
    RuntimeEvent,
    RuntimeUnavailable,
    StartupLog,
    VolumeFacts,
)
from steersman.workloads.containers.session_reaper import SessionReaper
from steersman.workloads.processes import Launch, Listener, Process, ProcessRunner

FactsT = TypeVar("FactsT", ContainerFacts, NetworkFacts, VolumeFacts)

_log = logging.getLogger("steersman.workloads")
#: Seconds that a command may take: one that only looks, one that changes something, and one that transfers an image.
_QUICK, _ORDINARY, _LONG = 10.0, 60.0, 600.0
#: Seconds for which an answer shows that the runtime is available.
_RECENT = 2.0
#: How often leftovers are looked for, and seconds between two looks.
_LOOKS, _BETWEEN = 4, 0.5


class CommandLineRunner:
    """A runner on top of a command line, in one of two dialects.

    ``program`` is the command with its global options; ``create_args`` are added to each container. ``processes`` runs what
    takes as long as a container: its output, and commands inside it. ``session`` names what ends with this program, and
    ``record`` is a file of its containers, which later sessions read.
    """

    def __init__(
        self,
        dialect: Dialect,
        processes: ProcessRunner,
        *,
        session: str,
        program: Sequence[str] = (),
        create_args: Sequence[str] = (),
        record: Path | None = None,
    ) -> None:
        self.name, self.host_alias = dialect.name, dialect.host_alias
        program = program or (dialect.name,)
        self.program = (shutil.which(program[0]) or program[0], *program[1:])
        self.reaper = SessionReaper(session, self.program, ContainerRecord(record, dialect.name))
        self._dialect, self._processes, self._create_args = dialect, processes, tuple(create_args)
        #: When the runtime last answered.
        self._answered = -_RECENT

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.reaper.close()

    async def check(self) -> None:
        """Raise `RuntimeUnavailable` unless the runtime answers, or has answered a moment ago."""
        if asyncio.get_running_loop().time() - self._answered > _RECENT:
            await self._quick("container", "ls", "--last", "1", "--quiet")

    async def harvest(self, *, is_alone: bool = False) -> tuple[str, ...]:
        """Remove what earlier sessions left behind, because control plane and reaper were killed; return the names.

        What cannot be removed, such as a network in use, does not keep the rest. Raises its error if a session of the record
        left it. ``is_alone``: the caller holds the lock of the folder, so every other session of the record is gone.
        """
        removed: list[str] = []
        here = self.reaper.creator
        recorded = {
            session
            for session, creator in self.reaper.record.sessions().items()
            if session != self.reaper.id and (is_alone or (creator is not None and creator.is_gone(here)))
        }
        problem: ContainerRuntimeError | None = None
        if is_alone and shutil.which(self.program[0]) is None:
            # It is not installed any more, and cannot end its containers, whose processes may still run.
            await asyncio.to_thread(end_processes, self.reaper.record.read())
        for session in recorded:
            await asyncio.to_thread(end_long_commands, session)
        for look in range(_LOOKS):
            if look:
                # Another session may remove the same things, and a command of a killed one may still create something.
                await asyncio.sleep(_BETWEEN)
            count = len(removed)
            problem = await self._remove_leftovers(removed, recorded)
            if problem is None and len(removed) == count:
                break
        if problem is not None:
            raise problem
        self.reaper.record.end(recorded)
        return tuple(removed)

    async def _remove_leftovers(self, removed: list[str], recorded: set[str]) -> ContainerRuntimeError | None:
        """Remove what can be removed, and add the names. Returns why something of ``recorded``, which are gone, may be left."""
        problems = [
            ContainerRuntimeError(f"{self.name}: a command of a killed session still runs (pid {pid})")
            for pid, session in labeled_commands(SESSION).items()
            if session in recorded
        ]
        problems += await self._remove_labeled("container", answers.containers, removed, recorded)
        await self._end_unlisted()
        problems += await self._remove_labeled("network", self._dialect.networks, removed, recorded)
        problems += await self._remove_labeled("volume", answers.volumes, removed, recorded)
        return next(iter(problems), None)

    async def _remove_labeled(
        self, kind: str, read: Callable[[str], list[FactsT]], removed: list[str], recorded: set[str]
    ) -> list[ContainerRuntimeError]:
        """Remove the leftovers of a kind, and add their names. Returns why some of recorded sessions may be left."""
        problems: list[ContainerRuntimeError] = []
        try:
            leftovers = [
                item
                for item in await self._labeled(kind, read)
                if item.labels[SESSION] in recorded or is_leftover(item.labels, self.reaper.creator)
            ]
        except RuntimeUnavailable:
            raise
        except ContainerRuntimeError as error:
            return [error]
        # Containers all at once: each may take its stop timeout.
        parts = [leftovers] if leftovers and kind == "container" else [[item] for item in leftovers]
        command = ("rm", "--force", "--volumes") if kind == "container" else (kind, "rm")
        for part in parts:
            names = [item.id if isinstance(item, ContainerFacts) else item.name for item in part]
            try:
                with suppress(Missing):
                    await self._run(*command, "--", *names, within=_LONG)
                removed += [item.name for item in part]
            except RuntimeUnavailable:
                raise
            except ContainerRuntimeError as error:
                _log.debug("a leftover of a killed session stays: %s", error)
                if any(item.labels[SESSION] in recorded for item in part):
                    problems.append(error)
        return problems

    async def _end_unlisted(self) -> None:
        """End the processes of recorded containers that the runtime does not list, because it was killed meanwhile."""
        recorded = self.reaper.record.read()
        if not recorded:
            return
        unlisted = recorded - {*(await self._quick("container", "ls", "--all", "--quiet", "--no-trunc")).split()}
        pids = await asyncio.to_thread(end_processes, unlisted)
        if pids:
            _log.info("ended processes of containers that %s had lost: %s", self.name, ", ".join(map(str, pids)))
        self.reaper.record.remove(unlisted)

    async def events(self) -> AsyncIterator[RuntimeEvent]:
        """All events from now on; it never ends by itself."""
        backoff = Backoff(initial=0.1, maximum=5.0)
        # Also the events until the stream is open.
        since = str(int(utc_now().timestamp()) - 1)
        while True:
            async for line in self._event_lines(since):
                backoff.reset()
                try:
                    event = self._dialect.event(line)
                except msgspec.DecodeError:
                    _log.warning("%s printed an event that cannot be read: %r", self.name, line[:200])
                    continue
                if event is not None:
                    yield event
            since = str(int(utc_now().timestamp()))
            await asyncio.sleep(backoff.next_delay(randomness()))
            # Between two streams events are lost.
            yield RuntimeEvent("", "")

    async def _event_lines(self, since: str) -> AsyncIterator[bytes]:
        try:
            await self.reaper.guard()
            process = await asyncio.create_subprocess_exec(
                *self.program,
                *("events", "--since", since, *self._dialect.events),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={**os.environ, COMMAND_SESSION: self.reaper.id},
                start_new_session=True,
            )
        except OSError:
            return
        assert process.stdout is not None
        try:
            while line := await process.stdout.readline():
                yield line
        except ValueError:
            _log.warning("%s printed an event that is too long", self.name)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def has_image(self, image: str) -> bool:
        """Whether the image is on this machine."""
        try:
            await self._quick("image", "inspect", "--format", "{{.Id}}", "--", image)
        except Missing:
            return False
        return True

    async def pull(self, image: str, log: StartupLog) -> None:
        """Get an image from its registry."""
        try:
            await self._transfer("pull", "--quiet", "--", full_image_name(image), log=log)
        except ContainerRuntimeError as error:
            # Docker does not name the image if it cannot reach the registry.
            if image in str(error):
                raise
            raise type(error)(f"{image}: {error}") from None

    async def build(self, build: ImageBuild, log: StartupLog) -> None:
        """Build an image."""
        env = build_variables(build)
        with opened_secrets(build) as (opened, files):
            words = build_arguments(opened)
            await self._transfer("build", *words, log=log, env=env, files=files, has_steps=self._dialect.runs_steps)

    async def create(self, launch: ContainerLaunch) -> str:
        """Create a container, without starting it, and return its id. The image must be on this machine."""
        env = environment(launch.env)
        if launch.bound:
            launch = msgspec.structs.replace(launch, labels={**launch.labels, **self.reaper.labels})
        try:
            container = await self._create_container(launch, env)
        except ContainerRuntimeError as error:
            if not refuses_gateway(error):
                raise
            container = await self._create_container(await self._with_gateway(launch), env)
        if launch.bound:
            self.reaper.made(container)
        for network in (launch.networks or ())[1:]:
            await self.connect(network.network, container, network.aliases)
        return container

    async def _create_container(self, launch: ContainerLaunch, env: Environment) -> str:
        arguments = ("create", *self._create_args, *create_arguments(launch, env))
        return (await self._create(*arguments, stdin=env.file, env=env.variables)).split()[-1]

    async def _with_gateway(self, launch: ContainerLaunch) -> ContainerLaunch:
        network = await self.find_network(launch.networks[0].network) if launch.networks else None
        return with_gateway(launch, network.gateways if network is not None else (), is_root=os.geteuid() == 0)

    async def copy(self, container: str, archive: bytes, destination: str) -> None:
        """Unpack a tar archive inside a container."""
        # Otherwise Podman gives all files to the user of the container.
        await self._run(
            "cp", "--archive=false", "--", "-", f"{container}:{destination}", within=_ORDINARY, stdin=archive
        )

    async def initialize(self, container: str) -> None:
        """Do all that can fail before the program runs, if the runtime can."""
        if self._dialect.initialize:
            await self._begin(*self._dialect.initialize, "--", container)

    async def start(self, container: str) -> None:
        """Start a container that was created."""
        await self._begin("start", "--", container)

    async def stop(self, container: str, grace: float) -> None:
        """Send the stop signal; after so many seconds kill the container. Returns when it has stopped."""
        await self._run("stop", "-t", str(round(grace)), "--", container, within=grace + _ORDINARY)

    async def remove(self, container: str) -> None:
        """Kill and remove a container. A container that is missing is no error."""
        with suppress(Missing):
            await self._run("rm", "--force", "--volumes", "--", container, within=_ORDINARY)
        if is_identity(container):
            # Podman does not know of them if it was killed while it started the container.
            await asyncio.to_thread(end_processes, {container})

    async def find(self, container: str) -> ContainerFacts | None:
        """The facts of a container; None if it does not exist."""
        return next(iter(await self._inspect("container", [container], answers.containers)), None)

    async def exec(self, launch: ExecLaunch, listener: Listener) -> Process:
        """Run a command inside a container. The events are those of a process."""
        env = environment(launch.env)
        return await self._long(("exec", *exec_arguments(launch, env)), launch, env, listener)

    def exec_command(self, container: str, words: tuple[str, ...]) -> tuple[str, ...]:
        """The command line that runs words inside a container, for a probe."""
        return (*self.program, "exec", "--", container, *words)

    async def follow_output(
        self, container: str, stdout: str, stderr: str, listener: Listener, *, since: datetime | None = None
    ) -> Process:
        """Write a container's output, ``since`` a time, to files until it ends or the returned process is stopped."""
        files = ExecLaunch(container=container, command="", stdout=stdout, stderr=stderr)
        options = ("--since", since.isoformat()) if since is not None else ()
        return await self._long(("logs", "--follow", *options, "--", container), files, environment({}), listener)

    async def create_network(
        self, name: str, *, ipv6: bool, labels: Mapping[str, str], bound: bool, internal: bool = False
    ) -> None:
        """Create a network with name resolution. A bound one ends with the session; an internal one has no way out."""
        options = (*(("--ipv6",) if ipv6 else ()), *(("--internal",) if internal else ()))
        await self._create("network", "create", *options, *self._labels(labels, bound=bound), "--", name)

    async def find_network(self, name: str) -> NetworkFacts | None:
        """The facts of a network; None if it does not exist."""
        return next(iter(await self._inspect("network", [name], self._dialect.networks)), None)

    async def remove_network(self, name: str) -> None:
        """Remove a network. A network that is missing is no error; one with containers raises `InUse`."""
        with suppress(Missing):
            await self._run("network", "rm", "--", name, within=_ORDINARY)

    async def containers_in(self, network: str) -> tuple[str, ...]:
        """The ids of the containers in a network, also of those that do not run."""
        return await self._listed("container", f"network={network}")

    async def connect(self, network: str, container: str, aliases: Sequence[str]) -> None:
        """Connect a container to a network. A connection that exists is no error."""
        options = [option for alias in aliases for option in ("--alias", alias)]
        with suppress(NameInUse):
            await self._run("network", "connect", *options, "--", network, container, within=_ORDINARY)

    async def disconnect(self, network: str, container: str) -> None:
        """Disconnect a container from a network. A connection that is missing is no error."""
        facts = await self.find(container)
        if facts is not None and network in facts.networks:
            with suppress(Missing):
                await self._run("network", "disconnect", "--force", "--", network, container, within=_ORDINARY)

    async def create_volume(self, name: str, labels: Mapping[str, str], *, bound: bool) -> None:
        """Create a volume. A bound one ends with the session."""
        await self._create("volume", "create", *self._labels(labels, bound=bound), "--", name)

    async def find_volume(self, name: str) -> VolumeFacts | None:
        """The facts of a volume; None if it does not exist."""
        return next(iter(await self._inspect("volume", [name], answers.volumes)), None)

    async def remove_volume(self, name: str) -> None:
        """Remove a volume. A volume that is missing is no error; one in use raises `InUse`."""
        with suppress(Missing):
            await self._run("volume", "rm", "--", name, within=_ORDINARY)

    async def _inspect(self, kind: str, names: Iterable[str], read: Callable[[str], list[FactsT]]) -> list[FactsT]:
        try:
            return read(await self._quick(kind, "inspect", "--", *names))
        except Missing:
            return []
        except msgspec.DecodeError as error:
            raise ContainerRuntimeError(f"{self.name} printed facts that cannot be read: {error}") from None

    async def _labeled(self, kind: str, read: Callable[[str], list[FactsT]]) -> list[FactsT]:
        """Everything of any session. Each is inspected by itself, because another session may remove it meanwhile."""
        return [
            facts
            for name in await self._listed(kind, f"label={SESSION}")
            for facts in await self._inspect(kind, [name], read)
        ]

    def _labels(self, labels: Mapping[str, str], *, bound: bool) -> list[str]:
        every = {**labels, **self.reaper.labels} if bound else labels
        return [argument for key, value in every.items() for argument in ("--label", f"{key}={value}")]

    async def _create(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        await self.reaper.guard()
        command = (*self.program, *arguments)
        return await run(command, within=_ORDINARY, stdin=stdin, env=env, reaper=self.reaper)

    async def _transfer(
        self,
        *arguments: str,
        log: StartupLog,
        env: Mapping[str, str] | None = None,
        files: Sequence[int] = (),
        has_steps: bool = False,
    ) -> None:
        """Run a command that may take minutes. If this program is killed, the reaper ends it."""
        await self.reaper.guard()
        env = {**(env or {}), BUILD_SESSION if has_steps else COMMAND_SESSION: self.reaper.id}
        await run((*self.program, *arguments), within=_LONG, env=env, files=files, log=log, has_steps=has_steps)

    async def _begin(self, *arguments: str) -> None:
        """Run a command that makes processes, which the reaper waits for."""
        await run((*self.program, *arguments), within=_ORDINARY, reaper=self.reaper)

    async def _listed(self, kind: str, condition: str) -> tuple[str, ...]:
        shown = ("--all", "--no-trunc", "--format", "{{.ID}}") if kind == "container" else ("--format", "{{.Name}}")
        return tuple((await self._quick(kind, "ls", *shown, "--filter", condition)).split())

    async def _long(self, arguments: Sequence[str], files: ExecLaunch, env: Environment, to: Listener) -> Process:
        """Run a command that takes as long as a container."""
        launch = Launch(
            program=self.program[0],
            args=(*self.program[1:], *arguments),
            env={**os.environ, **env.variables},
            folder="/",
            stdin=os.fsdecode(env.file),
            stdout=files.stdout,
            stderr=files.stderr,
            stop_timeout=1.0,
        )
        return await self._processes.start(launch, to)

    async def _quick(self, *arguments: str) -> str:
        answer = await run((*self.program, *arguments), within=_QUICK)
        self._answered = asyncio.get_running_loop().time()
        return answer

    async def _run(self, *arguments: str, within: float, stdin: bytes = b"") -> str:
        return await run((*self.program, *arguments), within=within, stdin=stdin)
