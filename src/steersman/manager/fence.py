"""What keeps a deposed leader from writing.

Guarantees
- A write is refused past the deadline by a check that stands between acquiring a connection and writing the first byte,
  with nothing to wait for in between. It holds for whoever has the client: other tasks, threads, tasks that outlived
  their block, and a process that stood still.
- A write is waited for no longer than the rest of the term, and tells the server to give it up by then: it ends in time
  also when the process that sent it stands still.
- A write that ended without an answer is remembered, because it may still happen.
- Reads and watches go through.

What no client can prevent: a request that left in time and was held up on its way to the server. A process that stands
still for longer than a lease in the microseconds between the check and the system call, or while the system has taken only
part of a large request from it, sends the request, or the rest of it, when it goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from steersman import aio
from steersman.objects.errors import ApiError, ConnectionFailed, DeadlineExceeded
from steersman.transport import Response, Transport
from steersman.transport.protocol import DEFAULT_TIMEOUT
from steersman.wire import Request, describe_request, parse_path

_READS = frozenset({"GET", "HEAD", "OPTIONS"})

#: Their query belongs to what they lead to.
_PASSED_ON = frozenset({"attach", "exec", "portforward", "proxy"})

#: A transport may round a long timeout up to a whole second.
_ROUNDED_ABOVE = 5.0


class NotLeading(ApiError):
    """A write was refused because its term is over: another candidate may lead. Nothing was sent."""


class Fence:
    """Whether a term lasts: until a deadline that renewals move, or until it is closed for good."""

    def __init__(self, deadline: float, *, name: str) -> None:
        #: In seconds of `aio.boottime`.
        self._deadline = deadline
        self._name = name
        self._closed = False
        self._writing = 0
        #: When a write last ended without an answer.
        self._unanswered: float | None = None
        self._quiet = asyncio.Event()
        self._quiet.set()

    def move(self, deadline: float) -> None:
        """Let the term last longer."""
        self._deadline = deadline

    def close(self) -> None:
        """End the term; it does not come back."""
        self._closed = True

    @property
    def remaining(self) -> float:
        """Seconds left, 0 when the term is over."""
        return 0.0 if self._closed else max(0.0, self._deadline - aio.boottime())

    def check(self, request: Request | None = None) -> None:
        """Raise `NotLeading` if the term is over."""
        if self._closed or aio.boottime() >= self._deadline:
            tried = f"{describe_request(request)}: not sent: " if request is not None else ""
            raise NotLeading(
                f"{tried}this program does not lead as {self._name!r} any more: the term of this client is over, and another"
                " may lead; stop, and go on with the client of the next term"
            )

    def begin_write(self) -> None:
        """Count a write that is about to be sent."""
        self._writing += 1
        self._quiet.clear()

    def end_write(self, *, answered: bool = True) -> None:
        """Count a write whose answer is here, or will never be."""
        if not answered:
            self._unanswered = aio.boottime()
        self._writing -= 1
        if not self._writing:
            self._quiet.set()

    def settled(self, within: float) -> bool:
        """Whether nothing can still happen: no write is under way, and none ended without an answer that lately."""
        doubtful = self._unanswered is not None and aio.boottime() - self._unanswered < within
        return not self._writing and not doubtful

    async def quiet(self) -> None:
        """Wait until no write is under way; none of them outlasts its term."""
        await self._quiet.wait()


class FencedTransport:
    """A transport whose writes go through a fence. It belongs to somebody else: closing it closes nothing."""

    def __init__(self, transport: Transport, fence: Fence) -> None:
        self._transport = transport
        self._fence = fence

    async def send(
        self,
        request: Request,
        *,
        stream: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport
        before_send: Callable[[], None] | None = None,
    ) -> Response:
        """Send a request, unless it would write past the end of the term; see `Transport.send`."""
        if request.method in _READS:
            return await self._transport.send(request, stream=stream, timeout=timeout, before_send=before_send)
        fence = self._fence
        sent = False

        def check() -> None:
            nonlocal sent
            if before_send is not None:
                before_send()
            fence.check(request)
            sent = True

        # checked here as well, so that a term that is over opens no connection
        fence.check(request)
        rest = fence.remaining
        if rest > _ROUNDED_ABOVE:
            rest -= 1.0
        seconds = min(rest, timeout or DEFAULT_TIMEOUT)
        answered = False
        fence.begin_write()
        try:
            response = await self._transport.send(
                _bounded(request, seconds), stream=stream, timeout=seconds, before_send=check
            )
            # a server that gave up may still be at work
            answered = response.status < 500
        except (ConnectionFailed, DeadlineExceeded) as error:
            sent = sent and error.sent
            raise
        else:
            return response
        finally:
            fence.end_write(answered=answered or not sent)

    async def close(self) -> None:
        """Do nothing: the connections belong to the client that this one was made from."""


def _bounded(request: Request, seconds: float) -> Request:
    """The request with the time in it that the server may take."""
    path = parse_path(request.path)
    if path is None or path.subresource in _PASSED_ON or any(name == "timeout" for name, _ in request.query):
        return request
    # at least one: zero means that there is no limit
    milliseconds = max(1, int(seconds * 1000))
    return msgspec.structs.replace(request, query=(*request.query, ("timeout", f"{milliseconds}ms")))
