"""What a workload still waits for before it starts, in words.

A dependency is met by a condition of the other object, so all kinds of workloads report it in the same way: ``Started``,
``Healthy`` or ``Completed`` in ``status.conditions``. A Service has started when it is ready.

A workload whose service has no address of its own, because another program holds the port, meets no dependency: its
dependents would talk to that program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from steersman.objects import Object, find_condition
from steersman.workloads.kinds import (
    Container,
    ContainerStatus,
    Dependency,
    Executable,
    ExecutableReplicaSet,
    ExecutableStatus,
    Service,
    is_stopped,
)
from steersman.workloads.serving import produced, unserved

#: Finds an object by its kind and name; None if it does not exist.
Find = Callable[[str, str], Object | None]
#: The dependencies of an object, by its kind and name.
DependenciesOf = Callable[[str, str], Iterable[Dependency]]

#: The reason of the condition ``Healthy`` of a set with a replica whose health check has failed too often.
UNHEALTHY: Final = "Unhealthy"
_WORDS = {"Started": "start", "Healthy": "become healthy", "Completed": "complete"}


def _find_nothing(_kind: str, _name: str) -> None:
    """Find no object."""


def unmet(dependency: Dependency, obj: Object | None, find: Find = _find_nothing) -> str:
    """What is missing, such as ``Executable db to become healthy (Running)``; empty if the dependency is met.

    ``find`` finds the services of the workload.
    """
    subject = f"{dependency.kind} {dependency.name}"
    if obj is None:
        return f"{subject} to be created"
    if obj.deleting:
        return f"{subject} to be created again: it is being deleted"
    status = getattr(obj, "status", None)
    if isinstance(obj, Service):
        ready = obj.status is not None and obj.status.state == "Ready"
        return "" if ready else f"{subject} to be ready: it has no endpoint"
    condition = find_condition(status.conditions if status is not None else None, dependency.condition)
    if condition is not None and condition.status == "True":
        problem = unserved_by(obj, find) if dependency.condition != "Completed" else ""
        return f"{subject} to be served: {problem}" if problem else ""
    if dependency.optional and has_failed(obj):
        return ""
    why = condition.message if condition is not None else ""
    return f"{subject} to {_WORDS[dependency.condition]}" + (f": {why}" if why else "")


def has_failed(workload: Object) -> bool:
    """Whether a workload is unhealthy, or has ended and is not restarted. A stopped one has not failed."""
    match workload:
        case ExecutableReplicaSet(status=status, spec=spec) if status is not None and spec.replicas:
            observed = status.steersman
            is_final = observed is not None and observed.next_restart is None and observed.message is None
            has_ended = is_final and status.finished_replicas + status.failed_replicas >= spec.replicas
            health = find_condition(status.conditions, "Healthy")
            return has_ended or (health is not None and health.reason == UNHEALTHY)
        case Executable(status=status) if status is not None:
            return status.state in {"Finished", "FailedToStart", "Unknown"} or is_unhealthy(status)
        case Container(status=status, spec=spec) if status is not None:
            # The runtime may restart one that has ended.
            has_ended = status.state == "Exited" and not spec.restart_policy and not (spec.stop or is_stopped(workload))
            return has_ended or status.state == "FailedToStart" or is_unhealthy(status)
        case _:
            return False


def is_unhealthy(status: ExecutableStatus | ContainerStatus) -> bool:
    """Whether the health check of a program that runs has failed as often as it may."""
    return status.state == "Running" and status.health_status == "Unhealthy"


def unserved_by(workload: Object, find: Find) -> str:
    """Why clients must not use an address of a workload; empty if they can. A service that does not exist has none."""
    services = (find("Service", name) for name in produced(workload))
    return next((why for service in services if isinstance(service, Service) and (why := unserved(service))), "")


def needs(obj: Object) -> list[Dependency]:
    """The dependencies of a workload; those of a set are in its template."""
    match obj:
        case ExecutableReplicaSet():
            added = obj.spec.template.spec.steersman
        case Executable() | Container():
            added = obj.spec.steersman
        case _:
            added = None
    return (added.depends_on if added is not None else None) or []


def waiting_for(dependencies: Sequence[Dependency], find: Find) -> str:
    """What a workload waits for, with a "; " between dependencies and nowhere else; empty if every dependency is met."""
    missing = (unmet(dependency, find(dependency.kind, dependency.name), find) for dependency in dependencies)
    return "; ".join(reason.replace("; ", ", ") for reason in missing if reason)


def cycle(kind: str, name: str, dependencies_of: DependenciesOf) -> list[str]:
    """The names on a cycle of dependencies through an object, which begins and ends with it; empty if there is none."""
    start = (kind, name)
    paths = [[start]]
    seen: set[tuple[str, str]] = set()
    while paths:
        path = paths.pop()
        for dependency in dependencies_of(*path[-1]):
            following = (dependency.kind, dependency.name)
            if following == start:
                return [f"{each} {its_name}" for each, its_name in [*path, start]]
            if following not in seen:
                seen.add(following)
                paths.append([*path, following])
    return []
