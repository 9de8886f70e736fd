"""Plays requests on a server, judges the answers, and makes a failure small."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from time import perf_counter, process_time  # noqa: TID251 - how long an answer takes is what is looked at
from typing import Any

from hostile.judging import Exchange, Judge, LoggedHandler, curl
from hostile.requests import Requests

from samples.eventually import eventually
from samples.site import Site
from steersman.apiserver import ApiServer, Limits, MemoryStorage
from steersman.apiserver.bootstrap import create_objects
from steersman.apiserver.chain import Authentication, Rbac, Reviews, chain
from steersman.transport import Handler
from steersman.wire import HttpRequest

#: Sends a request: status, headers and body; of a stream what comes first.
Send = Callable[[HttpRequest], Awaitable[tuple[int, tuple[tuple[str, str], ...], bytes]]]
#: How many requests are kept to be played again.
KEPT = 400


def new_server(storage: Any, audit: Callable[[dict[str, Any]], None] | None = None) -> ApiServer:
    """A server as `steersman serve` runs it, one that does not wait for what never comes."""
    rbac, authentication = Rbac(storage), Authentication()
    return ApiServer(
        resources=[Site],
        storage=storage,
        definitions=Reviews(rbac, authentication).definitions(),
        chain=chain(authorizer=rbac, authentication=authentication, audit=audit or (lambda event: None)),
        limits=Limits(freshness=0.02),
    )


@asynccontextmanager
async def running_server() -> AsyncGenerator[ApiServer]:
    """A server in this process with some namespaces."""
    async with MemoryStorage() as storage, new_server(storage) as server:
        await furnish(server)
        yield server


async def furnish(server: ApiServer) -> None:
    """Create what requests count on."""
    await create_objects(server.registry, server.storage, policy=True)
    for name in ("hostile", "other"):
        body = b'{"metadata":{"name":"%s"}}' % name.encode()
        headers = (("Content-Type", "application/json"),)
        await server.handler(HttpRequest("POST", "/api/v1/namespaces", (), headers, body))


async def sweep(server: ApiServer) -> None:
    """Take away everything that requests have made, its history too."""
    for record in (await server.storage.list("")).records:
        await server.storage.delete(record.key, expect=record.modified)
    await furnish(server)
    await server.forget()
    # The feed follows the store again.
    await eventually(lambda: server.storage._watches)  # type: ignore[attr-defined]
    # Definitions that were being deleted have nothing left to wait for.
    await eventually(lambda: not server.custom_resources._ending)
    # What is collected may have an end of its own, which the loop runs.
    gc.collect()
    for _ in range(3):
        await asyncio.sleep(0)


def in_process(handler: Handler) -> Send:
    """Sends to a server that is a function."""

    async def send(request: HttpRequest) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
        reply = await handler(request)
        if isinstance(reply.body, bytes):
            return reply.status, tuple(reply.headers), reply.body
        first = b""
        async with aclosing(aiter(reply.body)) as pieces:  # type: ignore[type-var]
            try:
                async with asyncio.timeout(0.003):
                    async for piece in pieces:
                        first = bytes(piece)
                        break
            except TimeoutError:
                pass
        return reply.status, (*reply.headers, ("Transfer-Encoding", "stream")), first

    return send


class Player:
    """Plays requests: ``await player.play(requests, 1000)`` is what went wrong, each once."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.judge = Judge()
        self.last: list[HttpRequest] = []
        #: What went wrong: what, the request's number, and the request.
        self.findings: dict[str, tuple[int, HttpRequest, list[HttpRequest]]] = {}

    async def play(self, requests: Requests, count: int) -> None:
        with logged() as log:
            for number in range(count):
                request = requests.make()
                self.last = [*self.last[-KEPT:], request] if len(self.last) > 2 * KEPT else self.last
                self.last.append(request)
                exchange = await exchanged(self._send, request, log)
                wrong = self.judge.look(exchange)
                if wrong:
                    self.findings.setdefault(_summary(wrong), (number, request, self.last[-KEPT:]))
                requests.learn(request, exchange.status, exchange.body)

    def forget(self) -> None:
        """Drop the requests that are kept to be played again."""
        self.last = []

    def told(self) -> str:
        """All findings, with requests to send again."""
        return "\n\n".join(
            f"request {number}: {wrong}\n  {curl(request)}" for wrong, (number, request, _) in self.findings.items()
        )


async def exchanged(send: Send, request: HttpRequest, log: LoggedHandler) -> Exchange:
    """Send a request and note what comes of it."""
    log.take()
    begin, used = perf_counter(), process_time()
    try:
        status, headers, body = await send(request)
    except Exception as error:
        logging.getLogger("hostile").exception("the server threw %s", type(error).__name__)
        status, headers, body = 0, (), b""
    seconds, in_all = process_time() - used, perf_counter() - begin
    return Exchange(request, status, headers, body, seconds, in_all, log.take())


class logged:  # noqa: N801 - reads as a verb: ``with logged() as log``
    """Collects the log for as long as a block lasts."""

    def __enter__(self) -> LoggedHandler:
        self._handler = LoggedHandler()
        logging.getLogger().addHandler(self._handler)
        return self._handler

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self._handler)


def _summary(wrong: str) -> str:
    """What is the same of the same mistake: of a trace its end."""
    lines = wrong.splitlines()
    return wrong[:400] if len(lines) < 6 else "\n".join([lines[0][:120], *lines[-8:]])[:1500]


async def shrunk(requests: Sequence[HttpRequest], wrong: Callable[[str], bool]) -> list[HttpRequest]:
    """The fewest of some requests, the last among them, that still end wrongly on a new server."""

    async def fails(tried: Sequence[HttpRequest]) -> bool:
        async with running_server() as server:
            send, judge = in_process(server.handler), Judge()
            with logged() as log:
                for request in tried[:-1]:
                    await exchanged(send, request, log)
                return wrong(judge.look(await exchanged(send, tried[-1], log)))

    length = 1
    while length < len(requests) and not await fails(requests[-length:]):
        length *= 2
    kept = list(requests[-length:])
    step = len(kept) // 2
    while step:
        at = 0
        while at + step < len(kept):
            without = kept[:at] + kept[at + step :]
            if await fails(without):
                kept = without
            else:
                at += step
        step //= 2
    return kept
