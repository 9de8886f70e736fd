"""The controllers of the developer control plane on simulated parts. No crashes: its processes end with it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from simulation.shipped.shipped_program import NO_CRASHES, ShippedProgram, nothing

from steersman import Manager, MergePatch, Object, ObjectMeta
from steersman.simulation import Objects, Scenario, ScenarioUser, StateCheck, at_rest
from steersman.simulation.runs.schedules import Violation
from steersman.simulation.scenario import Workload
from steersman.workloads.containers import SimulatedContainers
from steersman.workloads.controllers.container_execs import container_execs
from steersman.workloads.controllers.container_network_connections import container_network_connections
from steersman.workloads.controllers.container_networks import container_networks
from steersman.workloads.controllers.container_volumes import container_volumes
from steersman.workloads.controllers.containers import containers
from steersman.workloads.controllers.executable_replica_sets import executable_replica_sets
from steersman.workloads.controllers.executables import executables
from steersman.workloads.controllers.services import add_services
from steersman.workloads.files import SimulatedFileWatcher
from steersman.workloads.kinds import (
    Container,
    ContainerExec,
    ContainerExecSpec,
    ContainerNetwork,
    ContainerNetworkConnection,
    ContainerNetworkSpec,
    ContainerSpec,
    ContainerVolume,
    ContainerVolumeSpec,
    Endpoint,
    EndpointSpec,
    Executable,
    ExecutableReplicaSet,
    ExecutableReplicaSetSpec,
    ExecutableSpec,
    ExecutableTemplate,
    NetworkConnection,
    Service,
    ServiceSpec,
)
from steersman.workloads.ports import SimulatedPorts
from steersman.workloads.probes import HealthMonitor, SimulatedProber
from steersman.workloads.processes import SimulatedPersistentProcesses, SimulatedProcess, SimulatedProcesses
from steersman.workloads.proxies import SimulatedProxy


@cache
def _folder() -> Path:
    """One folder for the output of all runs: its name is in the statuses."""
    folder = Path(tempfile.mkdtemp(prefix="steersman-simulated-"))
    (folder / "logs").mkdir()
    return folder


def _fate(process: SimulatedProcess) -> None:
    """Let a program end by itself if its name says so. Its pid follows from the name: the order of starts is not promised."""
    name = Path(process.launch.program).name
    process.pid = 1000 + sum(map(ord, name))
    if name in {"short", "failing"}:
        asyncio.get_running_loop().call_later(1.0, process.exit, 0 if name == "short" else 3)


def controllers() -> Manager:
    """All controllers of the developer control plane, on parts that exist on paper."""
    manager = Manager(name="steersman-workloads", leader=None)
    folder, ports, proxy, runner = _folder(), SimulatedPorts(), SimulatedProxy(), SimulatedContainers()
    health, processes = HealthMonitor(SimulatedProber()), SimulatedProcesses()
    processes.on_start = _fate
    manager.before_leading(lambda _: health)
    manager.add(
        executables(
            processes=processes,
            persistent=SimulatedPersistentProcesses(),
            ports=ports,
            health=health,
            folder=folder,
            logs=folder / "logs",
            ambient={},
        )
    )
    manager.add(executable_replica_sets(files=SimulatedFileWatcher(), folder=folder))
    manager.add(containers(runner=runner, ports=ports, health=health, logs=folder / "logs"))
    manager.add(container_execs(runner=runner, logs=folder / "logs"))
    manager.add(container_networks(runner=runner, proxy=proxy))
    manager.add(container_network_connections(runner=runner))
    manager.add(container_volumes(runner=runner))
    add_services(manager, proxy=proxy, ports=ports)
    return manager


def _executable(name: str, program: str = "/bin/web", **spec: object) -> Executable:
    return Executable(metadata=ObjectMeta(name=name), spec=ExecutableSpec(executable_path=program, **spec))  # type: ignore[arg-type]


async def _delete(user: ScenarioUser, kind: type[Object], *names: str) -> None:
    for name in names:
        await user.client.delete(kind, name)
    await user.settled()


async def programs(user: ScenarioUser) -> None:
    """Programs run, end, fail, are stopped and held back."""
    client = user.client
    for name, program in {"web": "/bin/web", "short": "/bin/short", "failing": "/bin/failing"}.items():
        await client.create(_executable(name, program))
    await client.create(_executable("later", start=False))
    await user.settled()
    await client.patch(Executable, "later", MergePatch({"spec": {"start": True}}))
    await client.patch(Executable, "web", MergePatch({"spec": {"stop": True}}))
    await user.settled()
    await _delete(user, Executable, "web", "short", "failing", "later")


async def replica_sets(user: ScenarioUser) -> None:
    """A set of programs is scaled up and down."""
    client = user.client
    template = ExecutableTemplate(spec=ExecutableSpec(executable_path="/bin/api"))
    spec = ExecutableReplicaSetSpec(replicas=2, template=template)
    await client.create(ExecutableReplicaSet(metadata=ObjectMeta(name="api"), spec=spec))
    await user.settled()
    for replicas in (3, 1):
        await client.patch(ExecutableReplicaSet, "api", MergePatch({"spec": {"replicas": replicas}}))
        await user.settled()
    await _delete(user, ExecutableReplicaSet, "api")


def connected_once(objects: Objects) -> bool:
    """The container is connected to its network at most once."""
    return len(objects.list(ContainerNetworkConnection)) <= 1


def hashed(violation: Violation) -> bool:
    """The name of a connection has a hash of the uid of its container."""
    words = violation.words.partition(": ")[2].split("; ")
    return violation.oracle == "state" and all(word.startswith("containernetworkconnections db-net-") for word in words)


def as_many_as_wanted(objects: Objects) -> bool:
    """A set has as many programs as it wants."""
    wanted = sum(each.spec.replicas for each in objects.list(ExecutableReplicaSet) if not each.deleting)
    return len([each for each in objects.list(Executable) if not each.deleting]) == wanted


def numbered(violation: Violation) -> bool:
    """The names of a set's programs have a sequence number, which a failed request uses up."""
    words = violation.words.partition(": ")[2].split("; ")
    return violation.oracle == "state" and all(word.startswith("executables api-") for word in words)


async def services(user: ScenarioUser) -> None:
    """A Service has an address before its endpoints, and keeps it."""
    client = user.client
    await client.create(Service(metadata=ObjectMeta(name="web"), spec=ServiceSpec()))
    await user.settled()
    for name, port in {"one": 8001, "two": 8002}.items():
        spec = EndpointSpec(service_name="web", address="127.0.0.1", port=port)
        await client.create(Endpoint(metadata=ObjectMeta(name=name), spec=spec))
    await user.settled()
    await _delete(user, Endpoint, "one", "two")
    await _delete(user, Service, "web")


async def container_kinds(user: ScenarioUser) -> None:
    """A container joins a network, has a command, is stopped, and everything is deleted."""
    client = user.client
    await client.create(
        ContainerNetwork(metadata=ObjectMeta(name="net"), spec=ContainerNetworkSpec(network_name="net"))
    )
    await client.create(ContainerVolume(metadata=ObjectMeta(name="data"), spec=ContainerVolumeSpec(name="data")))
    await user.settled()
    spec = ContainerSpec(image="app:1", networks=[NetworkConnection(name="net")])
    await client.create(Container(metadata=ObjectMeta(name="db"), spec=spec))
    await client.create(Container(metadata=ObjectMeta(name="unknown"), spec=ContainerSpec(image="missing:1")))
    await user.settled()
    command = ContainerExecSpec(container_name="db", command="ls")
    await client.create(ContainerExec(metadata=ObjectMeta(name="ls"), spec=command))
    await user.settled()
    await client.patch(Container, "db", MergePatch({"spec": {"stop": True}}))
    await user.settled()
    await _delete(user, ContainerExec, "ls")
    await _delete(user, Container, "db", "unknown")
    await _delete(user, ContainerNetwork, "net")
    await _delete(user, ContainerVolume, "data")


def _program(workload: Workload, *checks: StateCheck, excused: Callable[[Violation], bool] = nothing) -> ShippedProgram:
    _folder()  # before the runs, each of which is a process of its own
    scenario = Scenario(controllers, workload, checks=checks, name="developer control plane")
    return ShippedProgram(scenario=scenario, faults=NO_CRASHES, excused=excused)


DEVELOPER_PLANE: dict[str, Callable[[], ShippedProgram]] = {
    "developer control plane: programs": lambda: _program(programs),
    "developer control plane: replica sets": lambda: _program(
        replica_sets, at_rest(as_many_as_wanted), excused=numbered
    ),
    "developer control plane: services": lambda: _program(services),
    "developer control plane: containers": lambda: _program(container_kinds, at_rest(connected_once), excused=hashed),
}
