"""The interface of transports: they send requests and return responses, by any means.

Guarantees of every transport, tested on each by one suite
- A request is delivered at most once; nothing is resent without the caller knowing.
- Every failure is an `ApiError`. `ConnectionFailed.sent` and `DeadlineExceeded.sent` say whether the server may have
  seen the request: false means it certainly was not processed.
- A stream has no deadline once its head has arrived, and never takes a connection from other requests.
- Closing a response, or cancelling a task that waits for one, ends the server's work on it. Nothing is left behind.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Protocol, Self, TypedDict, Unpack, runtime_checkable

import msgspec
from multidict import CIMultiDictProxy

from steersman.wire import HttpRequest, Pairs

#: The default timeout in seconds, for a whole exchange or for the head of a stream.
DEFAULT_TIMEOUT = 60.0

#: The default limit of `Response.read`.
MAX_BODY = 256 * 1024 * 1024


class Response(Protocol):
    """A response: its head has arrived; its body is read once, with `read` or `chunks`."""

    @property
    def status(self) -> int:
        """The HTTP status code."""
        ...

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        """The headers, case-insensitive; `getall` returns every value of a repeated one."""
        ...

    async def read(self, limit: int = MAX_BODY) -> bytes:
        """Read the whole body; raise ProtocolError if it is longer than `limit` bytes."""
        ...

    def chunks(self, *, idle_timeout: float | None = None) -> AsyncIterator[bytes]:
        """Read the body as it arrives, in non-empty pieces of any size.

        With `idle_timeout`, waiting longer than that for the next piece raises DeadlineExceeded and closes the
        response. Time that the caller spends between pieces does not count.
        """
        ...

    async def close(self) -> None:
        """End the exchange, even if incomplete; closing twice does nothing."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...


class Transport(Protocol):
    """A connection to one API server."""

    async def send(
        self,
        request: HttpRequest,
        *,
        stream: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - part of the exchange, and may end it in the middle of the body
        before_send: Callable[[], None] | None = None,
    ) -> Response:
        """Send a request and wait for the head of its response.

        `timeout` is in seconds and covers the whole exchange, including the body; for a stream it covers only the head.
        None means the transport's default. `before_send` is called once, just before the first byte is written; if it
        raises, nothing is sent.
        """
        ...

    async def close(self) -> None:
        """End all exchanges and free everything; a closed transport sends nothing more."""
        ...


@runtime_checkable
class Separable(Protocol):
    """A transport that can open a second set of connections."""

    def separate(self) -> Transport:
        """Return a transport to the same server that shares no connection with this one; the caller closes it."""
        ...


class SendOptions(TypedDict, total=False):
    """The options of `Transport.send`, for transports that pass them on."""

    stream: bool
    timeout: float | None
    before_send: Callable[[], None] | None


class TransportWrapper:
    """A transport that sends over another one and shares its connections: closing it closes nothing."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        """Send over the other transport; see `Transport.send`."""
        return await self._inner.send(request, **options)

    async def close(self) -> None:
        """Do nothing."""


def separated(transport: Transport) -> Transport:
    """Return a transport with its own connections, or one that shares them if the transport is not `Separable`."""
    return transport.separate() if isinstance(transport, Separable) else TransportWrapper(transport)


#: Sends a piece of a body immediately; returns False without sending if its client does not keep up.
Push = Callable[[bytes], bool]


@runtime_checkable
class Pushing(Protocol):
    """A body that can push pieces as they happen, without a turn of the task that iterates over it.

    While its iterator waits, it may pass pieces to ``push`` instead of yielding them; rejected pieces are yielded.
    Calling `push_to` is optional: without it, everything is yielded.
    """

    def push_to(self, push: Push) -> None:
        """Set the function that takes pieces from now on."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...


class Reservation(Protocol):
    """Something that a response holds while it is sent. A reservation that is dropped is released, too."""

    def release(self) -> None:
        """End the reservation; releasing twice does nothing."""
        ...


class ServerResponse(msgspec.Struct, kw_only=True):
    """The server's side of a response; an iterator as `body` is consumed no faster than the client reads."""

    status: int
    headers: Pairs = ()
    body: bytes | AsyncIterable[bytes] = b""
    #: The time of the loop by which a listener must have sent the response; later it closes the connection.
    deadline: float | None = None
    #: What the response holds until it has been sent, or will not be sent any more.
    reservation: Reservation | None = None

    def release(self) -> None:
        """Release what the response holds."""
        if self.reservation is not None:
            self.reservation.release()


#: A server as one function. It is cancelled when the client disconnects.
Handler = Callable[[HttpRequest], Awaitable[ServerResponse]]
