"""The calls of the server to the operator's webhooks, over the simulated network.

Guarantees
- A call reaches a process that runs, and is lost with it if it dies; then the server's own timeout decides.
- Each call is a place where a fault can happen.
- The user sends a request again that failed because a webhook could not be called, as a person does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Unpack

from steersman.aio import Actor
from steersman.manager import Manager
from steersman.simulation.runs.faults import CrashBefore, LostReply, LostRequest, SlowServer, fault_name
from steersman.simulation.runs.network import Network
from steersman.simulation.runs.places import REVIEW
from steersman.transport import BufferedResponse, Response, SendOptions, TransportWrapper
from steersman.webhooks import Hook
from steersman.wire import HttpRequest

#: The processes of the operator that run now, with their managers.
Running = Callable[[], list[tuple[Actor, Manager]]]
#: How often a user tries, and after how many seconds again.
_ATTEMPTS: Final = 30
_PAUSE: Final = 2.0
_FAILED: Final = 500
#: What the server says when it cannot call a webhook.
_CALL_FAILED: Final = (b"failed calling webhook", b"conversion webhook for ")


class WebhookCalls:
    """Answers reviews in one of the operator's processes; it has what `answered_in_process` needs of a `WebhookServer`."""

    def __init__(self, hooks: tuple[Hook, ...], network: Network, running: Running) -> None:
        self.hooks = hooks
        self._network = network
        self._running = running
        #: The calls that are answered now; those of a dead process never end.
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def answer(self, path: str, body: bytes) -> bytes:
        """Answer one review; see `WebhookServer.answer`."""
        running = self._running()
        if not running:
            raise ConnectionRefusedError("no process of the operator runs")
        actor, manager = running[0]
        fault = self._network.decided(actor, self._network.places.named(actor.name, REVIEW, path.strip("/"), ""))
        if isinstance(fault, CrashBefore):
            self._network.on_crash(actor, fault_name(fault))
        if isinstance(fault, LostRequest):
            raise ConnectionResetError("the connection broke")
        delay = fault.seconds if isinstance(fault, SlowServer) else 0.0
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[bytes] = loop.create_future()

        async def work() -> None:
            try:
                answer = await manager.webhooks.answer(path, body)
            except Exception as error:  # noqa: BLE001 - the server judges it
                self._network.schedule(self._network.arrival(actor), _fail, outcome, error)
                return
            if isinstance(fault, LostReply):
                broken = ConnectionResetError("the connection broke")
                self._network.schedule(self._network.arrival(actor), _fail, outcome, broken)
            else:
                self._network.schedule(self._network.arrival(actor) + delay, _succeed, outcome, answer)

        def arrive() -> None:
            task = loop.create_task(work(), context=actor.context.copy())
            self._tasks[task] = None
            task.add_done_callback(self._tasks.pop)

        self._network.schedule(self._network.arrival(actor), arrive)
        return await outcome


class PatientTransport(TransportWrapper):
    """Sends a request again while the server cannot call a webhook."""

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        """See `Transport.send`."""
        for attempt in range(1, _ATTEMPTS + 1):
            response = await super().send(request, **options)
            if response.status != _FAILED:
                return response
            body = await response.read()
            if attempt == _ATTEMPTS or not any(words in body for words in _CALL_FAILED):
                return BufferedResponse(response.status, response.headers, body)
            await asyncio.sleep(_PAUSE)
        raise AssertionError("unreachable")


def _succeed(outcome: asyncio.Future[bytes], answer: bytes) -> None:
    if not outcome.done():
        outcome.set_result(answer)


def _fail(outcome: asyncio.Future[bytes], error: Exception) -> None:
    if not outcome.done():
        outcome.set_exception(error)
