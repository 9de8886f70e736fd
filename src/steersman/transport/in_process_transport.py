"""A server in the same process: the same bytes, no socket.

Guarantees, in addition to those of every transport
- Only bytes cross. A body is split into pieces of at most 64 KiB, of which a few are buffered; a server that is faster
  than its client waits.
- The server runs in its own task: it is cancelled when the client closes or disconnects, and the client fails when the
  server does.
- Only the running loop's time is used, so exchanges are exact in virtual time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Self

from multidict import CIMultiDict, CIMultiDictProxy

from steersman.aio import Channel, ChannelClosed, Closable, Supervisor
from steersman.errors import ConnectionFailed, DeadlineExceeded, ProtocolError
from steersman.transport.peer import set_peer
from steersman.transport.protocol import DEFAULT_TIMEOUT, MAX_BODY, Handler
from steersman.wire import HttpRequest, describe_request

_PIECE_MAX = 64 * 1024
_PIECES_HELD = 4

_log = logging.getLogger("steersman.transport")


class InProcessTransport(Closable):
    """A transport to a server that is a function: `InProcessTransport(handle)`."""

    def __init__(self, handler: Handler, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        self._handler = handler
        self._timeout = timeout
        self._owner = AsyncExitStack()
        self._tasks: Supervisor | None = None
        self._closed = False

    async def send(
        self,
        request: HttpRequest,
        *,
        stream: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport
        before_send: Callable[[], None] | None = None,
    ) -> InProcessResponse:
        """Send a request and wait for the head of its response; see `Transport.send`."""
        if self._closed:
            raise ConnectionFailed(
                f"{describe_request(request)}: the transport to the server in this process is closed"
            )
        if self._tasks is None:
            self._tasks = await self._owner.enter_async_context(Supervisor())
        if before_send is not None:
            before_send()
        deadline = asyncio.get_running_loop().time() + (self._timeout if timeout is None else timeout)
        exchange = _Exchange(request)
        exchange.task = self._tasks.start(exchange.serve(self._handler), name=f"serve {request.method} {request.path}")
        try:
            async with asyncio.timeout_at(deadline):
                status, headers = await exchange.head
        except TimeoutError:
            await exchange.close()
            raise exchange.late() from None
        except BaseException:
            await exchange.close()
            raise
        return InProcessResponse(exchange, status, headers, deadline=None if stream else deadline)

    async def close(self) -> None:
        """Cancel the server's work on every exchange and wait until it has ended."""
        self._closed = True
        if self._tasks is not None:
            self._tasks.cancel()
            self._tasks = None
            await self._owner.aclose()

    def __repr__(self) -> str:
        return "<InProcessTransport>"


class _Exchange:
    """One request and its response, between the client's task and the server's."""

    __slots__ = ("_pieces", "_whole", "head", "request", "task")

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.task: asyncio.Task[None] | None = None
        self.head: asyncio.Future[tuple[int, CIMultiDictProxy[str]]] = asyncio.get_running_loop().create_future()
        self._pieces: Channel[bytes] = Channel(_PIECES_HELD)
        self._whole = False

    async def serve(self, handler: Handler) -> None:
        """Run the server's side; the client is always notified of its end."""
        # A program may send this while it answers a request over a port: the sender is the program, not that client.
        set_peer(None)
        try:
            answer = await handler(self.request)
            if not self.head.done():
                self.head.set_result((answer.status, CIMultiDictProxy(CIMultiDict(answer.headers))))
            await self._send_body(answer.body)
            self._whole = True
        except ChannelClosed:
            pass
        except Exception:  # noqa: BLE001 - a failure of the server is a lost connection for its client
            _log.exception("the server failed to %s", describe_request(self.request))
        finally:
            self._pieces.close()
            if not self.head.done():
                self.head.set_exception(self.broken("without a response"))

    async def _send_body(self, body: bytes | AsyncIterable[bytes]) -> None:
        if isinstance(body, bytes):
            await self._send(body)
            return
        pieces = aiter(body)
        try:
            async for piece in pieces:
                await self._send(piece)
        finally:
            # an abandoned iterator keeps its resources until it is closed
            if (finish := getattr(pieces, "aclose", None)) is not None:
                await finish()

    async def _send(self, piece: bytes) -> None:
        for start in range(0, len(piece), _PIECE_MAX):
            await self._pieces.send(piece[start : start + _PIECE_MAX])

    def receive_nowait(self) -> bytes | None:
        """Return the next piece if it is there, nothing at the end of the body, and None if the server has to be awaited."""
        try:
            return self._pieces.receive_nowait()
        except ChannelClosed:
            return self._end()

    async def receive(self) -> bytes:
        """Return the next piece, or nothing at the end of the body."""
        try:
            return await self._pieces.receive()
        except ChannelClosed:
            return self._end()

    def _end(self) -> bytes:
        if self._whole:
            return b""
        raise self.broken("during the response") from None

    async def close(self) -> None:
        """Cancel the server's work and wait until it has ended."""
        self._pieces.close()
        if self.task is not None and not self.task.done():
            self.task.cancel()
            await asyncio.wait((self.task,))
        if self.head.done() and not self.head.cancelled():
            # retrieve it, so that asyncio does not report it as never retrieved
            self.head.exception()

    def broken(self, when: str) -> ConnectionFailed:
        tried = describe_request(self.request)
        return ConnectionFailed(f"{tried}: the server in this process ended the exchange {when}", sent=True)

    def late(self) -> DeadlineExceeded:
        return DeadlineExceeded(f"{describe_request(self.request)}: the server in this process did not respond in time")


class InProcessResponse(Closable):
    """A response from a server in this process; see `Response`."""

    __slots__ = ("_deadline", "_exchange", "headers", "status")

    def __init__(
        self, exchange: _Exchange, status: int, headers: CIMultiDictProxy[str], *, deadline: float | None
    ) -> None:
        self._exchange = exchange
        self._deadline = deadline
        self.status = status
        self.headers = headers

    async def read(self, limit: int = MAX_BODY) -> bytes:
        """Read the whole body; raise ProtocolError if it is longer than `limit` bytes."""
        pieces: list[bytes] = []
        size = 0
        async for piece in self.chunks():
            size += len(piece)
            if size > limit:
                await self.close()
                tried = describe_request(self._exchange.request)
                raise ProtocolError(f"{tried}: the response is longer than {limit} bytes; request less at a time")
            pieces.append(piece)
        return b"".join(pieces)

    def chunks(self, *, idle_timeout: float | None = None) -> AsyncIterator[bytes]:
        """Read the body as it arrives; see `Response.chunks`."""
        return _Chunks(self._exchange, idle_timeout, self._deadline)

    async def close(self) -> None:
        """Cancel the server's work on this response and wait until it has ended."""
        await self._exchange.close()

    def __repr__(self) -> str:
        request = self._exchange.request
        return f"<InProcessResponse {self.status} to {request.method} {request.path}>"


class _Chunks:
    """The body of a response, piece by piece."""

    __slots__ = ("_deadline", "_exchange", "_idle_timeout")

    def __init__(self, exchange: _Exchange, idle_timeout: float | None, deadline: float | None) -> None:
        self._exchange = exchange
        self._idle_timeout = idle_timeout
        self._deadline = deadline

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        # Most bodies are there as soon as their head is: then no timer is needed.
        piece = self._exchange.receive_nowait()
        if piece is None:
            piece = await self._awaited()
        if not piece:
            raise StopAsyncIteration
        return piece

    async def _awaited(self) -> bytes:
        deadline = self._deadline
        idle = False
        if self._idle_timeout is not None:
            silent = asyncio.get_running_loop().time() + self._idle_timeout
            idle = deadline is None or silent < deadline
            deadline = silent if idle else deadline
        try:
            async with asyncio.timeout_at(deadline):
                return await self._exchange.receive()
        except TimeoutError:
            await self._exchange.close()
            if not idle:
                raise self._exchange.late() from None
            tried = describe_request(self._exchange.request)
            raise DeadlineExceeded(
                f"{tried}: no data for {self._idle_timeout:g} s; the connection may be dead"
            ) from None
        except asyncio.CancelledError:
            await self._exchange.close()
            raise
