"""What a transport is: requests go in, answers come out, whatever lies between.

Guarantees, kept by every transport and tested on each by one suite
- A request is delivered at most once; nothing is sent again behind the caller's back.
- What fails is an `ApiError`. `ConnectionFailed.sent` and `DeadlineExceeded.sent` say whether the server may have seen
  the request: false means it certainly was not processed.
- A stream has no deadline of its own once its head is here, and never takes a place from other requests.
- Closing a response, or cancelling a task that waits for one, ends the server's work on it. Nothing is left behind.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

import msgspec
from multidict import CIMultiDictProxy

from steersman.wire import Pairs, Request

#: Seconds for a whole exchange, and for the head of a stream, unless the caller says otherwise.
DEFAULT_TIMEOUT = 60.0

#: The largest body that `Response.read` holds, unless the caller says otherwise.
MAX_BODY = 256 * 1024 * 1024


class Response(Protocol):
    """An answer: its head is here, its body is read once, by `read` or by `chunks`."""

    @property
    def status(self) -> int:
        """The HTTP status code."""
        ...

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        """The headers, found in any case; `getall` gives every value of a repeated one."""
        ...

    async def read(self, limit: int = MAX_BODY) -> bytes:
        """Read the whole body; raise ProtocolError if it is longer than `limit` bytes."""
        ...

    def chunks(self, *, idle_timeout: float | None = None) -> AsyncIterator[bytes]:
        """Read the body as it comes, in pieces of any size, none empty.

        With `idle_timeout`, waiting longer than so many seconds for the next piece raises DeadlineExceeded and closes
        the response; time that the caller spends between pieces does not count.
        """
        ...

    async def close(self) -> None:
        """End the exchange, whatever is left of it; closing twice does nothing."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Transport(Protocol):
    """A way to one API server."""

    async def send(
        self,
        request: Request,
        *,
        stream: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - part of the exchange, and may end it in the middle of the body
        before_send: Callable[[], None] | None = None,
    ) -> Response:
        """Send a request and wait for the head of its answer.

        `timeout` is in seconds and covers the whole exchange, reading the body included; of a stream it covers the
        head alone. None means the transport's own. `before_send` is called once, when nothing is left to wait for and
        before the first byte is written; what it raises stops the request.
        """
        ...

    async def close(self) -> None:
        """End all exchanges and free everything; a closed transport sends no more."""
        ...


#: Sends a piece of a body at once; False, and nothing is sent, if its client does not keep up.
Push = Callable[[bytes], bool]


@runtime_checkable
class Pushing(Protocol):
    """A body that can hand on pieces as they happen, without a turn of the task that iterates over it.

    While its iterator waits for something to happen, it may give pieces to ``push`` in place of yielding them; what is
    not taken is yielded. Nobody has to call `push_to`: then everything is yielded.
    """

    def push_to(self, push: Push) -> None:
        """Name who takes pieces from now on."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...


class ServerResponse(msgspec.Struct, kw_only=True):
    """A server's side of an answer; an iterator as `body` is pulled no faster than the client reads."""

    status: int
    headers: Pairs = ()
    body: bytes | AsyncIterable[bytes] = b""


#: A server as one function. It is cancelled when the client goes away.
Handler = Callable[[Request], Awaitable[ServerResponse]]
