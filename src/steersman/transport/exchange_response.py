"""A response that is read from an exchange in this process: from a server's task, or from a simulated network.

Guarantees
- A body is read by its deadline, or with at most so much silence; after that the exchange is closed.
- A read that is cancelled closes the exchange.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol, Self

from multidict import CIMultiDictProxy

from steersman.aio import Closable
from steersman.errors import DeadlineExceeded, ProtocolError
from steersman.transport.protocol import MAX_BODY
from steersman.wire import HttpRequest, describe_request


class Receiving(Protocol):
    """The client's side of an exchange, from which a body is read."""

    request: HttpRequest

    def receive_all(self) -> bytes | None:
        """Return what is left of a body that has arrived whole; None for any other."""
        ...

    def receive_nowait(self) -> bytes | None:
        """Return the next piece if it is there, nothing at the end of the body, and None if it has to be awaited."""
        ...

    async def receive(self) -> bytes:
        """Return the next piece, or nothing at the end of the body."""
        ...

    async def close(self) -> None:
        """End the exchange."""
        ...

    def late(self) -> DeadlineExceeded:
        """The error of an exchange that took too long."""
        ...


class ExchangeResponse(Closable):
    """A response whose exchange is in this process; see `Response`."""

    __slots__ = ("_deadline", "_exchange", "headers", "status")

    def __init__(
        self, exchange: Receiving, status: int, headers: CIMultiDictProxy[str], *, deadline: float | None
    ) -> None:
        self._exchange = exchange
        self._deadline = deadline
        self.status = status
        self.headers = headers

    async def read(self, limit: int = MAX_BODY) -> bytes:
        """Read the whole body; raise ProtocolError if it is longer than `limit` bytes."""
        if (rest := self._exchange.receive_all()) is not None:
            if len(rest) > limit:
                raise too_long(self._exchange.request, limit)
            return rest
        pieces: list[bytes] = []
        size = 0
        async for piece in self.chunks():
            size += len(piece)
            if size > limit:
                await self.close()
                raise too_long(self._exchange.request, limit)
            pieces.append(piece)
        return b"".join(pieces)

    def chunks(self, *, idle_timeout: float | None = None) -> AsyncIterator[bytes]:
        """Read the body as it arrives; see `Response.chunks`."""
        return _Chunks(self._exchange, idle_timeout, self._deadline)

    async def close(self) -> None:
        """End the exchange, and wait until it has ended."""
        await self._exchange.close()

    def __repr__(self) -> str:
        request = self._exchange.request
        return f"<{type(self).__name__} {self.status} to {request.method} {request.path}>"


class _Chunks:
    """The body of a response, piece by piece."""

    __slots__ = ("_deadline", "_exchange", "_idle_timeout")

    def __init__(self, exchange: Receiving, idle_timeout: float | None, deadline: float | None) -> None:
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


def too_long(request: HttpRequest, limit: int) -> ProtocolError:
    """The error of a response that is longer than the limit."""
    return ProtocolError(
        f"{describe_request(request)}: the response is longer than {limit} bytes; request less at a time"
    )
