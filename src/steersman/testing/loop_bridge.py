"""Reaches a server on another event loop: each test has its own loop, a shared server has another.

Guarantees: requests arrive on the server's loop and responses on the caller's. Cancelling the caller cancels the
server's work. Context variables are passed along, so that a server knows the caller.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Unpack

from multidict import CIMultiDictProxy

from steersman.aio import Closable, call_on
from steersman.errors import DeadlineExceeded
from steersman.testing.background_context import BackgroundContext
from steersman.transport import (
    MAX_BODY,
    Handler,
    InProcessResponse,
    InProcessTransport,
    Response,
    SendOptions,
    ServerResponse,
    Transport,
    TransportWrapper,
)
from steersman.wire import HttpRequest, describe_request


class LoopBridgeTransport(TransportWrapper):
    """Sends through a transport that lives on another loop."""

    def __init__(self, inner: InProcessTransport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(inner)
        self._inner: InProcessTransport = inner
        self._loop = loop

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        if options.get("stream"):
            return _Stream(await call_on(self._loop, self._inner.send(request, **options)), self._loop, request)
        timeout, before_send = options.get("timeout"), options.get("before_send")
        # one crossing, and one task, for the whole response
        return await call_on(self._loop, self._inner.answer(request, timeout=timeout, before_send=before_send))

    async def close(self) -> None:
        """Close the other transport."""
        await call_on(self._loop, self._inner.close())


class _Stream(Closable):
    """A streamed response; its chunks are queued here as they come."""

    def __init__(self, inner: InProcessResponse, loop: asyncio.AbstractEventLoop, request: HttpRequest) -> None:
        self._inner = inner
        self._loop = loop
        self._request = request
        self._here = asyncio.get_running_loop()
        self._pieces: deque[bytes | BaseException] = deque()
        self._forwarded = False
        #: Resolved by the next piece.
        self._arrival: asyncio.Future[None] | None = None

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        return self._inner.headers

    async def read(self, limit: int = MAX_BODY) -> bytes:
        return await call_on(self._loop, self._inner.read(limit))

    async def chunks(self, *, idle_timeout: float | None = None) -> AsyncIterator[bytes]:
        if not self._forwarded:
            self._forwarded = True
            self._loop.call_soon_threadsafe(self._inner.forward, self._tell)
        while True:
            if not self._pieces and not await self._arrived(idle_timeout):
                await self.close()
                raise DeadlineExceeded(f"{describe_request(self._request)}: no data for {idle_timeout:g} s", sent=True)
            piece = self._pieces.popleft()
            if isinstance(piece, BaseException):
                raise piece
            if not piece:
                return
            yield piece

    async def _arrived(self, idle_timeout: float | None) -> bool:
        """Wait for a piece; returns whether one came in time."""
        self._arrival = self._here.create_future()
        timer = None if idle_timeout is None else self._here.call_later(idle_timeout, self._wake)
        try:
            await self._arrival
        finally:
            self._arrival = None
            if timer is not None:
                timer.cancel()
        return bool(self._pieces)

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _tell(self, piece: bytes | BaseException) -> None:
        """Take a piece, on the other loop."""
        with suppress(RuntimeError):  # the receiving loop is closed
            self._here.call_soon_threadsafe(self._take, piece)

    def _take(self, piece: bytes | BaseException) -> None:
        self._pieces.append(piece)
        self._wake()

    async def close(self) -> None:
        await call_on(self._loop, self._inner.close())


def handler_over(send: Callable[[], Coroutine[Any, Any, Transport]]) -> Handler:
    """A server that forwards every request to the transport that ``send`` returns."""

    async def handle(request: HttpRequest) -> ServerResponse:
        transport = await send()
        response = await transport.send(request, stream=True)
        return ServerResponse(status=response.status, headers=tuple(response.headers.items()), body=_body(response))

    return handle


async def _body(response: Response) -> AsyncIterator[bytes]:
    async with response:
        async for piece in response.chunks():
            yield piece


class LateTransport:
    """A transport opened by the first request on a loop, once per loop, and closed with the loop."""

    def __init__(self, opened: Callable[[], AbstractAsyncContextManager[Transport]], *, name: str) -> None:
        self._opened = opened
        self._name = name
        self._here: dict[asyncio.AbstractEventLoop, BackgroundContext[Transport]] = {}

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        """Send a request and wait for the head of its response; see `Transport.send`."""
        transport = await self.ready()
        return await transport.send(request, **options)

    async def ready(self) -> Transport:
        """Open it on this loop, if needed."""
        loop = asyncio.get_running_loop()
        if (context := self._here.get(loop)) is None:
            context = self._here[loop] = BackgroundContext(self._opened, name=self._name)
        try:
            return await context.start()
        except BaseException:
            # the next request retries, and reports its own error
            self._here.pop(loop, None)
            raise

    async def close(self) -> None:
        """Close what this loop opened."""
        if (context := self._here.pop(asyncio.get_running_loop(), None)) is not None:
            await context.stop()

    def end(self) -> None:
        """Close everything, from outside of any loop."""
        for context in self._here.values():
            context.end()
        self._here.clear()


@asynccontextmanager
async def closing(transport: Transport) -> AsyncGenerator[Transport]:
    """A transport for one block."""
    try:
        yield transport
    finally:
        await transport.close()
