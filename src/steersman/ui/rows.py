"""Rows: the state of each service for people, as a pure function of its objects.

Guarantees
- A service has one row, however many replicas it has.
- A row of several replicas has the state that most needs attention; ``ready`` of ``replicas`` counts the healthy ones.
- A service whose address is not its own, or whose dependency is unhealthy, has failed and is retried.
- A row contains no value of an environment variable.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

from steersman.application import DEPENDS_ON, NO_ADDRESS, ORDER, SERVICE
from steersman.objects import find_condition
from steersman.workloads.kinds import (
    NETWORK_ACTIONS,
    SERVED,
    Container,
    ContainerAdditions,
    ContainerStatus,
    Dependency,
    Executable,
    ExecutableReplicaSet,
    ExecutableStatus,
    ProcessAdditions,
    ReplicaSetObservation,
    Service,
    is_stopped,
    probes_of,
)

#: Annotation of an Executable that its set no longer counts.
RETIRED: Final = "steersman.dev/retired"

Health = Literal["healthy", "unhealthy", "unknown", ""]
#: What an order is: any user of the API can write the annotation.
_ORDER: Final = re.compile(r"[0-9]{1,9}")
_WORST: Final[tuple[Health, ...]] = ("unhealthy", "unknown", "healthy")

#: States of replicas, those that most need attention first.
_ATTENTION: Final = (
    "failed",
    "unknown",
    "not found",
    "stopping",
    "building",
    "waiting",
    "starting",
    "paused",
    "running",
    "finished",
    "stopped",
)
_EXECUTABLE_STATES: Final = {
    "": "waiting",
    "Starting": "starting",
    "Running": "running",
    "Stopping": "stopping",
    "Terminated": "stopped",
    "FailedToStart": "failed",
    "NotFound": "not found",
    "Unknown": "unknown",
}
_CONTAINER_STATES: Final = {
    "": "waiting",
    "Pending": "waiting",
    "RuntimeUnhealthy": "waiting",
    "Building": "building",
    "Starting": "starting",
    "Running": "running",
    "Paused": "paused",
    "Stopping": "stopping",
    "FailedToStart": "failed",
    "NotFound": "not found",
    "Unknown": "unknown",
}
_HEALTH: Final[Mapping[str | None, Health]] = {"Healthy": "healthy", "Unhealthy": "unhealthy"}
#: The message of a program that has ended as it should.
_SUCCESS: Final = "Ended with exit code 0."
#: The conditions of Compose, and their names in rows.
CONDITIONS: Final = {
    "service_started": "started",
    "service_healthy": "healthy",
    "service_completed_successfully": "completed",
}
_KIND: Final = re.compile(r"\b(?:ExecutableReplicaSet|Executable|Container|Service) (?=[a-z0-9])")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One service."""

    name: str
    kind: Literal["process", "container"]
    #: The state as text: running, starting, waiting, building, stopping, stopped, finished, failed, "restarting in 4 s", ...
    state: str
    #: Empty if the service has no health probe or is not running.
    health: Health = ""
    #: The number of replicas that are running, and healthy if there are probes.
    ready: int = 0
    replicas: int = 1
    #: Where clients connect: "localhost:8080".
    addresses: tuple[str, ...] = ()
    restarts: int = 0
    #: The exit code of the latest run, if it has ended.
    exit_code: int | None = None
    pid: int | None = None
    #: What the service waits for: "db to become healthy".
    waiting_for: str = ""
    #: Why it is in its state, as a sentence.
    message: str = ""
    #: When it started, or when it ended.
    since: datetime | None = None
    #: The services that it depends on, with the condition: started, healthy or completed.
    depends_on: tuple[tuple[str, str], ...] = ()
    #: Those of them whose failure it does not wait for.
    optional: tuple[str, ...] = ()
    #: Those of them whose restart also restarts this service.
    restarts_with: tuple[str, ...] = ()
    order: int = 0
    #: Whether a failed service starts by itself once the cause is gone: its port is free, or its dependency is healthy.
    retried: bool = False

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        """The dependencies without which the service does not start."""
        return tuple(each for each in self.depends_on if each[0] not in self.optional)

    @property
    def summary(self) -> str:
        """The state as one word: "restarting" without the seconds."""
        return self.state.partition(" in ")[0]


class Objects(msgspec.Struct, frozen=True):
    """The objects of a project, by kind and name."""

    replica_sets: dict[str, ExecutableReplicaSet] = {}
    executables: dict[str, Executable] = {}
    containers: dict[str, Container] = {}
    services: dict[str, Service] = {}


class _Dependency(msgspec.Struct, frozen=True):
    """What a service waits for."""

    service: str
    condition: str
    is_optional: bool = False
    restarts: bool = False


class _Replica(msgspec.Struct, frozen=True):
    """What a row needs of an Executable or a Container."""

    state: str
    health: Health
    exit_code: int | None
    pid: int | None
    waiting_for: str
    message: str
    started: datetime | None
    ended: datetime | None

    @property
    def is_ready(self) -> bool:
        return self.state == "running" and self.health in {"healthy", ""}


def service_of(obj: ExecutableReplicaSet | Executable | Container | Service) -> str:
    """The name of an object's service; empty if it has none."""
    return (obj.metadata.labels or {}).get(SERVICE, "")


def rows_of(objects: Objects, *, now: datetime) -> tuple[Row, ...]:
    """The rows of a project, in the order of its file."""
    addresses: dict[str, list[str]] = {}
    problems: dict[str, str] = {}
    unserved: dict[str, str] = {}
    for service in sorted(objects.services.values(), key=lambda obj: obj.key.name):
        name = service_of(service)
        if message := _unserved(service):
            # Another program may listen at its address.
            unserved.setdefault(name, message)
            continue
        if message := _service_message(service):
            problems.setdefault(name, message)
        if NO_ADDRESS not in (service.metadata.annotations or {}) and (address := _address(service)):
            addresses.setdefault(name, []).append(address)
    rows = [*_process_rows(objects, now), *_container_rows(objects)]
    shown = [
        msgspec.structs.replace(
            _blocked(row, unserved.get(row.name, "")),
            addresses=tuple(addresses.get(row.name, ())),
        )
        for row in rows
    ]
    # A service that passes a tcp or http check takes connections: its proxy's report of a refusal is older.
    proven = _network_checked(objects)
    shown = [
        row
        if row.health == "healthy" and row.name in proven
        else msgspec.structs.replace(row, message=row.message or problems.get(row.name, ""))
        for row in shown
    ]
    return tuple(sorted(_with_failed_dependents(shown), key=lambda row: (row.order, row.name)))


def _network_checked(objects: Objects) -> set[str]:
    """The services with a health check that connects to them."""
    names: set[str] = set()
    for workload in (*objects.replica_sets.values(), *objects.containers.values()):
        spec = workload.spec.template.spec if isinstance(workload, ExecutableReplicaSet) else workload.spec
        if any(isinstance(probe.action, NETWORK_ACTIONS) for probe in probes_of(spec.health_probes, spec.steersman)):
            names.add(service_of(workload))
    return names


def _blocked(row: Row, problem: str) -> Row:
    """A row with the problem of its address: a service that runs is no use to its clients, and one that has ended may say why."""
    if problem and row.state in {"running", "starting"}:
        return msgspec.structs.replace(row, state="failed", health="", ready=0, message=problem, retried=True)
    return msgspec.structs.replace(row, message=(row.exit_code and problem) or row.message or problem)


def _with_failed_dependents(rows: Sequence[Row]) -> list[Row]:
    """The rows, in which a service that waits for an unhealthy or unreachable one has failed, and starts once that recovers."""
    by_name = {row.name: row for row in rows}
    waiting = {row.name: row for row in rows if row.state == "waiting"}
    changed = True
    while changed and waiting:
        changed = False
        for row in list(waiting.values()):
            if reason := failed_dependency(row.needs, by_name):
                by_name[row.name] = msgspec.structs.replace(
                    row, state="failed", message=reason, waiting_for="", retried=True
                )
                del waiting[row.name]
                changed = True
    return list(by_name.values())


def failed_dependency(depends_on: Iterable[tuple[str, str]], rows: Mapping[str, Row]) -> str:
    """Why a service cannot start now: a dependency is unhealthy, or has failed and is retried. Empty if there is none."""
    for name, condition in depends_on:
        row = rows.get(name)
        if row is not None and row.health == "unhealthy" and condition == "healthy":
            return f"{name} is unhealthy, and it waits for {name}"
        if row is not None and row.retried:
            return f"{name} has failed, and it waits for {name}"
    return ""


def restarted_with(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """The other services that restart with these, directly or not. A stopped one stays stopped."""
    found = dict.fromkeys(names)
    count = 0
    while count < len(found):
        count = len(found)
        found |= {
            row.name: None for row in rows if row.state != "stopped" and not found.keys().isdisjoint(row.restarts_with)
        }
    return [name for name in found if name not in names]


def _process_rows(objects: Objects, now: datetime) -> Iterator[Row]:
    replicas: dict[str, list[Executable]] = {}
    for executable in objects.executables.values():
        owners = executable.metadata.owner_references or ()
        is_current = RETIRED not in (executable.metadata.annotations or {}) and not executable.deleting
        for owner in owners if is_current else ():
            replicas.setdefault(owner.uid, []).append(executable)
    for replica_set in objects.replica_sets.values():
        name = service_of(replica_set)
        if not name or replica_set.deleting:
            continue
        spec = replica_set.spec.template.spec
        probed = bool(probes_of(spec.health_probes, spec.steersman))
        own = sorted(replicas.get(replica_set.uid, ()), key=lambda obj: obj.key.name)
        observed = (replica_set.status.steersman if replica_set.status is not None else None) or ReplicaSetObservation()
        row = _row(
            replica_set,
            [_executable_replica(each, probed=probed) for each in own],
            kind="process",
            replicas=replica_set.spec.replicas,
            dependencies=_dependencies(replica_set, (spec.steersman or ProcessAdditions()).depends_on),
        )
        changes: dict[str, Any] = {"restarts": observed.restarts}
        if observed.next_restart is not None and row.state != "stopped":
            left = max(0.0, observed.next_restart.timestamp() - now.timestamp())
            changes |= {"state": f"restarting in {left:.0f} s", "message": row.message or _ended_message(row)}
        if observed.waiting_for and not row.waiting_for and row.state not in {"running", "stopped"}:
            changes["message"] = row.message or f"Waits for {observed.waiting_for}."
        if observed.unwatched and row.state == "running":
            changes["message"] = row.message or f"watch: {observed.unwatched}"
        yield msgspec.structs.replace(row, **changes)


def _container_rows(objects: Objects) -> Iterator[Row]:
    by_service: dict[str, list[Container]] = {}
    for container in sorted(objects.containers.values(), key=lambda obj: obj.key.name):
        if (name := service_of(container)) and not container.deleting:
            by_service.setdefault(name, []).append(container)
    for group in by_service.values():
        first = group[0]
        row = _row(
            first,
            [_container_replica(container) for container in group],
            kind="container",
            replicas=len(group),
            dependencies=_dependencies(first, (first.spec.steersman or ContainerAdditions()).depends_on),
        )
        observed = [container.status.steersman for container in group if container.status is not None]
        restarts = sum(observation.restarts for observation in observed if observation is not None)
        yield msgspec.structs.replace(row, restarts=restarts)


def _row(
    obj: ExecutableReplicaSet | Container,
    observed: Sequence[_Replica],
    *,
    kind: Literal["process", "container"],
    replicas: int,
    dependencies: Sequence[_Dependency],
) -> Row:
    """The row of a workload and its replicas."""
    annotations = obj.metadata.annotations or {}
    state = _state([replica.state for replica in observed], wanted=replicas)
    if is_stopped(obj):
        state = "stopping" if state in {"running", "starting", "stopping", "paused"} else "stopped"
    # The replica that explains the state of the row, and its health.
    explaining = [replica for replica in observed if replica.state == state] or observed[:1]
    shown = min(
        explaining, key=lambda replica: _WORST.index(replica.health) if replica.health else len(_WORST), default=None
    )
    healths: list[Health] = [replica.health for replica in observed if replica.health]
    worst: Health = min(healths, key=_WORST.index) if healths else ""
    is_over = state in {"finished", "failed", "stopped"}
    order = annotations.get(ORDER, "")
    return Row(
        name=service_of(obj),
        kind=kind,
        state=state,
        health=worst,
        ready=sum(replica.is_ready for replica in observed),
        exit_code=shown.exit_code if shown is not None and is_over else None,
        pid=shown.pid if shown is not None and not is_over else None,
        waiting_for=next((replica.waiting_for for replica in observed if replica.waiting_for and not is_over), ""),
        message=shown.message if shown is not None and state != "stopped" else "",
        since=_datetime((shown.ended if is_over else shown.started) if shown is not None else None),
        order=int(order) if _ORDER.fullmatch(order) else 0,
        replicas=replicas,
        depends_on=tuple((each.service, each.condition) for each in dependencies),
        optional=tuple(each.service for each in dependencies if each.is_optional),
        restarts_with=tuple(each.service for each in dependencies if each.restarts),
    )


def _state(states: Sequence[str], *, wanted: int) -> str:
    if not states:
        return "waiting" if wanted else "stopped"
    return min(states, key=lambda state: _ATTENTION.index(state) if state in _ATTENTION else 0)


def _executable_replica(executable: Executable, *, probed: bool) -> _Replica:
    status = executable.status
    if status is None:
        return _Replica("waiting", "", None, None, "", "", None, None)
    state = _EXECUTABLE_STATES.get(status.state, "")
    if status.state == "Finished":
        state = "finished" if status.exit_code == 0 else "failed"
    added = status.steersman
    return _Replica(
        state=state or "unknown",
        health=_HEALTH.get(status.health_status, "unknown") if probed and state == "running" else "",
        exit_code=_shell_code(status.exit_code),
        pid=status.pid,
        waiting_for=_plain(added.waiting_for if added is not None else None),
        message=_message(status, added.message if added is not None else None),
        started=status.startup_timestamp,
        ended=status.finish_timestamp,
    )


def _shell_code(code: int | None) -> int | None:
    """An exit code as a shell and a container have it: 137 for a program that SIGKILL has ended."""
    return code if code is None or code >= 0 else 128 - code


def _container_replica(container: Container) -> _Replica:
    status, spec = container.status, container.spec
    if status is None:
        return _Replica("waiting", "", None, None, "", "", None, None)
    state = _CONTAINER_STATES.get(status.state, "")
    added = status.steersman
    waiting_for = _plain(added.waiting_for if added is not None else None)
    if status.state == "Pending" and not waiting_for:
        state = "starting"
    if status.state == "Exited":
        state = "stopped" if spec.stop or is_stopped(container) else "finished" if status.exit_code == 0 else "failed"
    probed = bool(probes_of(spec.health_probes, spec.steersman))
    return _Replica(
        state=state or "unknown",
        health=_HEALTH.get(status.health_status, "unknown") if probed and state == "running" else "",
        exit_code=status.exit_code,
        pid=None,
        waiting_for=waiting_for,
        message=_message(status, status.message or (added.message if added is not None else None)),
        started=status.startup_timestamp,
        ended=status.finish_timestamp,
    )


def _message(status: ExecutableStatus | ContainerStatus, message: str | None) -> str:
    """The message of a workload, or why its first failing health check fails. A success needs no explanation."""
    if message == _SUCCESS:
        return ""
    if message or status.state != "Running":
        return message or ""
    reasons = (result.reason for result in status.health_probe_results or () if result.outcome != "Success")
    return next((f"{reason} (health check)" for reason in reasons if reason), "")


def _datetime(moment: datetime | None) -> datetime | None:
    """The moment as a plain datetime, which every encoder supports."""
    return datetime.fromtimestamp(moment.timestamp(), UTC) if moment is not None else None


def _ended_message(row: Row) -> str:
    return f"Ended with exit code {row.exit_code}." if row.exit_code is not None else ""


def _plain(text: str | None) -> str:
    """What a workload waits for, without the kinds of objects and without details: "db to become healthy"."""
    return ", ".join(_KIND.sub("", part).partition(": ")[0] for part in (text or "").split("; ")) if text else ""


def _dependencies(obj: ExecutableReplicaSet | Container, declared: Iterable[Dependency] | None) -> list[_Dependency]:
    """The dependencies by name of service, else by name of object."""
    try:
        written = msgspec.json.decode((obj.metadata.annotations or {}).get(DEPENDS_ON, "[]"), type=list[dict[str, str]])
    except msgspec.DecodeError:
        written = []
    named = [
        _Dependency(
            name, CONDITIONS.get(entry.get("condition", ""), "started"), "optional" in entry, "restart" in entry
        )
        for entry in written
        if (name := entry.get("service"))
    ]
    return named or [_Dependency(each.name, each.condition.lower(), bool(each.optional)) for each in declared or ()]


def _address(service: Service) -> str:
    """Where clients connect; empty if the port is not known."""
    status, spec = service.status, service.spec
    port = (status.effective_port if status is not None else None) or spec.port
    if not port:
        return ""
    host = (status.effective_address if status is not None else None) or spec.address or "localhost"
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return f"{host}:{port}"
    if address.is_unspecified or address in {ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")}:
        return f"localhost:{port}"
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def _unserved(service: Service) -> str:
    """Why clients must not use the address of a service; empty if they can."""
    condition = find_condition(service.status.conditions if service.status is not None else None, SERVED)
    if condition is None or condition.status == "True":
        return ""
    return condition.message.removeprefix(f"Service {service.key.name}: ")


def _service_message(service: Service) -> str:
    status = service.status
    message = status.steersman.message if status is not None and status.steersman is not None else None
    # Without an endpoint, the state of the workload says why.
    return "" if message is None or "has no endpoint" in message else message
