"""The processes and containers that delay the end of a session."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.application import SERVICE
from steersman.objects import Object
from steersman.workloads.kinds import Container, Executable


def stopping_work(executables: Iterable[Executable], containers: Iterable[Container]) -> list[str]:
    """Those of these processes and containers that are stopping but still run: ``web (pid 12, 3 processes)``.

    A container whose runtime does not answer has the reason: ``db (container shop-db-1: podman did not answer ...)``.
    """
    phrases: list[str] = []
    for each in executables:
        status = each.status
        if status is not None and status.state == "Stopping" and status.pid:
            count = (status.steersman.descendants if status.steersman is not None else None) or 0
            phrases.append(f"{_service(each)} (pid {status.pid}{f', {count} processes' if count > 1 else ''})")
    for each in containers:
        status = each.status
        problem = status.steersman.problem if status is not None and status.steersman is not None else None
        if status is not None and (status.state == "Stopping" or (each.deleting and problem)):
            name = status.container_name or each.key.name
            phrases.append(f"{_service(each)} (container {name}{f': {problem}' if problem else ''})")
    return sorted(phrases)


def _service(obj: Object) -> str:
    return (obj.metadata.labels or {}).get(SERVICE) or obj.key.name
