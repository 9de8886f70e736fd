"""The processes and containers that delay the end of a session."""

from __future__ import annotations

from steersman.application import PROJECT, SERVICE
from steersman.client import Client
from steersman.objects import Object
from steersman.workloads.kinds import Container, Executable


async def stopping_work(client: Client, *, project: str) -> list[str]:
    """The processes and containers that are stopping but still run: ``web (pid 12, 3 processes)``."""
    labels = {PROJECT: project}
    phrases: list[str] = []
    for each in await client.list(Executable, labels=labels):
        status = each.status
        if status is not None and status.state == "Stopping" and status.pid:
            count = (status.steersman.descendants if status.steersman is not None else None) or 0
            phrases.append(f"{_service(each)} (pid {status.pid}{f', {count} processes' if count > 1 else ''})")
    phrases += [
        f"{_service(each)} (container {each.status.container_name or each.key.name})"
        for each in await client.list(Container, labels=labels)
        if each.status is not None and each.status.state == "Stopping"
    ]
    return sorted(phrases)


def _service(obj: Object) -> str:
    return (obj.metadata.labels or {}).get(SERVICE) or obj.key.name
