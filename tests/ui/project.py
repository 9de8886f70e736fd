"""A project on a control plane with simulated parts, for tests of the views."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from steersman import aio
from steersman.application import DEPENDS_ON, ORDER, PROJECT, SERVICE
from steersman.client import Client
from steersman.errors import ConnectionFailed
from steersman.objects import ObjectMeta
from steersman.transport import Response, TransportWrapper
from steersman.ui import Board, Row
from steersman.wire import HttpRequest
from steersman.workloads import DeveloperControlPlane, simulated_parts
from steersman.workloads.kinds import (
    Container,
    ContainerSpec,
    Dependency,
    ExecutableReplicaSet,
    ExecutableReplicaSetSpec,
    ExecutableSpec,
    ExecutableTemplate,
    ProcessAdditions,
    ReplicaSetAdditions,
    RestartPolicy,
    Service,
    ServiceSpec,
)


class Project:
    """The project "shop"."""

    def __init__(self, plane: DeveloperControlPlane) -> None:
        self.plane = plane
        self.order = 0

    @property
    def client(self) -> Client:
        return self.plane.client

    @property
    def processes(self) -> Any:
        """The simulated processes."""
        assert self.plane.parts is not None
        return self.plane.parts.processes

    def metadata(self, name: str, service: str, depends_on: tuple[tuple[str, str], ...] = ()) -> ObjectMeta:
        needs = [{"service": each, "condition": condition} for each, condition in depends_on]
        self.order += 1
        return ObjectMeta(
            name=name,
            labels={PROJECT: "shop", SERVICE: service},
            annotations={ORDER: str(self.order), DEPENDS_ON: json.dumps(needs)},
        )

    async def process(
        self,
        name: str,
        *,
        replicas: int = 1,
        depends_on: tuple[tuple[str, str], ...] = (),
        restart: RestartPolicy | None = None,
        **spec: Any,
    ) -> None:
        """Create a service that is a process."""
        needs = [
            Dependency(kind="ExecutableReplicaSet", name=each, condition=_condition(condition))
            for each, condition in depends_on
        ]
        program = ExecutableSpec(
            **{"executable_path": f"/bin/{name}", "steersman": ProcessAdditions(depends_on=needs), **spec}
        )
        template = ExecutableTemplate(labels={PROJECT: "shop", SERVICE: name}, spec=program)
        await self.client.create(
            ExecutableReplicaSet(
                metadata=self.metadata(name, name, depends_on),
                spec=ExecutableReplicaSetSpec(
                    replicas=replicas, template=template, steersman=ReplicaSetAdditions(restart=restart)
                ),
            )
        )

    async def container(self, name: str, service: str, **spec: Any) -> None:
        """Create a container of a service."""
        await self.client.create(
            Container(metadata=self.metadata(name, service), spec=ContainerSpec(image="app:1", **spec))
        )

    async def port(self, name: str, service: str, **spec: Any) -> None:
        """Create a port of a service."""
        await self.client.create(Service(metadata=self.metadata(name, service), spec=ServiceSpec(**spec)))

    async def started(self, program: str, count: int = 1) -> Any:
        """The latest of ``count`` processes of a service."""
        async with asyncio.timeout(60):
            while True:
                found = [each for each in self.processes.started if each.launch.program == f"/bin/{program}"]
                if len(found) >= count:
                    return found[-1]
                await asyncio.sleep(0.005)


def print_line(process: Any, text: str, *, stream: str = "stdout") -> None:
    """Print a line as a process does."""
    print_lines(process, [f"{aio.utc_now():%Y-%m-%dT%H:%M:%S.%fZ} {text}\n"], stream=stream)


def print_lines(process: Any, lines: Iterable[str], *, stream: str = "stdout") -> None:
    """Append lines with their times to the output of a process."""
    with Path(getattr(process.launch, stream)).open("a") as file:
        file.writelines(lines)


async def until(board: Board, name: str, holds: Callable[[Row], object]) -> Row:
    """Wait until a row fulfills a condition."""
    try:
        async with asyncio.timeout(60):
            while True:
                version = board.version
                for row in board.rows:
                    if row.name == name and holds(row):
                        return row
                await board.wait_changed(version)
    except TimeoutError:
        raise AssertionError(f"{name}: {board.rows}") from None


@asynccontextmanager
async def shop(folder: Path) -> AsyncIterator[Project]:
    """Run the project for a block."""
    async with DeveloperControlPlane(folder=folder / "session", parts=simulated_parts) as plane:
        yield Project(plane)


class Line(TransportWrapper):
    """A connection that can be cut."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.is_cut = False
        self._open: list[Response] = []

    async def send(self, request: HttpRequest, **options: Any) -> Response:
        if self.is_cut:
            raise ConnectionFailed("the line is cut", sent=False)
        found = await super().send(request, **options)
        if options.get("stream"):
            self._open.append(found)
        return found

    async def cut(self) -> None:
        """End all streams, and fail all requests from now on."""
        self.is_cut = True
        for each in self._open:
            await each.close()
        self._open.clear()


def _condition(words: str) -> Any:
    return {"service_healthy": "Healthy", "service_completed_successfully": "Completed"}.get(words, "Started")
