"""``steersman run`` for a service that is a container: runs one more container of it until it ends.

The control plane creates the container. This program starts it, so that it has the streams or the terminal of this program from
its first byte to its last.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from steersman import aio
from steersman.application import SERVICE, Application, ServiceDefinition, application_objects
from steersman.cli.console import tell, tell_failure
from steersman.cli.failure import Failure
from steersman.cli.up.outcomes import blocking
from steersman.client import Client
from steersman.errors import ApiError
from steersman.objects import ObjectMeta
from steersman.projects import apply_objects
from steersman.ui import CONDITIONS, Board
from steersman.workloads import start_time
from steersman.workloads.kinds import (
    Container,
    ContainerAdditions,
    ContainerAttach,
    ContainerNetwork,
    ContainerStatus,
    ContainerVolume,
)

#: Starts a container, by its id, with the streams of this program; returns its exit code.
Attach = Callable[[str], Coroutine[Any, Any, int]]
_LOOK = 0.05
#: Seconds for which the command waits for a container runtime that does not answer.
_SILENCE = 60.0


async def run_container(
    client: Client,
    application: Application,
    name: str,
    words: Sequence[str],
    *,
    board: Board,
    terminal: bool,
    attach: Attach,
) -> int:
    """Run a container with the image, environment, networks and volumes of a service; returns its exit code.

    ``words`` replace the command. The container publishes no ports, and is removed at the end.
    """
    container, needed = _objects(application, name, words, board.project)
    added = container.spec.steersman = container.spec.steersman or ContainerAdditions()
    added.attach = ContainerAttach(pid=os.getpid(), start_ticks=start_time(os.getpid()), terminal=terminal)
    # The session has none of these if no service that it runs uses them.
    await apply_objects(client, needed, project=board.project, prune=False)
    depends_on = [
        (each.service, CONDITIONS[each.condition]) for each in application.services[name].depends_on if each.required
    ]
    created = await client.create(container)
    try:
        status = await _until_created(
            client, created, name, lambda: blocking(depends_on, board.rows, application.services)
        )
        observed = status.steersman
        if observed is not None and observed.start_code is not None:
            tell_failure(f"{name}: {status.message}")
            return observed.start_code
        if status.state == "FailedToStart":
            raise Failure(f"{name} cannot start: {status.message}")
        code = await attach(status.container_id or "")
        if code and await _is_removed(client, created):
            raise Failure(f"{name}: the session ended before the container did")
        return code
    finally:
        # If the session has ended, nothing is left to delete.
        with suppress(ApiError):
            await client.delete(Container, created.key, missing_ok=True)


def _objects(
    application: Application, name: str, words: Sequence[str], project: str
) -> tuple[Container, list[ContainerNetwork | ContainerVolume]]:
    """The container, and the networks and volumes that it uses."""
    definition = application.services[name]
    once: ServiceDefinition = msgspec.structs.replace(
        definition,
        scale=1,
        container_name=None,
        ports=(),
        # This program decides on the terminal and the input.
        tty=False,
        stdin_open=False,
        restart=type(definition.restart)(),
        command=tuple(words) or definition.command,
    )
    alone = msgspec.structs.replace(application, services={**application.services, name: once})
    objects = application_objects(alone, project=project)
    declared = next(
        obj for obj in objects if isinstance(obj, Container) and (obj.metadata.labels or {}).get(SERVICE) == name
    )
    used = {connection.name for connection in declared.spec.networks or ()}
    sources = {mount.source for mount in declared.spec.volume_mounts or ()}
    needed = [
        obj
        for obj in objects
        if (isinstance(obj, ContainerNetwork) and obj.key.name in used)
        or (isinstance(obj, ContainerVolume) and obj.spec.name in sources)
    ]
    if declared.spec.steersman is not None:
        declared.spec.steersman.health_probes = None
    for network in declared.spec.networks or ():
        # Other containers must not reach it by the name of the service.
        network.aliases = None
    suffix = f"run-{aio.name_suffix(5)}"
    declared.spec.container_name = f"{project}-{name}-{suffix}"
    return Container(metadata=ObjectMeta(name=f"{declared.key.name}-{suffix}"), spec=declared.spec), needed


async def _until_created(client: Client, created: Container, name: str, problem: Callable[[], str]) -> ContainerStatus:
    reported, silent, now = "", None, asyncio.get_running_loop().time
    while True:
        current = await client.find(Container, created.key)
        if current is None:
            raise Failure(f"{name}: the session ended before the container did")
        status = current.status or ContainerStatus()
        observed = status.steersman
        if status.state == "FailedToStart" or (observed is not None and observed.attachable):
            return status
        waiting = (observed.waiting_for if observed is not None else "") or ""
        # The runtime may stop answering before the start of the container, or during it.
        is_silent = status.state == "RuntimeUnhealthy" or (status.state == "Starting" and bool(status.message))
        news = f"waits for {waiting}" if waiting else "is building" if status.state == "Building" else ""
        news = f"waits: {status.message}" if is_silent else news
        if news and news != reported:
            tell(f"=> {name} {news}")
            reported = news
        if waiting and (reason := problem()):
            raise Failure(f"{name} cannot start: {reason}")
        silent = (silent or now()) if is_silent else None
        if silent and now() - silent > _SILENCE:
            raise Failure(f"{name} cannot start: {status.message}")
        await asyncio.sleep(_LOOK)


async def _is_removed(client: Client, created: Container) -> bool:
    """Whether the session has ended, or is about to end the container."""
    try:
        current = await client.find(Container, created.key)
    except ApiError:
        return True
    return current is None or current.deleting
