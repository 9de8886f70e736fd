"""The controller of Containers.

Guarantees
- A container starts at most once for a Container, whatever conflicts or repeats: the record says so.
- A finalizer precedes the container. A session container is gone before its object is.
- A reconcile only decides: the commands of the runtime run as bounded work beside it.
- A runtime that does not answer is a state, RuntimeUnhealthy, which ends by itself.
- The program that starts a container may end in any way: its Container is then deleted.
- A stop or restart that an annotation requests is stored in the record, so a repeated reconcile repeats nothing.
- The states that a client sees follow one another as `transitions` has it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Final

from steersman import aio
from steersman.controller import Blueprint, Context, Done, Outcome, Request, RequeueAfter, controller_for
from steersman.objects import Key, parse_duration
from steersman.patterns import add_finalizer, has_finalizer, remove_finalizer
from steersman.workloads.containers import ContainerRunner
from steersman.workloads.controllers.container_addresses import ContainerAddresses
from steersman.workloads.controllers.container_connections import keep_connections
from steersman.workloads.controllers.container_launch import (
    attach_of,
    container_lifecycle_key,
    creates,
    grace_of,
    launch_of,
    name_of,
    prepare,
    removes,
    reuses,
    served_at,
    unsupported,
)
from steersman.workloads.controllers.container_run import (
    FINAL,
    Run,
    begin_again,
    follow_annotations,
    message_of,
    state_of,
    unhealthy,
    write_status,
)
from steersman.workloads.controllers.container_work import PORT_IN_USE, ContainerWork
from steersman.workloads.controllers.container_world import ContainerWorld
from steersman.workloads.controllers.probe_results import defer_results
from steersman.workloads.controllers.waiters import AWAITED_KINDS, Waiters
from steersman.workloads.kinds import (
    STOPPED,
    Container,
    ContainerAdditions,
    ContainerNetwork,
    ContainerNetworkConnection,
    ContainerState,
    Endpoint,
    probes_of,
)
from steersman.workloads.launches import LaunchError, read_env_files
from steersman.workloads.ports import PortRegistry
from steersman.workloads.probes import HealthMonitor, ProbedWorkload, declared_probes
from steersman.workloads.serving import InvalidProducers, keep_endpoints, producers
from steersman.workloads.system_log import SystemLog
from steersman.workloads.templates import Addresses, NotYet, TemplateError, expand
from steersman.workloads.transitions import steps

#: Keeps a Container until its container is gone.
FINALIZER: Final = "steersman.dev/containers"
#: Seconds between two looks at a container without an event between them: for a runtime that loses events.
_LOOK = 60.0
#: Seconds after which a container that ended is looked at again, if the runtime may have restarted it.
_RESTARTS = 1.0
#: How many pieces of slow work run at once.
_PARALLEL = 8


def containers(*, runner: ContainerRunner, ports: PortRegistry, health: HealthMonitor, logs: Path) -> Blueprint:
    """The controller of Containers, for a `Manager`. ``logs`` is the folder of their output."""
    world = ContainerWorld(runner, limit=_PARALLEL)
    reconciler = _Containers(world, runner, ports, health, logs)
    builder = controller_for(Container).on(world).owns(Endpoint).owns(ContainerNetworkConnection)
    for kind in (*AWAITED_KINDS.values(), ContainerNetwork):
        builder = builder.watches(kind, map=reconciler.waiters.woken_by)
    return builder.options(concurrency=16).run_with(reconciler)


class _Containers:
    def __init__(
        self, world: ContainerWorld, runner: ContainerRunner, ports: PortRegistry, health: HealthMonitor, logs: Path
    ) -> None:
        self._world, self._runner, self._ports, self._health = world, runner, ports, health
        self._work = ContainerWork(world, runner, logs)
        self._system = SystemLog(logs)
        self._addresses = ContainerAddresses(runner)
        self.waiters = Waiters()

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Bring one Container closer to its spec."""
        container = await ctx.client.find(Container, request.key)
        pause = self._remove_replaced(request.key, container.uid if container is not None else "")
        if container is None:
            self.waiters.remove(request.key)
        outcome = await self._reconcile(ctx, container) if container is not None else Done()
        return RequeueAfter(pause) if pause is not None and isinstance(outcome, Done) else outcome

    async def _reconcile(self, ctx: Context, container: Container) -> Outcome:
        run = self._world.record(container)
        run.stays = not removes(container.spec)
        if container.deleting:
            return await self._delete(ctx, container, run)
        attach = attach_of(container.spec)
        if attach is not None:
            self._world.watch_client(container.uid, attach)
        if run.client_ended:
            await ctx.client.delete(container, missing_ok=True)
            return Done()
        before: ContainerState = container.status.state if container.status is not None else ""
        news = follow_annotations(container, run)
        if before in FINAL and run.facts is None and not (run.failure or run.again or run.repeats):
            return Done()
        if news:
            ctx.events.record(container, "Normal", "Stopping" if run.held else "Starting", "FollowAnnotations", news)
        if run.held and run.work:
            self._work.cancel(container, run)
        container = await add_finalizer(ctx.client, container, FINALIZER)
        waits = await self._advance(ctx, container, run) if not run.work else ""
        await self._serve(ctx, container, run)
        await self._write(ctx, container, run, waits)
        return self._next(container, run, waits)

    # what to do next

    async def _advance(self, ctx: Context, container: Container, run: Run) -> str:
        """Begin the next piece of work, if there is any. Returns what the Container waits for."""
        run.name = run.name or name_of(container)
        if (run.held or run.repeats) and not run.is_alive:
            waits = self._begin_again(container, run)
            if run.held or run.work:
                return waits
        if run.failure or run.lost or run.over:
            self._name_holders(container, run)
            if run.is_alive and not run.stop_asked:
                self._stop(container, run)
            return ""
        try:
            if run.facts is not None or run.attachable:
                return self._look_after(container, run)
            return await self._prepare(ctx, container, run)
        except NotYet as error:
            run.starting = True
            return str(error)
        except (LaunchError, InvalidProducers, TemplateError) as error:
            run.failure = str(error)
        return ""

    def _begin_again(self, container: Container, run: Run) -> str:
        """End a run whose container has no process, and start the next unless it is stopped. Returns what it waits for."""
        if run.facts is not None and not (run.over or run.stop_asked) and container.spec.restart_policy != "no":
            # The runtime may be about to restart it.
            self._stop(container, run)
            return ""
        run.over = run.over or run.facts is not None
        if not run.held:
            begin_again(run)
            return ""
        run.looked = run.building = run.starting = False
        return "" if run.is_ended else f"the annotation {STOPPED} to be removed"

    async def _prepare(self, ctx: Context, container: Container, run: Run) -> str:
        """Take the steps before the container runs, each as one piece of work."""
        spec = container.spec
        if problem := unsupported(spec):
            raise LaunchError(problem)
        if spec.stop and not reuses(spec):
            raise LaunchError("It was stopped before it started.")
        files = await asyncio.to_thread(read_env_files, spec.env_files or ())
        run.lifecycle_key = container_lifecycle_key(spec, files) if creates(spec) and reuses(spec) else ""
        if run.again or not run.looked:
            if asyncio.get_running_loop().time() >= run.retry_at:
                (self._work.start_again if run.again else self._work.look)(container, run)
            return ""
        if not creates(spec):
            run.looked, run.missing = False, True
            return ""
        if not spec.start:
            return "spec.start to be true"
        if waits := await self.waiters.unmet(ctx, container):
            return waits
        if spec.build is not None and not run.built:
            self._work.build(container, run)
            return ""
        wait = partial(self.waiters.add, waiter=container.key)
        networks = await self._addresses.networks(ctx, container, wait)
        addresses = await self._addresses.of_templates(ctx, container, wait)
        prepared = prepare(spec, files, addresses)
        run.env, run.args = prepared.env, prepared.args
        launch = launch_of(
            container,
            prepared,
            lifecycle_key=run.lifecycle_key,
            networks=networks,
            hosts=await self._addresses.hosts(ctx, container),
            ports=await self._host_ports(container, run),
        )
        self.waiters.remove(container.key)
        run.must_be_healthy = bool((spec.steersman or ContainerAdditions()).startup_deadline)
        self._work.start(container, run, launch)
        return ""

    async def _host_ports(self, container: Container, run: Run) -> dict[int, int]:
        """Ports of the host for those that the spec leaves open, by the port of the container."""
        ports: dict[int, int] = {}
        for each in container.spec.ports or ():
            if not each.host_port and each.protocol == "TCP":
                key = _port_key(container, each.container_port)
                if run.has_changed_ports:
                    # Another process took the port: the registry looks again after the end of the claim.
                    self._ports.release(key)
                ports[each.container_port] = await self._ports.allocate(key)
        return ports

    def _look_after(self, container: Container, run: Run) -> str:
        """Look at a container that was created or started. Returns what it waits for."""
        if run.facts is not None:
            self._supervise(container, run)
            return ""
        if run.stale and asyncio.get_running_loop().time() >= run.retry_at:
            self._work.look_for_start(container, run)
        return "its client to start it"

    def _supervise(self, container: Container, run: Run) -> None:
        """Look at a container that was started, and stop it if its spec says so."""
        assert run.facts is not None
        now = asyncio.get_running_loop().time()
        if now < run.retry_at:
            return
        if run.stale or (run.is_alive and now >= run.looked_at + _LOOK):
            self._work.look_at(container, run)
            return
        if (container.spec.stop or run.held or run.repeats) and run.is_alive and not run.stop_asked:
            self._stop(container, run)
            return
        if not run.facts.is_alive:
            restarts = container.spec.restart_policy != "no" and not run.stop_asked
            since = now - (run.exited_at or 0.0)
            if not restarts or since >= _RESTARTS:
                run.over = True
            return
        run.probes = tuple(each.name for each in probes_of(container.spec.health_probes, container.spec.steersman))
        run.began = run.began or asyncio.get_running_loop().time()
        run.was_healthy = run.was_healthy or run.health == "Healthy"
        left = self._until_deadline(container, run)
        if left is not None and left <= 0:
            run.failure = (
                f"It was not healthy within {(container.spec.steersman or ContainerAdditions()).startup_deadline}."
            )
            run.failure += f" {unhealthy(run)}"
            self._stop(container, run)

    def _name_holders(self, container: Container, run: Run) -> None:
        """Add to a failure which processes hold the ports of the container."""
        if run.names_holders or not PORT_IN_USE.search(run.failure):
            return
        run.names_holders = True
        for each in container.spec.ports or ():
            holder = self._ports.holder(each.host_ip or "127.0.0.1", each.host_port) if each.host_port else None
            if holder is not None:
                run.failure += f" Port {each.host_port} is held by {holder}."

    def _stop(self, container: Container, run: Run) -> None:
        run.stop_asked = True
        self._work.stop(container, run, grace_of(container))

    def _until_deadline(self, container: Container, run: Run) -> float | None:
        """Seconds until the container must be healthy; None if it has no deadline or was healthy."""
        deadline = (container.spec.steersman or ContainerAdditions()).startup_deadline
        if deadline is None or run.was_healthy or not run.is_alive or not run.began:
            return None
        return run.began + parse_duration(deadline).total_seconds() - asyncio.get_running_loop().time()

    # what follows from a container that runs

    async def _serve(self, ctx: Context, container: Container, run: Run) -> None:
        """Keep probes, Endpoints and connections as long as the container runs."""
        is_running = run.is_alive and not run.stop_asked and run.facts is not None and run.facts.state != "paused"
        self._probe(container, run, is_running=is_running)
        if "service-producer" in (container.metadata.annotations or {}):
            served = served_at(container, run.facts) if run.facts is not None and is_running else {}
            await keep_endpoints(ctx, container, served)
        if run.facts is not None and not run.lost:
            await keep_connections(ctx, container, run.facts.id)

    def _probe(self, container: Container, run: Run, *, is_running: bool) -> None:
        declared = probes_of(container.spec.health_probes, container.spec.steersman)
        if not is_running or run.facts is None or not declared:
            self._health.forget(container.uid)
            return
        uid, identity = container.uid, run.facts.id
        addresses = Addresses(
            serving={
                each.service_name: self._addresses.published(each.port, run.facts) for each in producers(container)
            },
            services=self._addresses.known,
        )
        workload = ProbedWorkload(
            expand=lambda text: expand(text, addresses),
            command=lambda words: self._runner.exec_command(identity, words),
        )
        self._health.watch(uid, declared_probes(declared, workload), partial(defer_results, self._world, uid))

    # the status

    async def _write(self, ctx: Context, container: Container, run: Run, waits: str) -> Container:
        """Write the status, with every state on the way."""
        now = aio.utc_now()
        before: ContainerState = container.status.state if container.status is not None else ""
        state = state_of(run, before)
        # Every object begins as Pending, also in the eyes of a client that reads an object without a status.
        for step in steps("Container", before, state) or [state]:
            write_status(container, step, run, waiting_for=waits, now=now)  # type: ignore[arg-type]
            container = (await ctx.client.save(container)).object
            self._system.note(container, step, message_of(run), waits)
        if before != state and state in {"FailedToStart", "RuntimeUnhealthy", "Unknown"}:
            ctx.events.record(container, "Warning", state, "Starting", run.failure or run.outage or run.lost)
        return container

    def _next(self, container: Container, run: Run, waits: str) -> Outcome:
        """When to reconcile again without an event."""
        if run.work or run.failure or run.lost or run.over:
            return Done()
        now = asyncio.get_running_loop().time()
        if run.facts is None:
            looks = run.stale if run.attachable else not run.looked and not waits
            return RequeueAfter(max(run.retry_at - now, 0.05)) if looks else Done()
        if not run.facts.is_alive:
            run.stale = True
            return RequeueAfter(_RESTARTS)
        if run.stale or now < run.retry_at:
            return RequeueAfter(max(run.retry_at - now, 0.05))
        left = self._until_deadline(container, run)
        return RequeueAfter(_LOOK if left is None else min(left, _LOOK))

    # the end

    async def _delete(self, ctx: Context, container: Container, run: Run) -> Outcome:
        """Remove the container, and let the object go when it is gone."""
        self.waiters.remove(container.key)
        self._health.forget(container.uid)
        if not has_finalizer(container, FINALIZER):
            return Done()
        if run.work:
            self._work.cancel(container, run)
            return Done()
        if not run.removed and await self._end(ctx, container, run):
            return Done() if run.work else RequeueAfter(1.0)
        await keep_endpoints(ctx, container, {})
        if run.output is not None:
            run.output.stop()
        for each in container.spec.ports or ():
            self._ports.release(_port_key(container, each.container_port))
        if not reuses(container.spec):
            self._work.delete_output(run)
        self._system.delete(container)
        await remove_finalizer(ctx.client, container, FINALIZER)
        self._world.forget(container.uid)
        return Done()

    async def _end(self, ctx: Context, container: Container, run: Run) -> bool:
        """Begin to remove the container, if it must go. Returns whether there is still something to do."""
        if not removes(container.spec):
            if not (run.created and run.facts is None):
                return False
            # A persistent container that never ran is of no use.
        elif not run.created and run.facts is None and not run.attempted:
            if creates(container.spec) or run.missing:
                return False
            # Mode cleanup: the container to remove has yet to be looked for.
            run.name = name_of(container)
            if asyncio.get_running_loop().time() < run.retry_at:
                return True
            self._work.look(container, run)
            return True
        if asyncio.get_running_loop().time() < run.retry_at and (run.problem or run.outage):
            await self._write(ctx, container, run, "")
            return True
        is_alive = run.is_alive
        run.stop_asked = run.stop_asked or is_alive
        self._work.remove(container, run, grace_of(container))
        if is_alive:
            await self._serve(ctx, container, run)
            await self._write(ctx, container, run, "")
        return True

    def _remove_replaced(self, key: Key, uid: str) -> float | None:
        """Remove the containers of objects that vanished without their finalizer.

        Returns the seconds until a removal that failed is repeated; None without one.
        """
        pause: float | None = None
        for other, run in self._world.replaced(key, uid):
            self._health.forget(other)
            if run.work:
                continue
            if run.removed or run.stays or not (run.created or run.attempted):
                if run.output is not None:
                    run.output.stop()
                self._world.forget(other)
                continue
            left = run.retry_at - asyncio.get_running_loop().time()
            if left > 0:
                pause = min(left, pause or left)
            else:
                self._work.remove_lost(other, run)
        return pause


def _port_key(container: Container, port: int) -> str:
    return f"container/{container.key.name}/{port}"
