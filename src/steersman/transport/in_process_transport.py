"""A server in the same process: the same bytes, no socket.

Guarantees, in addition to those of every transport
- Only bytes cross, in pieces of at most 64 KiB. A few pieces of a streamed body are buffered; a server that is faster
  than its client waits.
- The server runs in its own task: it is cancelled when the client closes or disconnects, and the client fails when the
  server does. A failure of one exchange affects no other one, and no task of a sender.
- Only the running loop's time is used, so exchanges are exact in virtual time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Callable
from typing import Any

from multidict import CIMultiDict, CIMultiDictProxy

from steersman.aio import Channel, ChannelClosed, ChannelFull, Closable, OwnedTasks
from steersman.errors import ConnectionFailed, DeadlineExceeded
from steersman.transport.buffered_response import BufferedResponse
from steersman.transport.exchange_response import ExchangeResponse, too_long
from steersman.transport.peer import set_peer
from steersman.transport.protocol import DEFAULT_TIMEOUT, MAX_BODY, Handler, Pushing
from steersman.wire import HttpRequest, describe_request

_PIECE_MAX = 64 * 1024
_PIECES_HELD = 4

_log = logging.getLogger("steersman.transport")

#: Takes a piece of a body, nothing at its end, or the error that ended it.
TakePiece = Callable[[bytes | ConnectionFailed], None]


class InProcessTransport(Closable):
    """A transport to a server that is a function: `InProcessTransport(handle)`."""

    def __init__(self, handler: Handler, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        self._handler = handler
        self._timeout = timeout
        #: The tasks of the server, for `send`.
        self._tasks = OwnedTasks()
        #: The tasks of `answer`.
        self._answering: dict[asyncio.Task[Any] | None, None] = {}
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
        self._check_open(request)
        if before_send is not None:
            before_send()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self._timeout if timeout is None else timeout)
        exchange = _Exchange(request, loop)
        exchange.task = self._tasks.start(exchange.serve(self._handler), name=f"serve {request.method} {request.path}")
        timer = loop.call_at(deadline, exchange.expire)
        try:
            status, headers = await exchange.head
        except BaseException:
            await exchange.close()
            raise
        finally:
            timer.cancel()
        return InProcessResponse(exchange, status, headers, deadline=None if stream else deadline)

    async def answer(
        self,
        request: HttpRequest,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport
        before_send: Callable[[], None] | None = None,
    ) -> BufferedResponse:
        """Like `send` and `read`, but in the caller's own task, which must exist for this exchange alone."""
        self._check_open(request)
        if before_send is not None:
            before_send()
        set_peer(None)
        exchange = _Exchange(request, asyncio.get_running_loop())
        self._answering[asyncio.current_task()] = None
        limit = asyncio.timeout(self._timeout if timeout is None else timeout)
        try:
            async with limit:
                answer = await self._handler(request)
                try:
                    body = answer.body if isinstance(answer.body, bytes) else await _joined(answer.body)
                finally:
                    answer.release()
        except asyncio.CancelledError:
            if self._closed:
                raise exchange.broken("without a response") from None
            raise
        except Exception:  # noqa: BLE001 - as in `_Exchange.serve`
            if limit.expired():
                raise exchange.late() from None
            _log.exception("the server failed to %s", describe_request(request))
            raise exchange.broken("without a response") from None
        finally:
            del self._answering[asyncio.current_task()]
        if len(body) > MAX_BODY:
            raise too_long(request, MAX_BODY)
        return BufferedResponse(answer.status, CIMultiDictProxy(CIMultiDict(answer.headers)), body)

    def _check_open(self, request: HttpRequest) -> None:
        if self._closed:
            raise ConnectionFailed(
                f"{describe_request(request)}: the transport to the server in this process is closed"
            )

    async def close(self) -> None:
        """Cancel the server's work on every exchange and wait until it has ended."""
        self._closed = True
        if answering := [task for task in reversed(self._answering) if task is not None]:
            for task in answering:
                task.cancel()
            await asyncio.wait(answering)
        await self._tasks.close()

    def __repr__(self) -> str:
        return "<InProcessTransport>"


class _Exchange:
    """One request and its response, between the client's task and the server's."""

    __slots__ = ("_body", "_pieces", "_read", "_take_piece", "_whole", "head", "request", "task")

    def __init__(self, request: HttpRequest, loop: asyncio.AbstractEventLoop) -> None:
        self.request = request
        self.task: asyncio.Task[None] | None = None
        self.head: asyncio.Future[tuple[int, CIMultiDictProxy[str]]] = loop.create_future()
        #: A body that was complete with its head, and how much of it was read.
        self._body = b""
        self._read = 0
        #: The pieces of a streamed body.
        self._pieces: Channel[bytes] | None = None
        #: Takes the pieces in place of the channel.
        self._take_piece: TakePiece | None = None
        self._whole = False

    async def serve(self, handler: Handler) -> None:
        """Run the server's side; the client is always notified of its end."""
        # A program may send this while it answers a request over a port: the sender is the program, not that client.
        set_peer(None)
        try:
            answer = await handler(self.request)
            try:
                if isinstance(answer.body, bytes):
                    self._body = answer.body
                else:
                    self._pieces = Channel(_PIECES_HELD)
                if not self.head.done():
                    self.head.set_result((answer.status, CIMultiDictProxy(CIMultiDict(answer.headers))))
                if self._pieces is not None and not isinstance(answer.body, bytes):
                    await self._send_body(answer.body, self._pieces)
            finally:
                answer.release()
            self._whole = True
        except ChannelClosed:
            pass
        except Exception:  # noqa: BLE001 - a failure of the server is a lost connection for its client
            _log.exception("the server failed to %s", describe_request(self.request))
        finally:
            if self._pieces is not None:
                self._pieces.close()
            if self._take_piece is not None:
                self._take_piece(b"" if self._whole else self.broken("during the response"))
            if not self.head.done():
                self.head.set_exception(self.broken("without a response"))

    async def _send_body(self, body: AsyncIterable[bytes], into: Channel[bytes]) -> None:
        if isinstance(body, Pushing):
            body.push_to(self._push)
        pieces = aiter(body)
        try:
            async for piece in pieces:
                for start in range(0, len(piece), _PIECE_MAX):
                    await self._send(piece[start : start + _PIECE_MAX], into)
        finally:
            # an abandoned iterator keeps its resources until it is closed
            if (finish := getattr(pieces, "aclose", None)) is not None:
                await finish()

    async def _send(self, piece: bytes, into: Channel[bytes]) -> None:
        if self._take_piece is not None:
            self._take_piece(piece)
            return
        await into.send(piece)
        if self._take_piece is not None:
            # `forward` was called while this piece waited for room.
            self._forward_held(self._take_piece)

    def _push(self, piece: bytes) -> bool:
        """Take a piece without a turn of the server's task, if there is room for it."""
        if self._take_piece is not None:
            self._take_piece(piece)
            return True
        if len(piece) > _PIECE_MAX or self._pieces is None:
            return False
        try:
            self._pieces.send_nowait(piece)
        except (ChannelClosed, ChannelFull):
            return False
        return True

    def forward(self, take_piece: TakePiece) -> None:
        """Pass each piece to ``take_piece`` as it comes; see `InProcessResponse.forward`."""
        try:
            if self._forward_held(take_piece):
                take_piece(b"")
            else:
                self._take_piece = take_piece
        except ConnectionFailed as error:
            take_piece(error)

    def _forward_held(self, take_piece: TakePiece) -> bool:
        """Pass on the buffered pieces. Returns whether the body has ended."""
        while piece := self.receive_nowait():
            take_piece(piece)
        return piece is not None

    def receive_all(self) -> bytes | None:
        """Return what is left of a body that was complete with its head; None for a streamed one."""
        if self._pieces is not None:
            return None
        start, self._read = self._read, len(self._body)
        return self._body[start:] if start else self._body

    def receive_nowait(self) -> bytes | None:
        """Return the next piece if it is there, nothing at the end of the body, and None if the server has to be awaited."""
        if self._pieces is None:
            start, self._read = self._read, self._read + _PIECE_MAX
            return self._body[start : self._read]
        try:
            return self._pieces.receive_nowait()
        except ChannelClosed:
            return self._end()

    async def receive(self) -> bytes:
        """Return the next piece of a streamed body, or nothing at its end."""
        assert self._pieces is not None
        try:
            return await self._pieces.receive()
        except ChannelClosed:
            return self._end()

    def _end(self) -> bytes:
        if self._whole:
            return b""
        raise self.broken("during the response") from None

    def expire(self) -> None:
        """End the wait for the head."""
        if not self.head.done():
            self.head.set_exception(self.late())

    async def close(self) -> None:
        """Cancel the server's work and wait until it has ended."""
        if self._pieces is not None:
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


async def _joined(body: AsyncIterable[bytes]) -> bytes:
    pieces = aiter(body)
    try:
        return b"".join([piece async for piece in pieces])
    finally:
        # an abandoned iterator keeps its resources until it is closed
        if (finish := getattr(pieces, "aclose", None)) is not None:
            await finish()


class InProcessResponse(ExchangeResponse):
    """A response from a server in this process; see `Response`."""

    __slots__ = ()

    def forward(self, take_piece: TakePiece) -> None:
        """Pass each piece to ``take_piece`` as it comes, then nothing at the end of the body, or the error that ended it.

        ``take_piece`` must not block. It replaces `read` and `chunks`, and the server does not wait for its client.
        """
        assert isinstance(self._exchange, _Exchange)
        self._exchange.forward(take_piece)
