"""``steersman run`` for a service that is a container: runs one more container of it until it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec

from steersman import aio
from steersman.aio import Supervisor
from steersman.application import SERVICE, Application, ServiceDefinition, application_objects
from steersman.cli.console import pass_through, tell
from steersman.cli.failure import Failure
from steersman.cli.up.outcomes import blocking
from steersman.client import Client
from steersman.objects import ObjectMeta
from steersman.projects import apply_objects
from steersman.ui import CONDITIONS, Board
from steersman.workloads.kinds import Container, ContainerNetwork, ContainerStatus, ContainerVolume

_LOOK = 0.05
_SOURCES: Final[tuple[Literal["stdout", "stderr"], ...]] = ("stdout", "stderr")


async def run_container(
    client: Client, application: Application, name: str, words: Sequence[str], *, board: Board
) -> int:
    """Run a container with the image, environment, networks and volumes of a service; returns its exit code.

    ``words`` replace the command. The container gets no input, publishes no ports, and is removed at the end.
    """
    container, needed = _objects(application, name, words, board.project)
    # The session has none of these if no service that it runs uses them.
    await apply_objects(client, needed, project=board.project, prune=False)
    depends_on = [(each.service, CONDITIONS[each.condition]) for each in application.services[name].depends_on]
    made = await client.create(container)
    try:
        async with Supervisor() as tasks:
            streams = [tasks.start(_copy(client, made.key.name, source), name=f"run: {source}") for source in _SOURCES]
            status = await _until_ended(
                client, made, name, lambda: blocking(depends_on, board.rows, application.services)
            )
            await asyncio.gather(*streams)
    finally:
        await client.delete(Container, made.key, missing_ok=True)
    if status.state == "FailedToStart":
        raise Failure(f"{name} cannot start: {status.message}")
    return status.exit_code if status.exit_code is not None else 1


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
        restart=type(definition.restart)(),
        command=tuple(words) or definition.command,
    )
    alone = msgspec.structs.replace(application, services={**application.services, name: once})
    objects = application_objects(alone, project=project)
    found = next(
        each for each in objects if isinstance(each, Container) and (each.metadata.labels or {}).get(SERVICE) == name
    )
    used = {each.name for each in found.spec.networks or ()}
    sources = {each.source for each in found.spec.volume_mounts or ()}
    needed = [
        each
        for each in objects
        if (isinstance(each, ContainerNetwork) and each.key.name in used)
        or (isinstance(each, ContainerVolume) and each.spec.name in sources)
    ]
    if found.spec.steersman is not None:
        found.spec.steersman.health_probes = None
    for network in found.spec.networks or ():
        # Other containers must not reach it by the name of the service.
        network.aliases = None
    suffix = f"run-{aio.name_suffix(5)}"
    found.spec.container_name = f"{project}-{name}-{suffix}"
    return Container(metadata=ObjectMeta(name=f"{found.key.name}-{suffix}"), spec=found.spec), needed


async def _until_ended(client: Client, made: Container, name: str, problem: Callable[[], str]) -> ContainerStatus:
    said = ""
    while True:
        found = await client.find(Container, made.key)
        if found is None:
            raise Failure(f"{name}: the session ended before the container did")
        status = found.status or ContainerStatus()
        if status.state in {"Exited", "FailedToStart"}:
            return status
        waiting = (status.steersman.waiting_for if status.steersman is not None else "") or ""
        news = f"waits for {waiting}" if waiting else "is building" if status.state == "Building" else ""
        if news and news != said:
            tell(f"=> {name} {news}")
            said = news
        if waiting and (reason := problem()):
            raise Failure(f"{name} cannot start: {reason}")
        await asyncio.sleep(_LOOK)


async def _copy(client: Client, name: str, source: Literal["stdout", "stderr"]) -> None:
    gvr = Container.gvr()
    path = f"/apis/{gvr.group}/{gvr.version}/{gvr.resource}/{name}/log?source={source}&follow=true"
    async with client.stream(path) as pieces:
        async for piece in pieces:
            pass_through(piece, source)
