"""Limits of requests: their duration and their number.

Guarantees
- A short-running request ends in time: its own ``timeout``, at most the server's, then 504.
- The number of requests in flight is limited; an excess request is answered at once with 429 and Retry-After.
- One user has at most half of the places, so that no user can take them all.
- Watches have no deadline and no place here: they end by their own timeout.

The size of a body is limited elsewhere: in `bodies` and `decoding`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from steersman.apiserver.errors import RequestRejected, bad_request, too_many_requests
from steersman.apiserver.identity import User
from steersman.apiserver.request import NextHandler, ServerRequest
from steersman.golang import duration_nanoseconds
from steersman.transport import ServerResponse
from steersman.wire import first_values

#: Verbs that only read.
READING = frozenset({"get", "list", "watch", "head", "options"})

#: kube-apiserver's answer to a request that took too long: its text names no kind.
_LATE = ServerResponse(
    status=504,
    headers=(("Cache-Control", "no-cache, private"), ("Content-Type", "text/plain; charset=utf-8")),
    body=(
        b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
        b'"reason":"Timeout","details":{},"code":504}'
    ),
)


class RequestLimits:
    """A handler of the chain that limits requests: ``RequestLimits(timeout=60, reading=400, writing=200)``.

    ``timeout`` is in seconds; ``reading`` and ``writing`` are how many requests of each sort may be in flight.
    ``sender`` finds a request's user, such as `Authentication.sender`; without it all requests count for one user.
    """

    def __init__(
        self,
        *,
        timeout: float = 60.0,
        reading: int = 400,
        writing: int = 200,
        sender: Callable[[ServerRequest], User] | None = None,
    ) -> None:
        self._timeout = timeout
        self._most = {True: reading, False: writing}
        self._under_way = {True: 0, False: 0}
        self.sender = sender
        #: How many requests of each sort a user has in flight.
        self._of_user: Counter[tuple[bool, str]] = Counter()

    async def __call__(self, request: ServerRequest, next_: NextHandler) -> ServerResponse:
        """Pass a request on, within the limits."""
        if request.info.verb == "watch":
            return await next_(request)
        seconds = self._seconds(request)
        reads = request.info.verb in READING
        place = (reads, self._user(request))
        if self._under_way[reads] >= self._most[reads] or (place[1] and self._of_user[place] >= self._share(reads)):
            raise too_many_requests()
        self._under_way[reads] += 1
        self._of_user[place] += 1
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                return await next_(request)
        except TimeoutError:
            if not deadline.expired():
                raise
            return ServerResponse(status=_LATE.status, headers=_LATE.headers, body=_LATE.body)
        finally:
            self._under_way[reads] -= 1
            self._of_user[place] -= 1
            if not self._of_user[place]:
                del self._of_user[place]

    def _share(self, reads: bool) -> int:  # noqa: FBT001 - the sort of a request
        return max(1, self._most[reads] // 2)

    def _user(self, request: ServerRequest) -> str:
        """The name of a request's user; empty if unknown, and then the request ends quickly."""
        if self.sender is None:
            return ""
        try:
            return self.sender(request).name
        except RequestRejected:
            return ""

    def _seconds(self, request: ServerRequest) -> float:
        """The time limit of a request: its own, but at most the server's."""
        text = first_values(request.wire.query).get("timeout", "")
        if not text:
            return self._timeout
        try:
            seconds = duration_nanoseconds(text) / 10**9
        except ValueError as error:
            raise bad_request(f"invalid timeout specified in the request URL - {error}") from None
        return min(seconds, self._timeout) if seconds > 0 else self._timeout
