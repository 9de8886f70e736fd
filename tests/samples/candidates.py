"""Managers that compete for one Lease, and a way to cut one of them off from the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Unpack

from steersman import Client, LeaderElection, Manager
from steersman.aio import Supervisor
from steersman.errors import ConnectionFailed
from steersman.transport import Response, SendOptions, TransportWrapper
from steersman.wire import HttpRequest


class Cut(TransportWrapper):
    """A connection to the server that can break."""

    broken = False

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        if self.broken:
            raise ConnectionFailed("the line is cut")
        return await self._inner.send(request, **options)


class Candidate:
    """A manager that runs, and the line to its server."""

    def __init__(self, manager: Manager, line: list[Cut]) -> None:
        self.manager = manager
        self._line = line

    def cut(self) -> None:
        """Break its connections, as a failing network does."""
        for each in self._line:
            each.broken = True


def short_lease(namespace: str) -> LeaderElection:
    """A Lease of seconds."""
    return LeaderElection("candidates", namespace=namespace, lease=4.0, renew=2.5, retry=0.3)


@asynccontextmanager
async def candidate(manager: Manager, client: Client) -> AsyncIterator[Candidate]:
    """Run a manager for a block."""
    line: list[Cut] = []

    def wrap(inner):
        line.append(Cut(inner))
        return line[-1]

    async with Supervisor() as tasks:
        task = tasks.start(manager.run(client.with_transport(wrap), signals=False), name="candidate")
        try:
            yield Candidate(manager, line)
        finally:
            manager.stop()
            await asyncio.wait((task,))
