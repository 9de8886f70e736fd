"""What the controllers act on: processes, containers, ports, the proxy, files, probes.

One set is real, and one is simulated.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

import msgspec

from steersman import aio
from steersman.controlplane import CertificateProcess, CertificateSource
from steersman.workloads.containers import DOCKER, PODMAN, CommandLineRunner, ContainerRunner
from steersman.workloads.files import FileWatcher, InotifyWatcher, SimulatedFileWatcher
from steersman.workloads.ports import LocalPorts, PortRegistry, SimulatedPorts
from steersman.workloads.probes import HealthMonitor, RealProber
from steersman.workloads.processes import (
    PersistentProcesses,
    PersistentProcessFolder,
    ProcessRunner,
    SimulatedPersistentProcesses,
    ZygoteRunner,
)
from steersman.workloads.proxies import Proxy, RelayProxy, SimulatedProxy
from steersman.workloads.session import SessionFolder


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The outside world of the controllers."""

    processes: ProcessRunner
    persistent: PersistentProcesses
    containers: ContainerRunner
    ports: PortRegistry
    proxy: Proxy
    files: FileWatcher
    health: HealthMonitor
    certificates: CertificateSource | None = None
    """Issues the certificates of the session; None: the session does."""


def new_runner(session: SessionFolder, processes: ProcessRunner, runtime: str) -> CommandLineRunner:
    """A runner of Docker or Podman, which labels what it makes for the session with a new identity."""
    name = f"{''.join(session.root.name.split())[:40]}-{aio.name_suffix(8)}"
    dialect = DOCKER if runtime == DOCKER.name else PODMAN
    return CommandLineRunner(dialect, processes, session=name, record=session.containers)


@asynccontextmanager
async def real_parts(
    session: SessionFolder,
    *,
    runtime: Literal["podman", "docker"] = "podman",
    project: str | None = None,
    certificates: CertificateSource | None = None,
) -> AsyncGenerator[Parts]:
    """Processes, containers and sockets of this machine; all of them end with the block, but for persistent ones.

    Services of the same ``project``, by default the session's folder, keep their ports between runs. ``certificates`` are
    those of a `CertificateProcess` that began earlier.
    """
    async with AsyncExitStack() as stack:
        if certificates is None:
            # First, because it issues them while the session starts.
            certificates = (await stack.enter_async_context(CertificateProcess())).issued
        processes = await stack.enter_async_context(ZygoteRunner())
        containers = new_runner(session, processes, runtime)
        prober = await stack.enter_async_context(RealProber(processes))
        yield Parts(
            processes=processes,
            persistent=PersistentProcessFolder(session.state / "processes"),
            containers=await stack.enter_async_context(containers),
            ports=LocalPorts(project or str(session.root)),
            proxy=await stack.enter_async_context(RelayProxy()),
            files=await stack.enter_async_context(InotifyWatcher()),
            health=await stack.enter_async_context(HealthMonitor(prober)),
            certificates=certificates,
        )


@asynccontextmanager
async def simulated_parts(session: SessionFolder) -> AsyncGenerator[Parts]:
    """A world without processes and sockets, for tests of the controllers."""
    from steersman.workloads.containers import SimulatedContainers  # noqa: PLC0415 - a real session does not need it
    from steersman.workloads.probes import SimulatedProber  # noqa: PLC0415 - as above
    from steersman.workloads.processes import SimulatedProcesses  # noqa: PLC0415 - as above

    del session
    async with HealthMonitor(SimulatedProber()) as health:
        yield Parts(
            processes=SimulatedProcesses(),
            persistent=SimulatedPersistentProcesses(),
            containers=SimulatedContainers(),
            ports=SimulatedPorts(),
            proxy=SimulatedProxy(),
            files=SimulatedFileWatcher(),
            health=health,
        )
