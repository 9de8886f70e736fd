"""The calls of the server to the operator's webhooks, over the simulated network.

Guarantee: a call reaches a process that runs, and is lost with it if it dies; then the server's own timeout decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from steersman.aio import Actor
from steersman.manager import Manager
from steersman.simulation.runs.network import Network
from steersman.webhooks import Hook

#: The processes of the operator that run now, with their managers.
Running = Callable[[], list[tuple[Actor, Manager]]]


class WebhookCalls:
    """Answers reviews in one of the operator's processes; it has what `answered_in_process` needs of a `WebhookServer`."""

    def __init__(self, hooks: tuple[Hook, ...], network: Network, running: Running) -> None:
        self.hooks = hooks
        self._network = network
        self._running = running

    async def answer(self, path: str, body: bytes) -> bytes:
        """Answer one review; see `WebhookServer.answer`."""
        running = self._running()
        if not running:
            raise ConnectionRefusedError("no process of the operator runs")
        actor, manager = running[0]
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[bytes] = loop.create_future()

        async def work() -> None:
            try:
                answer = await manager.webhooks.answer(path, body)
            except Exception as error:  # noqa: BLE001 - the server judges it
                self._network.schedule(self._network.arrival(actor), _fail, outcome, error)
            else:
                self._network.schedule(self._network.arrival(actor), _succeed, outcome, answer)

        def arrive() -> None:
            loop.create_task(work(), context=actor.context.copy())  # noqa: RUF006 - the outcome holds it

        self._network.schedule(self._network.arrival(actor), arrive)
        return await outcome


def _succeed(outcome: asyncio.Future[bytes], answer: bytes) -> None:
    if not outcome.done():
        outcome.set_result(answer)


def _fail(outcome: asyncio.Future[bytes], error: Exception) -> None:
    if not outcome.done():
        outcome.set_exception(error)
