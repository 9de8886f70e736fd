"""A control plane with the controllers of processes, on simulated or real parts, for one test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from steersman.aio import Supervisor
from steersman.client import retry_on_conflict
from steersman.controlplane import ControlPlane
from steersman.manager import Manager
from steersman.objects import Key, Object, ObjectMeta
from steersman.workloads.controllers.executable_replica_sets import executable_replica_sets
from steersman.workloads.controllers.executables import executables
from steersman.workloads.files import FileWatcher, SimulatedFileWatcher
from steersman.workloads.kinds import (
    KINDS,
    Executable,
    ExecutableReplicaSet,
    ExecutableReplicaSetSpec,
    ExecutableReplicaSetStatus,
    ExecutableSpec,
    ExecutableStatus,
    ExecutableTemplate,
    ProcessAdditions,
    ReplicaSetAdditions,
    Service,
    ServiceSpec,
    ServiceStatus,
)
from steersman.workloads.ports import SimulatedPorts
from steersman.workloads.probes import HealthMonitor, Prober, SimulatedProber
from steersman.workloads.processes import (
    PersistentProcesses,
    ProcessRunner,
    SimulatedPersistentProcesses,
    SimulatedProcesses,
)


async def until_true(holds: Callable[[], Awaitable[object]], *, within: float = 60.0) -> None:
    """Wait until the API shows something."""
    async with asyncio.timeout(within):
        while not await holds():  # noqa: ASYNC110 - there is nothing to wait on
            await asyncio.sleep(0.005)


class Plane:
    """What a test does with the control plane."""

    def __init__(self, control_plane: ControlPlane, manager: Manager) -> None:
        self.client = control_plane.client
        self.server = control_plane.server
        self.manager = manager
        self.ports = SimulatedPorts()
        self.files = SimulatedFileWatcher()

    async def executable(
        self,
        name: str = "web",
        *,
        added: ProcessAdditions | None = None,
        annotations: Mapping[str, str] | None = None,
        **spec: object,
    ) -> Executable:
        """Create an Executable."""
        values = {"executable_path": "/bin/web", "steersman": added, **spec}
        metadata = ObjectMeta(name=name, annotations=dict(annotations) if annotations else None)
        return await self.client.create(Executable(metadata=metadata, spec=ExecutableSpec(**values)))  # type: ignore[arg-type]

    async def service(self, name: str, host: str | None, port: int | None, *, ready: bool = False) -> Service:
        """Create a Service with an address, or give one an address."""
        made = Service(metadata=ObjectMeta(name=name), spec=ServiceSpec())
        found = (await self.client.create_or_update(made, lambda _: None)).object
        state = "Ready" if ready else "NotReady"
        found.status = ServiceStatus(state=state, effective_address=host, effective_port=port)
        return await self.client.update(found, subresource="status")

    async def until(self, name: str, holds: Callable[[ExecutableStatus], object]) -> ExecutableStatus:
        """Wait until the status of an Executable fulfills a condition."""
        return await self._until(Executable, name, holds)

    async def _until(self, kind: type[Any], name: str, holds: Callable[[Any], object]) -> Any:
        last = None
        try:
            async with asyncio.timeout(60):
                while True:
                    found = await self.client.find(kind, Key("", name))
                    last = found.status if found is not None else None
                    if last is not None and holds(last):
                        return last
                    await asyncio.sleep(0.005)
        except TimeoutError:
            raise AssertionError(f"{kind.__name__} {name}: {last}") from None

    async def replica_set(
        self,
        name: str = "api",
        *,
        replicas: int = 1,
        stop_on_scale_down: bool = False,
        added: ReplicaSetAdditions | None = None,
        process: ProcessAdditions | None = None,
        **spec: object,
    ) -> ExecutableReplicaSet:
        """Create an ExecutableReplicaSet."""
        values = {"executable_path": "/bin/api", "steersman": process, **spec}
        template = ExecutableTemplate(spec=ExecutableSpec(**values))  # type: ignore[arg-type]
        made = ExecutableReplicaSetSpec(
            replicas=replicas, stop_on_scale_down=stop_on_scale_down, template=template, steersman=added
        )
        return await self.client.create(ExecutableReplicaSet(metadata=ObjectMeta(name=name), spec=made))

    async def change_set(self, name: str, mutate: Callable[[ExecutableReplicaSet], None]) -> None:
        """Change an ExecutableReplicaSet."""

        async def change() -> None:
            found = await self.client.get(ExecutableReplicaSet, Key("", name))
            mutate(found)
            await self.client.update(found)

        await retry_on_conflict(change)

    async def until_set(
        self, name: str, holds: Callable[[ExecutableReplicaSetStatus], object]
    ) -> ExecutableReplicaSetStatus:
        """Wait until the status of an ExecutableReplicaSet fulfills a condition."""
        return await self._until(ExecutableReplicaSet, name, holds)

    async def until_state(self, name: str, state: str) -> ExecutableStatus:
        """Wait for a state."""
        return await self.until(name, lambda status: status.state == state)

    async def until_gone(self, name: str, kind: type[Object] = Executable) -> None:
        """Wait until an object is deleted."""

        async def gone() -> bool:
            return await self.client.find(kind, Key("", name)) is None

        await until_true(gone)

    async def stop(self, name: str) -> None:
        """Ask an Executable to stop."""
        found = await self.client.get(Executable, Key("", name))
        found.spec.stop = True
        await self.client.update(found)


@asynccontextmanager
async def workloads_plane(
    folder: Path,
    processes: ProcessRunner | None = None,
    *,
    persistent: PersistentProcesses | None = None,
    prober: Prober | None = None,
    ambient: Mapping[str, str] | None = None,
    files: FileWatcher | None = None,
) -> AsyncIterator[Plane]:
    """Run the control plane for a block."""
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(
            ControlPlane(resources=KINDS, controllers=["garbage-collector-controller"])
        )
        health = await stack.enter_async_context(HealthMonitor(prober or SimulatedProber()))
        manager = Manager(plane.client, name="developer-control-plane", grace=1.0)
        made = Plane(plane, manager)
        logs = folder / "logs"
        logs.mkdir(exist_ok=True)
        manager.add(
            executables(
                processes=processes if processes is not None else SimulatedProcesses(),
                persistent=persistent if persistent is not None else SimulatedPersistentProcesses(),
                ports=made.ports,
                health=health,
                folder=folder,
                logs=logs,
                ambient=ambient or {},
            )
        )
        manager.add(executable_replica_sets(files=files or made.files, folder=folder))
        tasks = await stack.enter_async_context(Supervisor())
        tasks.start(manager.run(), name="manager")
        stack.callback(manager.stop)
        yield made
