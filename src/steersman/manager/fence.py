"""The fence that keeps a deposed leader from writing.

Guarantees
- The fence rejects a write past the deadline. The check runs after the connection is acquired and right before the
  first byte, with no await in between. It applies to every user of the client: other tasks, threads, tasks that
  outlived their block, and a process that was suspended.
- Every write carries ``timeout=``, so the server gives up before another candidate can take the Lease, even if the
  sending process is suspended. The timeout is checked again right before the first byte, so waiting for a connection
  does not extend it.
- The client waits for the answer while renewals succeed. It stops waiting when the term ends, or when the server must
  have given up.
- A write may need a `Claim` beside the term, such as a held range of keys. It is checked in the same places.
- A write that ended without an answer is remembered, because it may still take effect.
- Reads and watches pass.

No client can prevent that a request that left in time is delayed on its way to the server. A process that is suspended
for longer than a lease between the check and the system call, or while the kernel has accepted only part of a large
request, sends the rest when it resumes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, Self, Unpack

import msgspec

from steersman import aio
from steersman.errors import ApiError, ConnectionFailed, DeadlineExceeded, NotLeading
from steersman.manager.lease_state import Rules
from steersman.transport import DEFAULT_TIMEOUT, Response, SendOptions, Transport, TransportWrapper
from steersman.wire import HttpRequest, describe_request, parse_path

_READS = frozenset({"GET", "HEAD", "OPTIONS"})

#: Subresources that forward their query to the target.
_PASSED_ON = frozenset({"attach", "exec", "portforward", "proxy"})

#: How long the answer of a server that gave up may take to arrive.
_ANSWER_SECONDS = 2.0

#: Precision of timers.
_MOMENT = 0.001

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class _OutdatedError(ApiError):
    """The write's server timeout became too long while it waited for a connection."""


class Fence:
    """The end of a term: a deadline that renewals move, or the moment it is closed for good.

    Without ``rules`` the lease ends with the term.
    """

    def __init__(self, deadline: float, *, name: str, term: int = 1, rules: Rules | None = None) -> None:
        #: In seconds of `aio.boottime`.
        self._deadline = deadline
        self._name = name
        self._term = term
        self._rules = rules
        #: Seconds from the end of the term until another candidate may take the Lease.
        self._after = rules.lease - rules.renew if rules is not None else 0.0
        self._closed = False
        self._writing = 0
        #: When a write last ended without an answer.
        self._unanswered: float | None = None
        self._quiet = asyncio.Event()
        self._quiet.set()

    def move(self, deadline: float) -> None:
        """Move the deadline after a renewal."""
        self._deadline = deadline

    def close(self) -> None:
        """End the term for good."""
        self._closed = True

    @property
    def deadline(self) -> float:
        """When the term ends, in seconds of `aio.boottime`."""
        return self._deadline

    @property
    def remaining(self) -> float:
        """Seconds left; 0 when the term is over."""
        return 0.0 if self._closed else max(0.0, self._deadline - aio.boottime())

    @property
    def rest(self) -> float:
        """Seconds until the deadline. Writes in flight may use them even after the fence is closed."""
        return self._deadline - aio.boottime()

    def server_seconds(self) -> float:
        """How long the server may take for a write sent now, or after a short wait for a connection."""
        rules = self._rules
        return self.rest if rules is None else min(rules.write_seconds, self.rest + self._after - rules.reserve)

    def sure_seconds(self) -> float:
        """How long the server may take for a write sent at any moment of the term."""
        return self.rest if self._rules is None else self._after

    def fits(self, seconds: float) -> bool:
        """Whether a server that takes this long from now on finishes before another candidate can take the Lease."""
        return seconds <= self.rest + self._after

    def __str__(self) -> str:
        return f"term {self._term} of the Lease {self._name}"

    def late(self, seconds: float) -> str:
        """The reason why a write with this server timeout was abandoned."""
        if self.rest <= _MOMENT:
            return f"no answer before {self} ended: the Lease could not be renewed"
        if self._rules is None:
            return f"no answer within the {seconds:.1f} s left of {self}"
        return (
            f"no answer within {seconds:.1f} s, the limit of {self} for one write: a write must end before another candidate"
            f" may lead. For slower writes raise LeaderElection(lease=...), now {self._rules.lease:g} s"
        )

    def check(self, request: HttpRequest | None = None) -> None:
        """Raise `NotLeading` if the term is over."""
        if self._closed or aio.boottime() >= self._deadline:
            raise self.refusal(request)

    def refusal(self, request: HttpRequest | None = None) -> NotLeading:
        """The error for a write that is not sent because the term is over."""
        tried = f"{describe_request(request)}: not sent: " if request is not None else ""
        return NotLeading(
            f"{tried}this program no longer leads as {self._name!r}: the term of this client is over, and another"
            " candidate may lead; stop, and continue with the client of the next term"
        )

    def begin_write(self) -> None:
        """Count a write that is about to be sent."""
        self._writing += 1
        self._quiet.clear()

    def end_write(self, *, answered: bool = True) -> None:
        """Count a write that was answered, or never will be."""
        if not answered:
            self._unanswered = aio.boottime()
        self._writing -= 1
        if not self._writing:
            self._quiet.set()

    def settled(self, within: float) -> bool:
        """Whether no write can take effect later: none is in flight or recently ended unanswered."""
        doubtful = self._unanswered is not None and aio.boottime() - self._unanswered < within
        return not self._writing and not doubtful

    async def quiet(self) -> None:
        """Wait until no write is in flight. No write outlasts its term."""
        await self._quiet.wait()


class Claim(Protocol):
    """What one write needs beside a term: that the key of its reconcile is still ours."""

    def check(self, request: HttpRequest) -> None:
        """Raise `NotLeading` if the key is not ours any more."""
        ...

    def begin_write(self) -> None:
        """Count a write that is about to be sent."""
        ...

    def end_write(self, *, answered: bool) -> None:
        """Count a write that was answered, or never will be."""
        ...


class _NoClaim:
    def check(self, request: HttpRequest) -> None:
        """Allow the write."""

    def begin_write(self) -> None:
        """Do nothing."""

    def end_write(self, *, answered: bool) -> None:
        """Do nothing."""


_NO_CLAIM: Claim = _NoClaim()


class FencedTransport(TransportWrapper):
    """A transport whose writes pass a fence. It does not own the inner transport: closing it does nothing.

    ``claim`` returns what a write that begins now needs beside the term; None if nothing.
    """

    def __init__(self, transport: Transport, fence: Fence, claim: Callable[[], Claim | None] | None = None) -> None:
        super().__init__(transport)
        self._fence = fence
        self._claim = claim

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        """Send a request. Raises `NotLeading` if it would write past the end of the term. See `Transport.send`."""
        if request.method in _READS:
            return await self._inner.send(request, **options)
        # Check early too, so that an ended term opens no connection.
        self._fence.check(request)
        claim = (self._claim() if self._claim is not None else None) or _NO_CLAIM
        claim.check(request)
        fence, loop = self._fence, asyncio.get_running_loop()
        ends = loop.time() + (options.get("timeout") or DEFAULT_TIMEOUT)
        # A write is outdated if it waited for a connection while no renewal succeeded. The last attempt cannot be
        # outdated.
        for allowed in (fence.server_seconds, fence.server_seconds, fence.sure_seconds):
            left = max(_MOMENT, ends - loop.time())
            write = _Write(fence, claim, request, min(allowed(), left), options.get("before_send"))
            with suppress(_OutdatedError):
                return await write.send(self._inner, stream=options.get("stream", False), timeout=left)
        raise fence.refusal(request)


class _Write:
    """One write: the server has ``seconds`` for it, and the client waits while the term lasts."""

    def __init__(
        self, fence: Fence, claim: Claim, request: HttpRequest, seconds: float, before_send: Callable[[], None] | None
    ) -> None:
        self._fence = fence
        self._claim = claim
        self._request = request
        self._seconds = seconds
        self._before_send = before_send
        self._wait = _Wait(fence)
        self._sent_at: float | None = None

    async def send(self, transport: Transport, *, stream: bool, timeout: float) -> Response:  # noqa: ASYNC109 - see Transport
        """Send the write. Raises `DeadlineExceeded` if the term leaves too little time for the answer."""
        answered = unsent = False
        self._fence.begin_write()
        self._claim.begin_write()
        try:
            async with self._wait:
                response = await transport.send(
                    _bounded(self._request, self._seconds), stream=stream, timeout=timeout, before_send=self._check
                )
            # A server that gave up may still be working.
            answered = response.status < 500
        except (ConnectionFailed, DeadlineExceeded) as error:
            unsent = not error.sent
            raise
        except TimeoutError:
            if not self._wait.expired:
                raise
            raise self._late() from None
        finally:
            settled = answered or unsent or self._sent_at is None
            self._claim.end_write(answered=settled)
            self._fence.end_write(answered=settled)
        if response.status != 504 or not self._is_late():
            return response
        await response.close()
        raise self._late()

    def _check(self) -> None:
        if self._before_send is not None:
            self._before_send()
        self._fence.check(self._request)
        self._claim.check(self._request)
        if not self._fence.fits(self._seconds):
            raise _OutdatedError(f"{describe_request(self._request)}: not sent")
        self._sent_at = asyncio.get_running_loop().time()
        self._wait.ends = self._sent_at + self._seconds + _ANSWER_SECONDS

    def _is_late(self) -> bool:
        """Whether the server has used up its timeout."""
        spent = asyncio.get_running_loop().time() - (self._sent_at or 0.0)
        return self._sent_at is not None and spent >= 0.9 * self._seconds

    def _late(self) -> ApiError:
        if self._sent_at is None:
            return self._fence.refusal(self._request)
        return DeadlineExceeded(f"{describe_request(self._request)}: {self._fence.late(self._seconds)}", sent=True)


class _Wait:
    """Ends its block with `TimeoutError` when the term is over, however often its end moves, or at ``ends``."""

    def __init__(self, fence: Fence) -> None:
        self._fence = fence
        self._scope = asyncio.timeout(None)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        #: In the loop's time; None while nothing is sent.
        self.ends: float | None = None

    @property
    def expired(self) -> bool:
        return self._scope.expired()

    async def __aenter__(self) -> Self:
        await self._scope.__aenter__()
        self._look()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        if self._timer is not None:
            self._timer.cancel()
        return await self._scope.__aexit__(*error)

    def _look(self) -> None:
        self._timer = None
        left = self._fence.rest
        if self.ends is not None:
            left = min(left, self.ends - self._loop.time())
        if left > _MOMENT:
            # By then, a renewal may have moved the deadline.
            self._timer = self._loop.call_later(left, self._look)
        else:
            self._scope.reschedule(self._loop.time())


def _bounded(request: HttpRequest, seconds: float) -> HttpRequest:
    """The request with a server timeout. A shorter timeout set by the caller stays; zero is replaced."""
    path = parse_path(request.path)
    if path is None or path.subresource in _PASSED_ON:
        return request
    given = [value for name, value in request.query if name == "timeout"]
    if given and (wanted := _DURATION.fullmatch(given[0])) and 0 < float(wanted[1]) * _UNITS[wanted[2]] <= seconds:
        return request
    # At least 1: zero means no limit.
    milliseconds = max(1, int(seconds * 1000))
    others = (pair for pair in request.query if pair[0] != "timeout")
    return msgspec.structs.replace(request, query=(*others, ("timeout", f"{milliseconds}ms")))
