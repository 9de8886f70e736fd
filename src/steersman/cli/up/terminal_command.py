"""Commands in this terminal: ``steersman exec`` beside a running service, ``steersman run`` in place of a service.

Guarantees
- The command has the environment, the working directory and the user that the control plane starts the service with.
- The exit code is that of the command.
- ``run`` starts the dependencies of the service and waits for them. A session that it started ends with the command.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import NamedTuple

from steersman import aio
from steersman.application import SERVICE, ApplicationError, ServiceDefinition
from steersman.cli.console import tell, tell_failure
from steersman.cli.failure import Failure, Misuse
from steersman.cli.up.container_command import run_container
from steersman.cli.up.outcomes import blocking
from steersman.cli.up.output import Output
from steersman.cli.up.places import PlaceOptions, connected_board, run_command
from steersman.cli.working_folder import working_folder
from steersman.client import Client
from steersman.objects import ObjectMeta
from steersman.projects import Project, ServiceSelection
from steersman.ui import Board, Row
from steersman.workloads import (
    CannotRun,
    ForegroundCommand,
    ProgramContext,
    attach_arguments,
    read_context,
    reported_error,
    run_in_foreground,
)
from steersman.workloads.kinds import Executable, ExecutableReplicaSet, ExecutableSpec

#: Variables that mark the processes of a session; the user's command is not one of them.
_MARKS = ("STEERSMAN_SESSION", "STEERSMAN_ZYGOTE")


class CommandOptions(PlaceOptions, frozen=True, kw_only=True):
    """The options of the command line."""

    name: str
    words: Sequence[str] = ()
    terminal: bool | None = None
    """Whether a container gets a terminal; None if it does when this program has one."""

    @property
    def wants_terminal(self) -> bool:
        """Whether a container gets a terminal. Raises `Misuse` if it must have one, and this program has none."""
        if self.terminal and not sys.stdin.isatty():
            raise Misuse("-t needs a terminal at the standard input: leave it out")
        return sys.stdin.isatty() and sys.stdout.isatty() if self.terminal is None else self.terminal


# exec


def run_exec(options: CommandOptions) -> int:
    """Run a command beside a running service; returns its exit code."""
    if not options.words:
        raise Failure(f"no command: write it after --, such as: steersman exec {options.name} -- sh")
    return run_command(lambda: _exec(options))


async def _exec(options: CommandOptions) -> int:
    record = options.running()
    words, terminal = options.words, options.wants_terminal
    async with connected_board(record) as (client, board):
        row = board.row(options.name)
        if row.state != "running":
            raise Failure(f"{row.name} is not running (it is {row.state}); use steersman run {row.name} -- CMD instead")
        if row.kind == "container":
            container = _container(board, options.name)
            arguments = attach_arguments(record.container_runtime, container, terminal=terminal, command=words)
            words = (record.container_runtime, *arguments)
            context = _own_context()
        else:
            context = await read_context(client, _executable(board, row))
    return await _foreground(words, context, container_of=row.name if row.kind == "container" else "")


def _own_context() -> ProgramContext:
    """The environment and the working directory of this program, for a command of the container runtime."""
    return ProgramContext(dict(os.environ), str(working_folder()))


def _executable(board: Board, row: Row) -> str:
    """The name of the Executable whose process a row shows."""
    for executable in board.objects.executables.values():
        labels = executable.metadata.labels or {}
        if labels.get(SERVICE) == row.name and executable.status is not None and executable.status.pid == row.pid:
            return executable.key.name
    raise Failure(f"{row.name} is not running any more")


def _container(board: Board, name: str) -> str:
    """The id or name of the container of a service."""
    for container in board.objects.containers.values():
        labels = container.metadata.labels or {}
        if labels.get(SERVICE) == name and container.status is not None:
            return container.status.container_id or container.key.name
    raise Failure(f"the container of {name} no longer exists")


async def _foreground(words: Sequence[str], context: ProgramContext, *, container_of: str = "") -> int:
    """Run a command. For a client of the container runtime, ``container_of`` is the service of the container."""
    env = {name: value for name, value in context.env.items() if name not in _MARKS}
    # The command runs in this terminal, whatever the service has.
    if "TERM" in os.environ:
        env["TERM"] = os.environ["TERM"]
    sys.stdout.flush()
    sys.stderr.flush()
    command = ForegroundCommand(
        program=words[0],
        args=words[1:],
        env=env,
        folder=context.folder,
        user=context.user,
        client_error=partial(_client_error, container_of) if container_of else None,
    )
    try:
        return await run_in_foreground(command)
    except CannotRun as error:
        tell_failure(str(error))
        return error.code


def _client_error(service: str, words: str) -> CannotRun | None:
    error = reported_error(words)
    return CannotRun(f"{service}: {error}", error.code) if error is not None else None


# run


def run_once(options: CommandOptions) -> int:
    """Run a service once, or another command in its place; returns its exit code."""
    return run_command(lambda: _run_once(options))


async def _run_once(options: CommandOptions) -> int:
    terminal = options.wants_terminal
    async with _session(options) as (client, board, runtime, alone):
        name, project = options.name, board.project
        replica_set = await client.find(ExecutableReplicaSet, name)
        if replica_set is None:
            application = options.source().read()
            if name not in application.services:
                raise Failure(f"{project} has no service {name}; the services are: {', '.join(application.services)}")
            if application.services[name].is_process:
                raise Failure(f"the session does not have {name}: add it with steersman up -d {name}, then run it")

            async def attach(container: str) -> int:
                words = (runtime, *attach_arguments(runtime, container, terminal=terminal))
                async with alone():
                    return await _foreground(words, _own_context(), container_of=name)

            return await run_container(
                client, application, name, options.words, board=board, terminal=terminal, attach=attach
            )
        spec = replica_set.spec.template.spec
        services = _services(options)
        context = await _context(client, name, spec, lambda: blocking(board.row(name).needs, board.rows, services))
        words = options.words or [spec.executable_path, *(spec.args or ())]
        async with alone():
            return await _foreground(words, context)


class _Session(NamedTuple):
    """A session that ``run`` uses."""

    client: Client
    board: Board
    runtime: str
    """The program of the container runtime."""
    alone: Callable[[], AbstractAsyncContextManager[None]]
    """A block in which the session writes nothing to the terminal."""


@asynccontextmanager
async def _session(options: CommandOptions) -> AsyncGenerator[_Session]:
    """The running session, or a new one with only the dependencies of the service."""
    record = options.find()
    if record is not None and record.is_running:
        async with connected_board(record) as (client, board):
            yield _Session(client, board, record.container_runtime, nullcontext)
        return
    output = Output(os.environ)
    selection = ServiceSelection(names=(options.name,), scales={options.name: 0})
    async with (
        Project(options.source(), selection, report=output.note) as project,
        Board(project.client, project=project.identity.name) as board,
    ):
        yield _Session(project.client, board, project.record.container_runtime, partial(_silence, output))


@asynccontextmanager
async def _silence(output: Output) -> AsyncGenerator[None]:
    """Hold notes back: they would stand in the middle of what the command writes."""
    await output.drain()
    output.pause()
    try:
        yield
    finally:
        output.resume()


def _services(options: CommandOptions) -> Mapping[str, ServiceDefinition]:
    """The services as the files declare them; none if an edit has errors."""
    try:
        return options.source().read().services
    except ApplicationError:
        return {}


async def _context(client: Client, name: str, spec: ExecutableSpec, problem: Callable[[], str]) -> ProgramContext:
    """The user, working directory and environment that the service would start with, once its dependencies are met.

    ``problem`` says why a dependency cannot be met; empty while it can.

    Only the control plane resolves templates and dependencies. So this starts ``true`` in place of the service, and reads
    what the control plane started it with.
    """
    # The probe serves no port, so templates for its own port have no value.
    env = [each for each in spec.env or () if "ForServing" not in each.value]
    probe = Executable(
        metadata=ObjectMeta(name=f"{name}-run-{aio.name_suffix(5)}"),
        spec=ExecutableSpec(
            executable_path=shutil.which("true") or "true",
            env=env,
            env_files=spec.env_files,
            working_directory=spec.working_directory,
            ambient_environment=spec.ambient_environment,
            steersman=spec.steersman,
        ),
    )
    if probe.spec.steersman is not None:
        probe.spec.steersman.health_probes = None
    created = await client.create(probe)
    try:
        said = ""
        while True:
            current = await client.get(Executable, created.key)
            status = current.status
            if status is not None and status.state in {"Finished", "FailedToStart", "Terminated"}:
                break
            waiting = (
                status.steersman.waiting_for if status is not None and status.steersman is not None else ""
            ) or ""
            if waiting and waiting != said:
                tell(f"=> {name} waits for {waiting}")
                said = waiting
            if waiting and (reason := problem()):
                raise Failure(f"{name} cannot start: {reason}")
            await asyncio.sleep(0.05)
        if status.state != "Finished" or status.exit_code:
            raise Failure(f"{name} cannot start: {status.steersman.message if status.steersman else status.state}")
        return await read_context(client, created.key.name)
    finally:
        await client.delete(Executable, created.key, missing_ok=True)
