"""The controller of Executables: one run of a program each.

Guarantees
- A program starts at most once for an Executable, whatever conflicts, crashes or repeats: the record says so.
- A finalizer precedes the start. An Executable is gone only when none of its processes is left.
- The states that a client sees follow one another as `transitions` has it.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, cast

from steersman import aio
from steersman.controller import Blueprint, Context, Done, Outcome, Request, RequeueAfter, controller_for, when
from steersman.objects import Key, MicroTime, parse_duration
from steersman.patterns import add_finalizer, has_finalizer, remove_finalizer
from steersman.workloads.controllers.executable_run import (
    FINAL,
    Run,
    apply_event,
    message_of,
    persistent_process,
    state_of,
    unhealthy,
    write_status,
)
from steersman.workloads.controllers.probe_results import defer_results
from steersman.workloads.controllers.waiters import AWAITED_KINDS, Waiters
from steersman.workloads.environment import inherits
from steersman.workloads.kinds import (
    Endpoint,
    Executable,
    ExecutableSpec,
    ExecutableState,
    ProcessAdditions,
    Service,
    probes_of,
)
from steersman.workloads.launches import (
    EnvFiles,
    LaunchError,
    PreparedLaunch,
    adopts,
    check_monitored,
    is_persistent,
    prepare,
    read_env_files,
    stop_of,
    texts_with_templates,
    working_folder,
)
from steersman.workloads.lifecycle_key import lifecycle_key
from steersman.workloads.ports import PortRegistry
from steersman.workloads.probes import HealthMonitor, ProbedWorkload, declared_probes, probe_texts
from steersman.workloads.processes import (
    Attached,
    Ended,
    Launch,
    Lost,
    PersistentProcesses,
    ProcessEvent,
    ProcessRunner,
    Started,
)
from steersman.workloads.serving import InvalidProducers, is_settled, keep_endpoints, producers, unserved
from steersman.workloads.system_log import SystemLog
from steersman.workloads.templates import Address, Addresses, NotYet, calls, expand
from steersman.workloads.transitions import steps
from steersman.workloads.users import spec_account
from steersman.workloads.world import World

#: The kind of a terminal that the clients of `TerminalConnection` show, unless the environment names one.
_TERM: Final = "xterm-256color"
#: Keeps an Executable until its processes have ended.
FINALIZER: Final = "steersman.dev/processes"


def executables(
    *,
    processes: ProcessRunner,
    persistent: PersistentProcesses,
    ports: PortRegistry,
    health: HealthMonitor,
    folder: Path,
    logs: Path,
    ambient: Mapping[str, str],
    world: World[Run] | None = None,
) -> Blueprint:
    """The controller of Executables, for a `Manager`.

    ``folder`` is the working directory of programs that name none, ``logs`` the folder of their output, and ``ambient`` the
    environment that they inherit. ``world`` keeps the record of each run.
    """
    world = world if world is not None else World("processes", Run)
    reconciler = _Executables(world, processes, persistent, ports, health, (folder, logs), ambient)
    builder = controller_for(Executable).when(when(world.concerns)).on(world).owns(Endpoint)
    for kind in AWAITED_KINDS.values():
        builder = builder.watches(kind, map=reconciler.waiters.woken_by)
    return builder.options(concurrency=16).run_with(reconciler)


class _Executables:
    def __init__(
        self,
        world: World[Run],
        processes: ProcessRunner,
        persistent: PersistentProcesses,
        ports: PortRegistry,
        health: HealthMonitor,
        folders: tuple[Path, Path],
        ambient: Mapping[str, str],
    ) -> None:
        self._world = world
        self._processes = processes
        self._persistent = persistent
        self._ports = ports
        self._health = health
        self._folder, self._logs = folders
        self._system = SystemLog(self._logs)
        self._ambient = ambient
        self.waiters = Waiters()

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Bring one Executable closer to its spec."""
        executable = await ctx.client.find(Executable, request.key)
        predecessor = self._end_replaced(request.key, executable.uid if executable is not None else "")
        if executable is None:
            self.waiters.remove(request.key)
            return Done()
        run = self._world.record(executable)
        run.stays = is_persistent(executable.spec)
        if executable.deleting:
            return await self._delete(ctx, executable, run)
        before: ExecutableState = executable.status.state if executable.status is not None else ""
        if before in FINAL and not run.launched:
            return Done()
        executable = await add_finalizer(ctx.client, executable, FINALIZER)
        waits = ""
        if run.launched:
            state = await self._supervise(ctx, executable, run, before)
        else:
            state, waits = await self._start(ctx, executable, run, predecessor)
        await self._serve(ctx, executable, run)
        await self._write(ctx, executable, state, run, waits)
        return self._next(executable, run)

    # before the start

    async def _start(
        self, ctx: Context, executable: Executable, run: Run, predecessor: str
    ) -> tuple[ExecutableState, str]:
        """Start or adopt the process, if it is time. Returns the state, and what the Executable waits for."""
        before: ExecutableState = executable.status.state if executable.status is not None else ""
        spec = executable.spec
        try:
            folder = working_folder(spec, str(self._folder))
            files = read_env_files(spec.env_files or (), folder)
            waits = await self._resume(executable, run, files) or predecessor
            if not run.launched and not waits:
                if spec.mode == "cleanup":
                    return "NotFound", ""
                if not spec.start:
                    return "NotFound" if adopts(spec) else "", "spec.start to be true"
                waits = await self.waiters.unmet(ctx, executable)
            if run.process is not None:
                # An adopted process: its probes, and commands beside it, need what it was started with.
                run.env = await self._adopted_environment(ctx, executable, run, files)
            if run.launched or waits:
                return state_of(run, before) if run.launched else before, waits
            self.waiters.remove(executable.key)
            addresses = await self._addresses(ctx, executable, run)
            check_monitored(spec)
            run.account = spec_account(spec)
            prepared = self._prepare(spec, run, files, addresses, folder)
            await self._launch(executable, run, prepared, lifecycle_key(spec, files) if adopts(spec) else "")
        except NotYet as error:
            return "Starting", str(error)
        except (LaunchError, InvalidProducers) as error:
            run.launched = run.over = True
            run.failure = str(error)
        return state_of(run, before), ""

    def _prepare(
        self, spec: ExecutableSpec, run: Run, files: EnvFiles, addresses: Addresses, folder: str
    ) -> PreparedLaunch:
        """Fill in what a process starts with. Raises `LaunchError` and `NotYet`."""
        ambient = dict(self._ambient) if inherits(spec.ambient_environment) else {}
        if run.account is not None:
            ambient |= run.account.variables
        if spec.terminal is not None and ambient.get("TERM", "dumb") == "dumb":
            ambient["TERM"] = _TERM
        return prepare(spec, ambient=ambient, files=files, addresses=addresses, folder=folder)

    async def _resume(self, executable: Executable, run: Run, files: EnvFiles) -> str:
        """Settle what an earlier control plane, or a stop before the start, decided. Returns what must end first."""
        status = executable.status
        if adopts(executable.spec):
            waits = await self._adopt(executable, run, files)
            if run.launched or waits:
                return waits
        elif status is not None and status.pid:
            # Its objects were stored, and its processes were not.
            run.launched = run.over = True
            run.lost = "The control plane that started the process has ended, and the process with it."
            return ""
        if executable.spec.stop:
            run.launched = run.over = run.stop_asked = True
            if status is not None and status.state == "Starting":
                run.failure = "It was stopped before it started."
        return ""

    async def _addresses(self, ctx: Context, executable: Executable, run: Run) -> Addresses:
        """The addresses that templates can name. Allocates a port for each service that the Executable produces."""
        serving: dict[str, Address] = {}
        for each in producers(executable):
            host = each.address or "127.0.0.1"
            port = each.port or await self._ports.allocate(_port_key(executable, each.service_name), host)
            serving[each.service_name] = Address(host, port)
        run.serving = {name: (address.host, address.port) for name, address in serving.items()}
        return Addresses(serving, await self._services(ctx, executable, texts_with_templates(executable.spec)))

    async def _services(self, ctx: Context, executable: Executable, texts: Iterable[str]) -> dict[str, Address]:
        """The addresses of the services that templates in these texts reach."""
        services: dict[str, Address] = {}
        for name in sorted(calls(texts).reached):
            self.waiters.add("Service", name, executable.key)
            service = await ctx.client.find(Service, Key("", name))
            if service is not None:
                # At the address of a service that is not served, another program may listen.
                status = service.status if is_settled(service) and not unserved(service) else None
                host, port = (status.effective_address, status.effective_port) if status is not None else (None, None)
                services[name] = Address(host or "", port or 0)
        return services

    async def _launch(self, executable: Executable, run: Run, prepared: PreparedLaunch, key: str) -> None:
        """Start the process. From here on the record says that the Executable has run."""
        name, spec = executable.key.name, executable.spec
        run.launched = True
        run.execution_id = aio.new_uid()
        output = str(self._logs / f"{name[:100]}-{run.execution_id[:8]}")
        run.stdout, run.stderr = f"{output}.out", f"{output}.err"
        run.args, run.env, run.folder = prepared.args, prepared.env, prepared.folder
        run.must_be_healthy = bool((spec.steersman or ProcessAdditions()).startup_deadline)
        if spec.terminal is not None:
            # Its standard error is the terminal too.
            run.stderr = ""
            run.terminal = str(Path(run.folder) / spec.terminal.uds_path) if spec.terminal.uds_path else f"{output}.tty"
        stop = stop_of(executable)
        socket = ""
        try:
            if is_persistent(spec):
                socket = self._persistent.socket(name)
                self._persistent.remember(persistent_process(executable, run, key, socket))
            launch = Launch(
                program=prepared.program,
                args=prepared.args,
                env=prepared.env,
                folder=prepared.folder,
                user=run.account.identity if run.account is not None else "",
                stdout=run.stdout,
                stderr=run.stderr,
                stop_signal=stop.signal,
                stop_timeout=stop.timeout,
                socket=socket,
                monitor_pid=spec.monitor_pid or 0,
                terminal=run.terminal,
                columns=spec.terminal.cols if spec.terminal is not None else 0,
                rows=spec.terminal.rows if spec.terminal is not None else 0,
            )
            run.process = await self._processes.start(launch, self._listener(executable.uid))
        except (OSError, ValueError) as error:
            run.failure, run.over = f"Cannot start {prepared.program}: {error}.", True

    async def _adopt(self, executable: Executable, run: Run, files: EnvFiles) -> str:
        """Attach to the persistent process of an earlier control plane. Returns what must end before a start."""
        name, uid = executable.key.name, executable.uid
        if run.predecessor is not None:
            return "an earlier process with another lifecycle key to end"
        known = self._persistent.find(name)
        if known is None:
            return ""
        if executable.spec.mode != "cleanup" and known.lifecycle_key != lifecycle_key(executable.spec, files):

            def ended(event: ProcessEvent) -> None:
                if isinstance(event, Ended | Lost):
                    self._world.defer(uid, _without_predecessor, "the earlier process has ended")

            run.predecessor = await self._processes.attach(known.socket, ended)
            if run.predecessor is not None:
                stop = stop_of(executable)
                run.predecessor.stop(signal=stop.signal, timeout=stop.timeout)
                return f"pid {known.pid}, which started with another lifecycle key, to end"
        else:
            run.account = spec_account(executable.spec)
            run.process = await self._processes.attach(known.socket, self._listener(uid))
            if run.process is not None:
                run.launched = run.is_remembered = True
                run.execution_id, run.stdout, run.stderr = known.execution_id, known.stdout, known.stderr
                run.folder, run.args, run.started_at = known.folder, known.args, known.start_moment
                run.serving = known.serving
                return ""
        self._persistent.forget(name)
        return ""

    async def _adopted_environment(
        self, ctx: Context, executable: Executable, run: Run, files: EnvFiles
    ) -> Mapping[str, str]:
        """The environment of an adopted process, from its spec; empty if a service in it has no address yet."""
        services = await self._services(ctx, executable, texts_with_templates(executable.spec))
        addresses = Addresses({name: Address(*at) for name, at in run.serving.items()}, services)
        with suppress(NotYet, LaunchError):
            return self._prepare(executable.spec, run, files, addresses, run.folder).env
        return {}

    # while it runs

    def _listener(self, uid: str) -> Callable[[ProcessEvent], None]:
        def listen(event: ProcessEvent) -> None:
            now = aio.utc_now()
            start = None
            if isinstance(event, Started | Attached):
                age = aio.boottime() - event.start / os.sysconf("SC_CLK_TCK")
                start = MicroTime.of(now - timedelta(seconds=age))
            loop_time = asyncio.get_running_loop().time()
            operation = partial(apply_event, event, MicroTime.of(now), loop_time, start)
            self._world.defer(uid, operation, type(event).__name__)

        return listen

    async def _supervise(
        self, ctx: Context, executable: Executable, run: Run, before: ExecutableState
    ) -> ExecutableState:
        """Watch the health of the process, and stop it if that is asked for. Returns the state."""
        if run.is_running and not executable.spec.stop:
            await self._probe(ctx, executable, run)
            run.was_healthy = run.was_healthy or run.health == "Healthy"
            left = self._until_deadline(executable, run)
            if left is not None and left <= 0:
                deadline = (executable.spec.steersman or ProcessAdditions()).startup_deadline
                run.failure = f"Not healthy within {deadline}. {unhealthy('Starting', run)}".strip()
                self._stop(executable, run)
        else:
            self._health.forget(executable.uid)
        if executable.spec.stop:
            self._stop(executable, run)
        if is_persistent(executable.spec):
            self._remember(executable, run)
        return state_of(run, before)

    async def _probe(self, ctx: Context, executable: Executable, run: Run) -> None:
        declared = probes_of(executable.spec.health_probes, executable.spec.steersman)
        services = await self._services(ctx, executable, probe_texts(declared))
        addresses = Addresses({name: Address(*at) for name, at in run.serving.items()}, services)
        workload = ProbedWorkload(
            expand=lambda text: expand(text, addresses),
            env=run.env,
            folder=run.folder,
            user=run.account.identity if run.account is not None else "",
            process=_process(executable, run),
            ports={port for _, port in run.serving.values()},
        )
        run.probes = tuple(each.name for each in declared)
        uid = executable.uid
        self._health.watch(uid, declared_probes(declared, workload), partial(defer_results, self._world, uid))

    def _until_deadline(self, executable: Executable, run: Run) -> float | None:
        """Seconds until the process must be healthy; None if it has no deadline or was healthy."""
        deadline = (executable.spec.steersman or ProcessAdditions()).startup_deadline
        if deadline is None or run.was_healthy or not (run.must_be_healthy and run.is_running):
            return None
        return run.began + parse_duration(deadline).total_seconds() - asyncio.get_running_loop().time()

    def _stop(self, executable: Executable, run: Run) -> None:
        if run.is_live and not run.stop_asked:
            run.stop_asked = True
            stop = stop_of(executable)
            assert run.process is not None, "a launch sets it, or reports a failure"
            run.process.stop(signal=stop.signal, timeout=stop.timeout)

    def _remember(self, executable: Executable, run: Run) -> None:
        """Write down the pid of a persistent process, or forget one that has ended."""
        known = self._persistent.find(executable.key.name)
        if known is None or known.execution_id != run.execution_id:
            return
        if run.over:
            self._persistent.forget(executable.key.name)
        elif run.pid and not run.is_remembered:
            run.is_remembered = True
            key = known.lifecycle_key
            self._persistent.remember(persistent_process(executable, run, key, known.socket))

    async def _serve(self, ctx: Context, executable: Executable, run: Run) -> None:
        """Keep an Endpoint for each service that the process serves while it runs."""
        if run.serving:
            process = _process(executable, run)
            await keep_endpoints(ctx, executable, run.serving if run.is_running else {}, process=process)

    # the status

    async def _write(
        self, ctx: Context, executable: Executable, state: ExecutableState, run: Run, waits: str
    ) -> Executable:
        """Write the status, with every state on the way."""
        now = aio.utc_now()
        before = executable.status.state if executable.status is not None else ""
        for step in steps("Executable", before, state) or [state]:
            write_status(executable, cast("ExecutableState", step), run, waiting_for=waits, now=now)
            executable = (await ctx.client.save(executable)).object
            self._system.note(executable, step, message_of(cast("ExecutableState", step), run), waits)
        if before != state and state in {"FailedToStart", "Unknown"}:
            ctx.events.record(executable, "Warning", state, "Starting", run.failure or run.lost)
        return executable

    def _next(self, executable: Executable, run: Run) -> Outcome:
        left = self._until_deadline(executable, run)
        return Done() if left is None else RequeueAfter(left)

    # the end

    async def _delete(self, ctx: Context, executable: Executable, run: Run) -> Outcome:
        """Stop the process, and let the Executable go when nothing of it is left."""
        self.waiters.remove(executable.key)
        self._health.forget(executable.uid)
        if not has_finalizer(executable, FINALIZER):
            return Done()
        if run.is_live and is_persistent(executable.spec):
            assert run.process is not None
            self._remember(executable, run)
            run.process.close()
        elif run.is_live:
            self._stop(executable, run)
            await self._serve(ctx, executable, run)
            if run.left or run.refused:
                # Most processes end before their shim reports what is left, and their objects with them.
                before: ExecutableState = executable.status.state if executable.status is not None else ""
                await self._write(ctx, executable, state_of(run, before), run, "")
            return Done()
        elif adopts(executable.spec):
            self._remember(executable, run)
        else:
            _delete_output(run)
        for name in run.serving:
            self._ports.release(_port_key(executable, name))
        self._system.delete(executable)
        await remove_finalizer(ctx.client, executable, FINALIZER)
        self._world.forget(executable.uid)
        return Done()

    def _end_replaced(self, key: Key, uid: str) -> str:
        """End the processes of objects that vanished without their finalizer. Returns what a new start waits for."""
        waits = ""
        for other, run in self._world.replaced(key, uid):
            self._health.forget(other)
            if run.stays and run.process is not None:
                # It outlives its object, and a successor adopts it.
                run.process.close()
            if run.stays or not run.is_live:
                self._world.forget(other)
                continue
            if run.process is not None and not run.stop_asked:
                run.stop_asked = True
                run.process.stop(signal=15, timeout=10.0)
            waits = f"pid {run.pid} of the earlier Executable {key.name} to end"
        return waits


def _process(executable: Executable, run: Run) -> int:
    """The process whose descendants listen for an Executable; 0 for a monitored program, which is none of them."""
    return run.shim if executable.spec.monitor_pid is None else 0


def _without_predecessor(run: Run) -> None:
    run.predecessor = None


def _port_key(executable: Executable, service: str) -> str:
    return f"executable/{executable.key.name}/{service}"


def _delete_output(run: Run) -> None:
    """Delete the files of a run's output, with the rotated ones."""
    for name in filter(None, (run.stdout, run.stderr, run.terminal)):
        for number in itertools.count():
            try:
                Path(f"{name}.{number}" if number else name).unlink()
            except FileNotFoundError:
                # The newest is missing for a moment while its writer rotates.
                if number:
                    break
            except OSError:
                break
