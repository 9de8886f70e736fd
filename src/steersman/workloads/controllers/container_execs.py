"""The controller of ContainerExecs: one run of a command inside a container each.

Guarantees
- A command runs at most once, as soon as its Container runs.
- A command whose Container ends before it could start has failed to start.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from steersman.aio import utc_now
from steersman.controller import Blueprint, Context, Done, Outcome, Request, View, controller_for
from steersman.objects import Condition, Key, MicroTime, set_condition
from steersman.patterns import add_finalizer, has_finalizer, remove_finalizer
from steersman.workloads.containers import ContainerRunner, ContainerRuntimeError, ExecLaunch
from steersman.workloads.controllers.container_run import FINAL
from steersman.workloads.environment import effective_environment, shown_environment
from steersman.workloads.kinds import (
    Container,
    ContainerExec,
    ExecutableState,
    ProcessObservation,
)
from steersman.workloads.launches import LaunchError, read_env_files
from steersman.workloads.processes import Ended, Exited, FailedToStart, Lost, Process, ProcessEvent, Started
from steersman.workloads.system_log import SystemLog
from steersman.workloads.transitions import steps
from steersman.workloads.world import World

#: Keeps a ContainerExec until its command has ended.
FINALIZER: Final = "steersman.dev/container-execs"


class Command(msgspec.Struct, kw_only=True):
    """The record of a ContainerExec."""

    launched: bool = False
    is_running: bool = False
    over: bool = False
    stop_asked: bool = False
    process: Process | None = None
    code: int | None = None
    failure: str = ""
    lost: str = ""
    stdout: str = ""
    stderr: str = ""
    env: dict[str, str] = {}
    started_at: MicroTime | None = None
    finished_at: MicroTime | None = None


def container_execs(*, runner: ContainerRunner, logs: Path) -> Blueprint:
    """The controller of ContainerExecs, for a `Manager`. ``logs`` is the folder of their output."""
    world: World[Command] = World("container commands", Command)
    reconciler = _Execs(world, runner, logs)
    builder = controller_for(ContainerExec).on(world)
    return builder.watches(Container, map=reconciler.waiters).run_with(reconciler)


class _Execs:
    def __init__(self, world: World[Command], runner: ContainerRunner, logs: Path) -> None:
        self._world, self._runner, self._logs = world, runner, logs
        self._waiters: dict[str, set[Key]] = {}
        self._system = SystemLog(logs)

    def waiters(self, view: View[Container]) -> list[Key]:
        """The commands of a Container."""
        return sorted(self._waiters.get(view.key.name, ()))

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Bring one ContainerExec closer to its end."""
        command = await ctx.client.find(ContainerExec, request.key)
        if command is None:
            for keys in self._waiters.values():
                keys.discard(request.key)
            return Done()
        record = self._world.record(command)
        if command.deleting:
            return await self._delete(ctx, command, record)
        before: ExecutableState = command.status.state if command.status is not None else ""
        if before in {"Finished", "Terminated", "FailedToStart", "Unknown"} and not record.launched:
            return Done()
        command = await add_finalizer(ctx.client, command, FINALIZER)
        waits = "" if record.launched else await self._launch(ctx, command, record)
        await self._write(ctx, command, record, waits)
        return Done()

    async def _launch(self, ctx: Context, command: ContainerExec, record: Command) -> str:
        """Run the command, if its Container runs. Returns what it waits for."""
        name = command.spec.container_name
        self._waiters.setdefault(name, set()).add(command.key)
        container = await ctx.client.find(Container, Key("", name))
        status = container.status if container is not None else None
        if status is None:
            return f"Container {name} to be created"
        if status.state in FINAL:
            record.launched = record.over = True
            record.failure = f"Container {name} has ended: it is {status.state}."
            return ""
        if status.state != "Running" or not status.container_id:
            return f"Container {name} to run"
        record.launched = True
        spec = command.spec
        try:
            files = read_env_files(spec.env_files or ())
            record.env = effective_environment({}, [files[path] for path in spec.env_files or ()], spec.env or [], str)
            output = str(self._logs / f"{command.key.name[:100]}-{command.uid[:8]}")
            record.stdout, record.stderr = f"{output}.out", f"{output}.err"
            launch = ExecLaunch(
                container=status.container_id,
                command=spec.command,
                args=tuple(spec.args or ()),
                env=record.env,
                folder=spec.working_directory or "",
                stdout=record.stdout,
                stderr=record.stderr,
            )
            uid = command.uid
            record.process = await self._runner.exec(
                launch, lambda event: self._world.defer(uid, partial(_apply, event), type(event).__name__)
            )
        except (LaunchError, ContainerRuntimeError) as error:
            record.failure, record.over = str(error), True
        return ""

    async def _write(self, ctx: Context, command: ContainerExec, record: Command, waits: str) -> None:
        before: ExecutableState = command.status.state if command.status is not None else ""
        state = _state_of(record, before)
        for step in steps("ContainerExec", before, state) or [state]:
            _write_status(command, step, record, waits)  # type: ignore[arg-type]
            command = (await ctx.client.save(command)).object
            self._system.note(command, step, record.failure or record.lost, waits)
        if before != state and state in {"FailedToStart", "Unknown"}:
            ctx.events.record(command, "Warning", state, "Starting", record.failure or record.lost)

    async def _delete(self, ctx: Context, command: ContainerExec, record: Command) -> Outcome:
        if not has_finalizer(command, FINALIZER):
            return Done()
        if record.process is not None and not record.over:
            if not record.stop_asked:
                record.stop_asked = True
                record.process.stop(signal=15, timeout=2.0)
                await self._write(ctx, command, record, "")
            return Done()
        for path in (record.stdout, record.stderr):
            for file in self._logs.glob(f"{Path(path).name}*") if path else ():
                file.unlink(missing_ok=True)
        self._system.delete(command)
        await remove_finalizer(ctx.client, command, FINALIZER)
        self._world.forget(command.uid)
        return Done()


def _state_of(record: Command, before: ExecutableState) -> ExecutableState:
    if record.failure:
        return "FailedToStart"
    if record.lost:
        return "Unknown"
    if record.over:
        return "Terminated" if record.stop_asked else "Finished"
    if record.stop_asked and record.is_running:
        return "Stopping"
    if record.is_running:
        return "Running"
    return "Starting" if record.launched else before


def _write_status(command: ContainerExec, state: ExecutableState, record: Command, waits: str) -> None:
    status = command.ensure_status()
    status.state = state
    status.observed_generation = command.generation
    status.startup_timestamp, status.finish_timestamp = record.started_at, record.finished_at
    status.exit_code = record.code
    status.std_out_file, status.std_err_file = record.stdout or None, record.stderr or None
    if record.launched:
        status.effective_env = shown_environment(record.env)
        status.effective_args = list(command.spec.args or ())
    message = record.failure or record.lost
    status.steersman = ProcessObservation(waiting_for=waits or None, message=message or None)
    why = message or (f"Waits for {waits}." if waits else f"It is {state or 'waiting'}.")
    for kind, holds in (
        ("Started", record.started_at is not None),
        ("Completed", state == "Finished" and not record.code),
    ):
        verdict, text = ("True", "") if holds else ("False", why)
        set_condition(
            status, Condition(type=kind, status=verdict, reason=state or "Waiting", message=text), now=utc_now()
        )


def _apply(event: ProcessEvent, record: Command) -> None:
    match event:
        case Started():
            record.is_running, record.started_at = True, MicroTime.of(utc_now())
        case FailedToStart(message):
            record.failure, record.over = message, True
        case Exited(code):
            record.code = code
        case Ended():
            record.over, record.finished_at = True, MicroTime.of(utc_now())
        case Lost():
            record.over, record.lost = True, "The process that ran the command was killed."
            record.finished_at = MicroTime.of(utc_now())
        case _:
            pass
