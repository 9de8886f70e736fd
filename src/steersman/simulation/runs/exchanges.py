"""One request and its response between two actors.

Guarantee: the client's side runs only when a message arrives or a deadline passes, and never after its actor has died.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from multidict import CIMultiDictProxy

from steersman.aio import Actor
from steersman.errors import ConnectionFailed, DeadlineExceeded
from steersman.simulation.runs.faults import ServerError, ServerTimeout, Throttled
from steersman.simulation.runs.places import Place
from steersman.wire import HttpRequest, describe_request

#: The event that tells a watch that its history is gone.
_EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version","reason":"Expired","code":410}}\n'
)


#: How a bookmark begins, and what only the bookmark after the initial objects has.
_BOOKMARK, _INITIAL = b'{"type":"BOOKMARK"', b"k8s.io/initial-events-end"


def without_bookmarks(piece: bytes) -> bytes:
    """The frames of a watch without its bookmarks, except for the one that ends the initial objects."""
    frames = piece.splitlines(keepends=True)
    return b"".join(frame for frame in frames if not frame.startswith(_BOOKMARK) or _INITIAL in frame)


class Exchange:
    """One request and its response."""

    def __init__(
        self, actor: Actor, request: HttpRequest, place: Place, *, stream: bool, on_end: Callable[[Exchange], None]
    ) -> None:
        self.actor = actor
        self.request = request
        self.place = place
        self.stream = stream
        self._on_end = on_end
        self._ended = False
        #: The server's work.
        self.task: asyncio.Task[None] | None = None
        self.head: asyncio.Future[tuple[int, CIMultiDictProxy[str]]] = asyncio.get_running_loop().create_future()
        #: Called in place of the delivery of a reply.
        self.on_reply: Callable[[], None] | None = None
        #: What other clients do at the server, before and after the request is served.
        self.before: Callable[[], Awaitable[None]] | None = None
        self.after: Callable[[], Awaitable[None]] | None = None
        #: Called when the server deletes an object for this request.
        self.on_deletion: Callable[[], None] | None = None
        #: The fault in place of the server's own answer.
        self.refused: Throttled | ServerError | ServerTimeout | None = None
        self.reply_lost = False
        self.reply_delay = 0.0
        #: Whether events are lost.
        self.deaf = False
        #: When the last message arrives that was sent so far.
        self.last_delivery = 0.0
        self._pieces: deque[bytes] = deque()
        self._failure: ConnectionFailed | None = None
        self._news: asyncio.Future[None] | None = None

    # arrivals

    def arrive(self, receive: Callable[..., None], message: tuple[Any, ...]) -> None:
        """Take a message, unless the client is gone."""
        if self.actor.alive and not self._ended:
            receive(*message)

    def reply(self, status: int, headers: CIMultiDictProxy[str], body: bytes, whole: bool) -> None:  # noqa: FBT001 - sent as a message
        """Take the head, with the body if it is whole."""
        if self.on_reply is not None:
            self.on_reply()
            return
        if self.reply_lost:
            self.fail(self.broken("without a response"))
            return
        if whole:
            if body:
                self._pieces.append(body)
            self._pieces.append(b"")
        if not self.head.done():
            self.head.set_result((status, headers))

    def take(self, piece: bytes) -> None:
        """Take a piece of the body; nothing at its end."""
        if not self.deaf:
            self._pieces.append(piece)
            self._wake()

    def expire(self) -> None:
        """End a watch as a server does when its history is gone."""
        if self.actor.alive and not self._ended:
            self.deaf = False
            self.take(_EXPIRED)
            self.take(b"")
            self.deaf = True

    def fail(self, error: ConnectionFailed) -> None:
        """Break the connection."""
        if self._ended:
            return
        self._failure = self._failure or error
        if not self.head.done():
            self.head.set_exception(error)
        self._wake()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    # the client's side

    def receive_all(self) -> bytes | None:
        """See `ExchangeResponse`."""
        if not self._pieces or self._pieces[-1]:
            return None
        body = b"".join(self._pieces)
        self._pieces = deque([b""])
        return body

    def receive_nowait(self) -> bytes | None:
        """See `ExchangeResponse`."""
        if not self._pieces:
            if self._failure is not None:
                raise self._failure
            return None
        # The end stays.
        return self._pieces.popleft() if self._pieces[0] else b""

    async def receive(self) -> bytes:
        """See `ExchangeResponse`."""
        while (piece := self.receive_nowait()) is None:
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        return piece

    async def close(self) -> None:
        """See `ExchangeResponse`."""
        self.end()

    def end(self) -> None:
        """Leave the exchange."""
        if not self._ended:
            self._ended = True
            if self.head.done() and not self.head.cancelled():
                # retrieve it, so that asyncio does not report it as never retrieved
                self.head.exception()
            self._on_end(self)

    def cancel(self) -> None:
        """End the server's work."""
        if self.task is not None:
            self.task.cancel()

    # errors

    def broken(self, when: str) -> ConnectionFailed:
        """The error of a connection that broke."""
        return ConnectionFailed(f"{describe_request(self.request)}: the connection broke {when}", sent=True)

    def late(self) -> DeadlineExceeded:
        """The error of an exchange that took too long."""
        return DeadlineExceeded(f"{describe_request(self.request)}: the server did not respond in time")
