"""Services whose address an edit has changed, and the workloads that templates have given the old one.

Guarantees
- A workload gets the new address: a process restarts, a container is replaced, because its variables cannot change.
- It does so only after the controller has seen the change, so it never gets the old address again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from steersman import aio
from steersman.client import Client, MergePatch
from steersman.objects import Key, Kind, Unstructured
from steersman.workloads import RESTARTED_AT, reached_services
from steersman.workloads.kinds import Service

#: Seconds between two reads of a Service, and the longest wait for its controller.
_LOOK, _WITHIN = 0.02, 10.0


def move(before: Unstructured, after: Unstructured) -> str:
    """Where a Service has moved, such as ``from port 8080 to 8081``; empty if its address stays."""
    old, new = _address(before), _address(after)
    if old == new or not (new[0] or new[1] != old[1]):
        return ""
    if old[0] and new[0] and old[0] != new[0]:
        return f"from port {old[0]} to {new[0]}"
    return f"to port {new[0]}" if old[0] != new[0] else f"to {new[1] or 'loopback'}"


def users(objects: Iterable[Unstructured], moved: Iterable[str]) -> list[Unstructured]:
    """The workloads whose templates name one of these Services."""
    kinds, names = {"ExecutableReplicaSet", "Container"}, frozenset(moved)
    return [each for each in objects if each.kind in kinds and reached_services(_texts(each.tree.get("spec"))) & names]


async def wait_until_moved(client: Client, names: Iterable[str]) -> None:
    """Wait until the controller has seen the new addresses. Without them, a workload waits for them itself."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_WITHIN):
            await _until_moved(client, names)


async def _until_moved(client: Client, names: Iterable[str]) -> None:
    for name in names:
        while not _is_current(await client.find(Service, Key("", name))):  # noqa: ASYNC110 - a read, as elsewhere
            await asyncio.sleep(_LOOK)


async def restart_processes(client: Client, workload: Unstructured) -> None:
    """Restart the processes of an ExecutableReplicaSet."""
    patch = MergePatch({"metadata": {"annotations": {RESTARTED_AT: aio.utc_now().isoformat()}}})
    await client.patch(Kind(workload.api_version, workload.kind), workload.key, patch)


def _is_current(service: Service | None) -> bool:
    return service is None or (service.status is not None and service.status.observed_generation == service.generation)


def _address(service: Unstructured) -> tuple[int, str]:
    return service.get("spec", "port", default=0) or 0, service.get("spec", "address", default="") or ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():  # type: ignore[misc] - a JSON tree
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:  # type: ignore[misc] - a JSON tree
            yield from _texts(each)
