"""A control plane with the controllers of containers, on simulated or real parts, for one test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from workloads.plane import until_true

from steersman.aio import Supervisor
from steersman.client import Client
from steersman.controlplane import ControlPlane
from steersman.manager import Manager
from steersman.objects import Key, Object, ObjectMeta
from steersman.workloads.containers import ContainerRunner
from steersman.workloads.controllers.container_execs import container_execs
from steersman.workloads.controllers.container_network_connections import container_network_connections
from steersman.workloads.controllers.container_networks import container_networks
from steersman.workloads.controllers.container_volumes import container_volumes
from steersman.workloads.controllers.containers import containers
from steersman.workloads.kinds import (
    KINDS,
    Container,
    ContainerAdditions,
    ContainerSpec,
    ContainerStatus,
    Service,
    ServiceSpec,
    ServiceStatus,
)
from steersman.workloads.ports import PortRegistry, SimulatedPorts
from steersman.workloads.probes import HealthMonitor, Prober, SimulatedProber
from steersman.workloads.proxies import Proxy, SimulatedProxy


class ContainerPlane:
    """What a test does with the control plane."""

    def __init__(self, client: Client, logs: Path, proxy: Proxy) -> None:
        self.client, self.logs, self.proxy = client, logs, proxy

    async def container(
        self,
        name: str = "web",
        *,
        added: ContainerAdditions | None = None,
        annotations: Mapping[str, str] | None = None,
        **spec: object,
    ) -> Container:
        """Create a Container of an image that a simulated registry has."""
        values: dict[str, Any] = {"image": "app:1", "steersman": added, **spec}
        metadata = ObjectMeta(name=name, annotations=dict(annotations) if annotations else None)
        return await self.client.create(Container(metadata=metadata, spec=ContainerSpec(**values)))

    async def change(self, name: str, **spec: object) -> None:
        """Change fields of a Container's spec."""
        found = await self.client.get(Container, Key("", name))
        for field, value in spec.items():
            setattr(found.spec, field, value)
        await self.client.update(found)

    async def service(self, name: str, host: str | None, port: int | None) -> Service:
        """Create a Service with an address."""
        made = Service(metadata=ObjectMeta(name=name), spec=ServiceSpec())
        found = (await self.client.create_or_update(made, lambda _: None)).object
        found.status = ServiceStatus(effective_address=host, effective_port=port)
        return await self.client.update(found, subresource="status")

    async def until(self, name: str, holds: Callable[[ContainerStatus], object]) -> ContainerStatus:
        """Wait until the status of a Container fulfills a condition."""
        found = await self.until_object(Container, name, lambda each: each.status is not None and holds(each.status))
        assert found.status is not None
        return found.status

    async def until_state(self, name: str, state: str) -> ContainerStatus:
        """Wait for a state of a Container."""
        return await self.until(name, lambda status: status.state == state)

    async def until_object(self, kind: type[Any], name: str, holds: Callable[[Any], object]) -> Any:
        """Wait until an object fulfills a condition."""
        last = None
        try:
            async with asyncio.timeout(30):
                while True:
                    last = await self.client.find(kind, Key("", name))
                    if last is not None and holds(last):
                        return last
                    await asyncio.sleep(0.005)
        except TimeoutError:
            raise AssertionError(f"{kind.__name__} {name}: {getattr(last, 'status', last)}") from None

    async def delete(self, kind: type[Object], name: str) -> None:
        """Delete an object and wait until it is gone."""
        await self.client.delete(await self.client.get(kind, Key("", name)))
        await self.until_gone(kind, name)

    async def until_gone(self, kind: type[Object], name: str) -> None:
        """Wait until an object is gone."""

        async def gone() -> bool:
            return await self.client.find(kind, Key("", name)) is None

        await until_true(gone, within=30)


@asynccontextmanager
async def container_plane(
    folder: Path,
    runner: ContainerRunner,
    *,
    prober: Prober | None = None,
    ports: PortRegistry | None = None,
    proxy: Proxy | None = None,
    others: Callable[[Manager], None] = lambda manager: None,
) -> AsyncIterator[ContainerPlane]:
    """Run the control plane for a block. ``others`` adds more controllers."""
    async with ControlPlane(resources=KINDS, controllers=["garbage-collector-controller"]) as plane:
        parts = {"prober": prober, "ports": ports, "proxy": proxy}
        async with container_controllers(plane.client, folder, runner, **parts, others=others) as made:
            yield made


@asynccontextmanager
async def container_controllers(
    client: Client,
    folder: Path,
    runner: ContainerRunner,
    *,
    prober: Prober | None = None,
    ports: PortRegistry | None = None,
    proxy: Proxy | None = None,
    others: Callable[[Manager], None] = lambda manager: None,
) -> AsyncIterator[ContainerPlane]:
    """Run the controllers alone for a block, on a server that outlives them."""
    async with AsyncExitStack() as stack:
        health = await stack.enter_async_context(HealthMonitor(prober or SimulatedProber()))
        manager = Manager(client, name="developer-control-plane", grace=1.0)
        logs = folder / "logs"
        logs.mkdir(exist_ok=True)
        made = ContainerPlane(client, logs, proxy or SimulatedProxy())
        manager.add(containers(runner=runner, ports=ports or SimulatedPorts(), health=health, logs=logs))
        manager.add(container_execs(runner=runner, logs=logs))
        manager.add(container_networks(runner=runner, proxy=made.proxy))
        manager.add(container_network_connections(runner=runner))
        manager.add(container_volumes(runner=runner))
        others(manager)
        tasks = await stack.enter_async_context(Supervisor())
        tasks.start(manager.run(), name="manager")
        stack.callback(manager.stop)
        yield made
