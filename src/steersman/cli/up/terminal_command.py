"""Commands in this terminal: ``steersman exec`` beside a running service, ``steersman run`` in place of a service.

Guarantees
- The command has the environment and the working directory of the service; with ``exec`` also its user.
- The exit code is that of the command.
- ``run`` starts the dependencies of the service and waits for them. A session that it started ends with the command.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NoReturn

from steersman import aio
from steersman.application import ApplicationError, ServiceDefinition
from steersman.cli.failure import Failure
from steersman.cli.up.container_command import run_container
from steersman.cli.up.outcomes import blocking
from steersman.cli.up.output import Output
from steersman.cli.up.places import PlaceOptions, connected_board, run_command
from steersman.client import Client
from steersman.objects import ObjectMeta
from steersman.projects import Project, ServiceSelection
from steersman.ui import Board
from steersman.workloads import account_of
from steersman.workloads.kinds import Executable, ExecutableReplicaSet, ExecutableSpec

#: Variables that mark the processes of a session; the user's command is not one of them.
_MARKS = ("STEERSMAN_SESSION", "STEERSMAN_ZYGOTE")
#: The exit codes of a shell for a command that is missing, or cannot be executed.
_MISSING, _NOT_EXECUTABLE = 127, 126


class CommandOptions(PlaceOptions, frozen=True, kw_only=True):
    """The options of the command line."""

    name: str
    words: Sequence[str] = ()


# exec


def run_exec(options: CommandOptions) -> int:
    """Run a command beside a running service; returns its exit code."""
    if not options.words:
        raise Failure(f"no command: write it after --, such as: steersman exec {options.name} -- sh")
    found: list[tuple[str, ...] | int] = []

    async def find() -> int:
        record = options.running()
        async with connected_board(record) as (_, board):
            row = board.row(options.name)
            if row.state != "running":
                raise Failure(
                    f"{row.name} is not running (it is {row.state}); use steersman run {row.name} -- CMD instead"
                )
            if row.kind == "container":
                found.append(_container_command(board, options.name, record.container_runtime))
            elif row.pid is not None:
                found.append(row.pid)
        return 0

    run_command(find)
    if isinstance(found[0], int):
        _become_neighbor(found[0], options.words)
    _become([*found[0], *options.words], dict(os.environ))


def _container_command(board: Board, name: str, runtime: str) -> tuple[str, ...]:
    """The words before a command to run it inside the container of a service."""
    for container in board.objects.containers.values():
        labels = container.metadata.labels or {}
        if labels.get("steersman.dev/service") == name and container.status is not None:
            terminal = "-it" if sys.stdin.isatty() and sys.stdout.isatty() else "-i"
            return (runtime, "exec", terminal, container.status.container_id or container.key.name)
    raise Failure(f"the container of {name} no longer exists")


def _become_neighbor(pid: int, words: Sequence[str]) -> NoReturn:
    """Replace this process by a command with the environment, working directory and user of another process."""
    process = Path(f"/proc/{pid}")
    try:
        variables = (process / "environ").read_bytes().split(b"\0")
        folder = (process / "cwd").readlink()
        owner = process.stat()
    except OSError as error:
        raise Failure(f"cannot read the environment of pid {pid}: {error.strerror}") from error
    environment = dict(each.split(b"=", 1) for each in variables if b"=" in each)
    if owner.st_uid != os.geteuid():
        os.setgroups([owner.st_gid])
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)
    os.chdir(folder)
    _become(words, {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()})


def _become(words: Sequence[str], environment: dict[str, str]) -> NoReturn:
    for mark in _MARKS:
        environment.pop(mark, None)
    # The command runs in this terminal, whatever the service has.
    if "TERM" in os.environ:
        environment["TERM"] = os.environ["TERM"]
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(words[0], list(words), environment)  # noqa: S606 - the command that the user wrote
    except FileNotFoundError:
        print(f"steersman: {words[0]}: command not found", file=sys.stderr)
        sys.exit(_MISSING)
    except OSError as error:
        print(f"steersman: cannot run {words[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(_NOT_EXECUTABLE)


# run


def run_once(options: CommandOptions) -> int:
    """Run a service once, or another command in its place; returns its exit code."""
    return run_command(lambda: _run_once(options))


async def _run_once(options: CommandOptions) -> int:
    async with _session(options) as (client, board):
        name, project = options.name, board.project
        found = await client.find(ExecutableReplicaSet, name)
        if found is None:
            application = options.source().read(ServiceSelection(profiles=("*",)))
            if name not in application.services:
                raise Failure(f"{project} has no service {name}; the services are: {', '.join(application.services)}")
            if application.services[name].is_process:
                raise Failure(f"the session does not have {name}: add it with steersman up -d {name}, then run it")
            return await run_container(client, application, name, options.words, board=board)
        spec = found.spec.template.spec
        services = _services(options)
        environment = await _environment(
            client, name, spec, lambda: blocking(board.row(name).depends_on, board.rows, services)
        )
        words = options.words or [spec.executable_path, *(spec.args or ())]
        if spec.steersman is not None and spec.steersman.user:
            # The server has checked the user: a service that it cannot start as has no environment.
            words = account_of(spec.steersman.user).command(tuple(words))
        return await _run_with_terminal(words, environment, spec.working_directory)


@asynccontextmanager
async def _session(options: CommandOptions) -> AsyncGenerator[tuple[Client, Board]]:
    """The client and board of the running session, or of a new one with only the dependencies of the service."""
    record = options.find()
    if record is not None and record.is_running:
        async with connected_board(record) as (client, board):
            yield client, board
        return
    output = Output(os.environ)
    selection = ServiceSelection(names=(options.name,), scales={options.name: 0})
    async with (
        Project(options.source(), selection, report=output.note) as project,
        Board(project.client, project=project.identity.name) as board,
    ):
        yield project.client, board


def _services(options: CommandOptions) -> Mapping[str, ServiceDefinition]:
    """The services as the files declare them; none if an edit has errors."""
    try:
        return options.source().read(ServiceSelection(profiles=("*",))).services
    except ApplicationError:
        return {}


async def _environment(client: Client, name: str, spec: ExecutableSpec, problem: Callable[[], str]) -> dict[str, str]:
    """The environment that the service would start with, once its dependencies are met.

    ``problem`` says why a dependency cannot be met; empty while it can.

    Only the control plane resolves templates and dependencies. So this starts ``env`` in place of the service, and reads
    its output.
    """
    # The probe serves no port, so templates for its own port have no value.
    env = [each for each in spec.env or () if "ForServing" not in each.value]
    probe = Executable(
        metadata=ObjectMeta(name=f"{name}-run-{aio.name_suffix(5)}"),
        spec=ExecutableSpec(
            executable_path=shutil.which("env") or "env",
            args=["-0"],
            env=env,
            env_files=spec.env_files,
            working_directory=spec.working_directory,
            ambient_environment=spec.ambient_environment,
            steersman=spec.steersman,
        ),
    )
    if probe.spec.steersman is not None:
        probe.spec.steersman.health_probes = None
    made = await client.create(probe)
    try:
        said = ""
        while True:
            found = await client.get(Executable, made.key)
            status = found.status
            if status is not None and status.state in {"Finished", "FailedToStart", "Terminated"}:
                break
            waiting = (
                status.steersman.waiting_for if status is not None and status.steersman is not None else ""
            ) or ""
            if waiting and waiting != said:
                print(f"=> {name} waits for {waiting}", file=sys.stderr)
                said = waiting
            if waiting and (reason := problem()):
                raise Failure(f"{name} cannot start: {reason}")
            await asyncio.sleep(0.05)
        if status.state != "Finished" or status.exit_code:
            raise Failure(f"{name} cannot start: {status.steersman.message if status.steersman else status.state}")
        async with client.stream(f"{_log_path(made.key.name)}?source=stdout") as pieces:
            data = b"".join([piece async for piece in pieces])
    finally:
        await client.delete(Executable, made.key, missing_ok=True)
    variables = dict(each.split("=", 1) for each in os.fsdecode(data).split("\0") if "=" in each)
    return {name: value for name, value in variables.items() if name not in _MARKS}


def _log_path(name: str) -> str:
    gvr = Executable.gvr()
    return f"/apis/{gvr.group}/{gvr.version}/{gvr.resource}/{name}/log"


async def _run_with_terminal(words: Sequence[str], environment: dict[str, str], folder: str | None) -> int:
    if "TERM" in os.environ:
        environment["TERM"] = os.environ["TERM"]
    program = shutil.which(words[0], path=environment.get("PATH")) or words[0]
    try:
        process = await asyncio.create_subprocess_exec(program, *words[1:], env=environment, cwd=folder)
    except FileNotFoundError:
        raise Failure(f"{words[0]}: command not found") from None
    loop = asyncio.get_running_loop()
    # The terminal also sends Ctrl-C to the command, which handles it.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, _forward, process, number)
    code = await process.wait()
    return code if code >= 0 else 128 - code


def _forward(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)
