"""Reaches a server on another event loop: each test has its own loop, a shared server has another.

Guarantees: requests arrive on the server's loop and responses on the caller's. Cancelling the caller cancels the
server's work. Context variables are passed along, so that a server knows the caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, TypeVar, Unpack

from multidict import CIMultiDictProxy

from steersman.aio import Closable
from steersman.errors import ApiError, DeadlineExceeded
from steersman.testing.background_context import BackgroundContext
from steersman.transport import (
    MAX_BODY,
    BufferedResponse,
    Handler,
    Response,
    SendOptions,
    ServerResponse,
    Transport,
    TransportWrapper,
)
from steersman.wire import HttpRequest, describe_request

R = TypeVar("R")


async def call_on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, R]) -> R:
    """Run ``work`` on a loop in another thread, or here if it is the caller's own."""
    if loop is asyncio.get_running_loop():
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


class LoopBridgeTransport(TransportWrapper):
    """Sends through a transport that lives on another loop."""

    def __init__(self, inner: Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(inner)
        self._loop = loop

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:

        async def whole() -> BufferedResponse:
            # one crossing for the whole response
            async with await self._inner.send(request, **options) as response:
                return BufferedResponse(response.status, response.headers, await response.read())

        if not options.get("stream"):
            return await call_on(self._loop, whole())
        return _Stream(await call_on(self._loop, self._inner.send(request, **options)), self._loop, request)

    async def close(self) -> None:
        """Close the other transport."""
        await call_on(self._loop, self._inner.close())


class _Stream(Closable):
    """A streamed response; its chunks are queued here as they come."""

    def __init__(self, inner: Response, loop: asyncio.AbstractEventLoop, request: HttpRequest) -> None:
        self._inner = inner
        self._loop = loop
        self._request = request
        self._here = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[bytes | BaseException] = asyncio.Queue()
        self._pump: Future[None] | None = None

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        return self._inner.headers

    async def read(self, limit: int = MAX_BODY) -> bytes:
        return await call_on(self._loop, self._inner.read(limit))

    async def chunks(self, *, idle_timeout: float | None = None) -> AsyncIterator[bytes]:
        if self._pump is None:
            self._pump = asyncio.run_coroutine_threadsafe(self._hand_over(), self._loop)
        while True:
            try:
                async with asyncio.timeout(idle_timeout):
                    piece = await self._pieces.get()
            except TimeoutError:
                await self.close()
                raise DeadlineExceeded(
                    f"{describe_request(self._request)}: no data for {idle_timeout:g} s", sent=True
                ) from None
            if isinstance(piece, BaseException):
                raise piece
            if not piece:
                return
            yield piece

    async def _hand_over(self) -> None:
        """Forward chunks; runs on the other loop."""
        last: bytes | BaseException = b""
        try:
            async for piece in self._inner.chunks():
                self._tell(piece)
        except ApiError as error:
            last = error
        finally:
            self._tell(last)

    def _tell(self, piece: bytes | BaseException) -> None:
        with suppress(RuntimeError):  # the receiving loop is closed
            self._here.call_soon_threadsafe(self._pieces.put_nowait, piece)

    async def close(self) -> None:
        if self._pump is not None:
            self._pump.cancel()
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
