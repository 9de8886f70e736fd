"""A Command is a process on this machine: a controller can manage objects outside the cluster.

Shows: a channel source (the end of a process is an event), a finalizer that is added before the process starts and
removed after it ends, and external state that is observed instead of being read from the status.

The processes are children of this program. It ends them when it stops, and the next run starts such Commands again: see
`once.py` for work that must not happen twice. (This example does not find processes that a killed program left behind;
with pid and start time in the status it could.)

Run it with `steersman run examples.external_job --install-crds`, and try:

    kubectl apply -f - <<< '{"apiVersion": "run.example.com/v1", "kind": "Command", "metadata": {"name": "nap"},
                             "spec": {"argv": ["sleep", "20"]}}'
    kubectl get commands --watch
    kubectl delete command nap            # returns when the process has ended
"""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal

from steersman import (
    Context,
    Done,
    Key,
    Manager,
    PrinterColumn,
    Reconciler,
    Request,
    RequeueAfter,
    Resource,
    Spec,
    Status,
)
from steersman.aio import Supervisor
from steersman.controller import ChannelSource, Emit
from steersman.errors import NotFound
from steersman.markers import MinItems

FINALIZER = "run.example.com/process"
#: Seconds between SIGTERM and SIGKILL.
GRACE = 5.0


class CommandSpec(Spec):
    argv: Annotated[list[str], MinItems(1)]


class CommandStatus(Status):
    phase: Literal["Running", "Succeeded", "Failed"] | None = None
    pid: int | None = None
    exit_code: int | None = None


class Command(
    Resource[CommandSpec, CommandStatus],
    group="run.example.com",
    version="v1",
    columns=(
        PrinterColumn(name="Phase", type="string", json_path=".status.phase"),
        PrinterColumn(name="Exit code", type="integer", json_path=".status.exitCode"),
    ),
):
    """A process on the operator's machine; a changed spec starts a new one."""


def purpose_of(command: Command | None) -> tuple[str, int] | None:
    """Return the uid and generation that a process belongs to; None if no process should run."""
    return None if command is None or command.deleting else (command.uid, command.generation)


@dataclass
class Process:
    """A process, and the Command version that it was started for."""

    purpose: tuple[str, int] | None
    handle: asyncio.subprocess.Process
    asked_at: float | None = None

    @property
    def exit_code(self) -> int | None:
        """None while it runs; like a shell, 128 + N for the signal N."""
        code = self.handle.returncode
        return code if code is None or code >= 0 else 128 - code

    def ask_to_end(self) -> None:
        """Send SIGTERM first, and SIGKILL after the grace period."""
        time = asyncio.get_running_loop().time()
        if self.asked_at is None:
            self.asked_at = time
            self.signal(signal.SIGTERM)
        elif time - self.asked_at >= GRACE:
            self.signal(signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """Signal the process and its children."""
        with suppress(ProcessLookupError):  # it has just ended, and its event is pending
            os.killpg(self.handle.pid, number)


class Processes(ChannelSource):
    """All processes, by the key of their Command. The end of one is an event; all end with the controller."""

    def __init__(self) -> None:
        super().__init__("processes")
        self._tasks = Supervisor()
        self._processes: dict[Key, Process] = {}

    async def run(self, emit: Emit, started: Callable[[], None]) -> None:
        """Own the tasks that wait for processes; when they are cancelled, the processes end."""
        self._processes.clear()
        async with Supervisor() as self._tasks:
            await super().run(emit, started)

    def get(self, key: Key) -> Process | None:
        """Return the process that was started last."""
        return self._processes.get(key)

    async def start(self, command: Command) -> Process:
        """Start the process of a Command; `OSError` if there is no such program."""
        handle = await asyncio.create_subprocess_exec(*command.spec.argv, start_new_session=True)
        process = self._processes[command.key] = Process(purpose_of(command), handle)
        self._tasks.start(self._wait(command.key, process), name=f"process of {command.key}")
        return process

    def forget(self, key: Key) -> None:
        """Drop a process whose end has been handled."""
        self._processes.pop(key, None)

    async def _wait(self, key: Key, process: Process) -> None:
        try:
            await process.handle.wait()
        finally:
            if process.exit_code is None:  # the controller ends
                process.signal(signal.SIGKILL)
                await process.handle.wait()
        self.send(key, f"exited with {process.exit_code}")


class CommandReconciler(Reconciler[Command]):
    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    async def reconcile(self, ctx: Context, request: Request) -> Done | RequeueAfter:
        """Run exactly the process that the Command asks for."""
        command = await ctx.client.find(Command, request.key)
        purpose = purpose_of(command)
        process = self._processes.get(request.key)
        if process is not None and process.purpose != purpose:
            if process.exit_code is None:
                process.ask_to_end()
                return RequeueAfter(GRACE)  # the event of its end usually comes earlier
            self._processes.forget(request.key)
        if command is None:
            return Done()
        finalizers = command.metadata.finalizers or []
        if purpose is None:
            command.metadata.finalizers = [each for each in finalizers if each != FINALIZER]
            with suppress(NotFound):  # it is already gone
                await ctx.client.save(command)
            return Done()
        if FINALIZER not in finalizers:
            command.metadata.finalizers = [*finalizers, FINALIZER]
            command = (await ctx.client.save(command)).object
        await self._run(ctx, command)
        return Done()

    async def _run(self, ctx: Context, command: Command) -> None:
        process, status = self._processes.get(command.key), command.status or CommandStatus()
        seen = status.observed_generation == command.generation
        if process is None and seen and status.exit_code is not None:
            return  # it has already run
        command.status = status = CommandStatus(observed_generation=command.generation)
        try:
            process = process or await self._processes.start(command)
        except OSError as error:
            ctx.logger.warning("cannot start %s: %s", command.spec.argv[0], error)
            status.phase, status.exit_code = "Failed", 127
        else:
            status.pid, status.exit_code = process.handle.pid, process.exit_code
            status.phase = "Running" if process.exit_code is None else "Failed" if process.exit_code else "Succeeded"
        await ctx.client.save(command)
        if status.exit_code is not None:
            self._processes.forget(command.key)  # only now: if the write failed, the next attempt repeats it


processes = Processes()
manager = Manager(name="external-job")
manager.controller(Command).on(processes).run_with(CommandReconciler(processes))
