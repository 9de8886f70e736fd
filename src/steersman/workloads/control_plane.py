"""The developer control plane as one object: server, controllers and the outside world.

Guarantees
- ``async with`` owns everything. When the block begins, kubectl can connect; when it ends, every object is deleted in
  order, and no process, container or port is left, but for persistent ones.
- The server listens on loopback alone, with TLS and a token of this session.
- Only the owner can read the kubeconfig, the output and the state.
- A failed controller ends the control plane, with its error.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import string
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from steersman import aio
from steersman.client import Client
from steersman.controller import Blueprint
from steersman.controlplane import ControlPlane, PathHandler
from steersman.manager import Manager
from steersman.workloads.containers import ContainerRuntimeError
from steersman.workloads.containers.container_record import recorded_runtimes
from steersman.workloads.controllers.container_execs import container_execs
from steersman.workloads.controllers.container_network_connections import container_network_connections
from steersman.workloads.controllers.container_networks import container_networks
from steersman.workloads.controllers.container_volumes import container_volumes
from steersman.workloads.controllers.containers import containers
from steersman.workloads.controllers.executable_replica_sets import executable_replica_sets
from steersman.workloads.controllers.executable_run import Run
from steersman.workloads.controllers.executables import executables
from steersman.workloads.controllers.services import add_services
from steersman.workloads.files import FileChanges
from steersman.workloads.kinds import KINDS
from steersman.workloads.kinds.spec_rules import spec_problems
from steersman.workloads.launch_subresource import launch_subresource
from steersman.workloads.log_subresource import Logs
from steersman.workloads.parts import Parts, new_runner, real_parts
from steersman.workloads.session import SessionFolder, open_session
from steersman.workloads.shutdown import BUDGET, Shutdown
from steersman.workloads.world import World

_log = logging.getLogger("steersman.workloads")
_TOKEN_LENGTH = 32
#: The watch history: changes of each kind, and bytes of old states.
_HISTORY, _HISTORY_BYTES = 512, 2 << 20
#: Makes the outside world of a session.
PartsFactory = Callable[[SessionFolder], AbstractAsyncContextManager[Parts]]


class DeveloperControlPlane:
    """Processes, services and containers of this machine as objects of a Kubernetes API.

    ```python
    async with DeveloperControlPlane(folder="session") as plane:
        print(f"export KUBECONFIG={plane.kubeconfig}")
        await plane.stopping.wait()
    ```

    - ``folder`` keeps output, state and the kubeconfig; by default it is a temporary folder that ends with the block.
    - ``parts`` makes the outside world: `real_parts` or `simulated_parts`.
    - ``working_folder`` is where programs start that name no folder, and ``ambient`` the environment that they inherit.
    - ``paths`` are further paths of the server, with the functions that answer them.
    - ``budget`` is how many seconds the deletion of all objects may take at the end.
    """

    def __init__(
        self,
        *,
        folder: Path | str | None = None,
        port: int = 0,
        kubeconfig: Path | str | None = None,
        parts: PartsFactory = real_parts,
        working_folder: Path | str | None = None,
        ambient: Mapping[str, str] | None = None,
        budget: float = BUDGET,
        paths: Mapping[str, PathHandler] | None = None,
    ) -> None:
        self._folder = Path(folder) if folder is not None else None
        self._kubeconfig = Path(kubeconfig).absolute() if kubeconfig is not None else None
        self._port = port
        self._parts_factory = parts
        self._working_folder = Path(working_folder or Path.cwd())
        self._ambient = dict(os.environ if ambient is None else ambient)
        self._budget = budget
        self._paths = dict(paths or {})
        self._stack: AsyncExitStack | None = None
        self._plane: ControlPlane | None = None
        self._running: asyncio.Task[None] | None = None
        self._manager: Manager | None = None
        self._failure: Exception | None = None
        self.session: SessionFolder | None = None
        self.parts: Parts | None = None
        self.shutdown: Shutdown | None = None

    @property
    def client(self) -> Client:
        """The administrator's client."""
        return self._running_plane.client

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig for kubectl and other clients."""
        kubeconfig = self._running_plane.kubeconfig
        assert kubeconfig is not None
        return kubeconfig

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._running_plane.url or ""

    @property
    def stopping(self) -> asyncio.Event:
        """Set when a client has asked for the end, or a controller has failed."""
        assert self.shutdown is not None
        return self.shutdown.stopping

    async def remove_leftovers(self, *, is_alone: bool = False) -> str:
        """Remove what killed sessions left in each container runtime that those of this folder used.

        Returns why something may still be there; empty if nothing is. A control plane with Containers does it by itself, but
        only in its own runtime. ``is_alone``: no other session uses this folder now. Without it, what a session in another
        pid namespace left remains, because it may still run.
        """
        assert self.session is not None
        assert self.parts is not None
        own = self.parts.containers
        runtimes = recorded_runtimes(self.session.containers)
        problems: list[str] = []
        for runtime in sorted(runtimes) if runtimes is not None else [own.name]:
            runner = own if own.name == runtime else new_runner(self.session, self.parts.processes, runtime)
            try:
                await runner.harvest(is_alone=is_alone)
            except ContainerRuntimeError as error:
                problems.append(str(error))
        return "; ".join(problems)

    @property
    def _running_plane(self) -> ControlPlane:
        if self._plane is None:
            raise RuntimeError("the developer control plane is not running; use it within its 'async with'")
        return self._plane

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise RuntimeError("this DeveloperControlPlane is already running; make another one")
        stack = AsyncExitStack()
        try:
            await self._start(stack)
        except BaseException:
            await stack.aclose()
            self._plane = None
            raise
        self._stack = stack
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._stack = self._stack, None
        assert stack is not None
        try:
            if kind is None and self._failure is None:
                await self._finish()
        finally:
            await stack.aclose()
            self._plane = None
        if kind is None and self._failure is not None:
            raise self._failure

    async def _finish(self) -> None:
        """Delete all objects, and let the controllers end."""
        assert self.shutdown is not None
        await self.shutdown.finish()
        for sentence in self.shutdown.blocking:
            _log.warning("left at the end: %s", sentence)
        if self._manager is not None and self._running is not None:
            self._manager.stop()
            await asyncio.wait((self._running,))

    async def _start(self, stack: AsyncExitStack) -> None:
        self._failure = None
        self.session = session = open_session(self._folder, kubeconfig=self._kubeconfig)
        if self._folder is None:
            stack.callback(_remove, session)
        self.parts = parts = await stack.enter_async_context(self._parts_factory(session))
        logs = Logs(session.logs, await stack.enter_async_context(FileChanges()))
        world: World[Run] = World("processes", Run)
        self.shutdown = shutdown = Shutdown(budget=self._budget)
        plane = ControlPlane(
            kinds=("v1 Event", "events.k8s.io/v1 Event"),
            resources=KINDS,
            controllers=("garbage-collector-controller",),
            port=self._port,
            kubeconfig=session.kubeconfig,
            token=_new_token(),
            certificates=parts.certificates,
            subresources=[*logs.subresources(), launch_subresource(world)],
            validators={kind: partial(spec_problems, kind.__name__) for kind in KINDS},
            paths={"/admin/execution": shutdown.answer, **self._paths},
            history=_HISTORY,
            history_bytes=_HISTORY_BYTES,
        )
        self._plane = await stack.enter_async_context(plane)
        stack.callback(_remove_own, session.kubeconfig, session.kubeconfig.read_bytes())
        tasks = await stack.enter_async_context(aio.Supervisor())
        stack.callback(tasks.cancel)
        shutdown.begin(plane, tasks)
        self._manager = manager = Manager(name="steersman-workloads", leader=None)
        manager.before_leading(lambda _: logs.following(manager.informers))
        for blueprint in self._blueprints(parts, session, world, shutdown):
            manager.add(blueprint)
        add_services(manager, proxy=parts.proxy, ports=parts.ports)
        self._running = tasks.start(self._run(manager, plane.client, shutdown), name="workloads: controllers")

    def _blueprints(
        self, parts: Parts, session: SessionFolder, world: World[Run], shutdown: Shutdown
    ) -> Iterator[Blueprint]:
        """The controllers of all kinds but Service."""
        yield executables(
            processes=parts.processes,
            persistent=parts.persistent,
            ports=parts.ports,
            health=parts.health,
            folder=self._working_folder,
            logs=session.logs,
            ambient=self._ambient,
            world=world,
        )
        yield executable_replica_sets(
            files=parts.files, folder=self._working_folder, is_ending=lambda: shutdown.is_last
        )
        runner = parts.containers
        yield containers(runner=runner, ports=parts.ports, health=parts.health, logs=session.logs)
        yield container_execs(runner=runner, logs=session.logs)
        yield container_networks(runner=runner, proxy=parts.proxy)
        yield container_network_connections(runner=runner)
        yield container_volumes(runner=runner)

    async def _run(self, manager: Manager, client: Client, shutdown: Shutdown) -> None:
        try:
            await manager.run(client, signals=False)
        except Exception as error:  # noqa: BLE001 - reported at the end of the block
            _log.exception("the controllers failed; the control plane ends")
            self._failure = error
            shutdown.stopping.set()


def _new_token() -> str:
    alphabet = string.ascii_letters + string.digits
    return "".join(aio.randomness().choices(alphabet, k=_TOKEN_LENGTH))


def _remove_own(kubeconfig: Path, content: bytes) -> None:
    """Remove a kubeconfig, unless another control plane has replaced it."""
    with suppress(OSError):
        if kubeconfig.read_bytes() == content:
            kubeconfig.unlink()


def _remove(session: SessionFolder) -> None:
    """Remove a temporary session, unless persistent processes need its state."""
    if not any(path.is_file() or path.is_socket() for path in session.state.rglob("*")):
        shutil.rmtree(session.root, ignore_errors=True)
