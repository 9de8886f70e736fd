"""Limits of requests: their duration and their number.

Guarantees
- A short-running request ends in time: its own ``timeout``, at most the server's, then 504. Later than that, its
  response is not sent any more: the listener closes the connection.
- A request keeps its place until its response has been sent.
- The number of requests in flight is limited; an excess request is answered at once with 429 and Retry-After.
- One user has at most half of the places, so that no user can take them all.
- Administrators have places of their own, as many again: several users together cannot take those.
- Watches and other streams have no deadline. Their number is limited for each user but administrators. A watch with long
  selectors counts as several: each change is compared with all of them.

The size of a body is limited elsewhere: `request.py` rejects long bodies, `json_trees.py` those with too many values.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec.structs import replace

from steersman.apiserver.errors import RequestRejected, bad_request, too_many_requests
from steersman.apiserver.identity import MASTERS, User
from steersman.apiserver.request import NextHandler, ServerRequest
from steersman.golang import duration_nanoseconds
from steersman.transport import ServerResponse
from steersman.wire import SHARD_PARAMETER, first_values

#: Verbs that only read.
READING = frozenset({"get", "list", "watch", "head", "options"})

#: The size in bytes of a body that fits the buffers of a connection.
_SHORT: Final = 64 * 1024
#: The length of the selectors of one stream: a longer one counts as several.
_SELECTORS: Final = 256
#: kube-apiserver's answer to a request that took too long: its text names no kind.
_LATE = ServerResponse(
    status=504,
    headers=(("Cache-Control", "no-cache, private"), ("Content-Type", "text/plain; charset=utf-8")),
    body=(
        b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
        b'"reason":"Timeout","details":{},"code":504}'
    ),
)


_Counts: TypeAlias = Counter[object]


class _Place:
    """One in each of some counts, or as many as it weighs, until it is released or dropped."""

    def __init__(self, *counted: tuple[_Counts, object], weight: int = 1) -> None:
        self._counted = counted
        self._weight = weight
        for counts, key in counted:
            counts[key] += weight

    def release(self) -> None:
        """Give the place back; doing so twice changes nothing."""
        counted, self._counted = self._counted, ()
        for counts, key in counted:
            counts[key] -= self._weight
            if not counts[key]:
                del counts[key]

    def __del__(self) -> None:
        # A response may be dropped before it is sent: its client left.
        self.release()


def _weight(request: ServerRequest) -> int:
    """How many streams a watch counts as."""
    query = first_values(request.wire.query)
    return (
        1 + sum(len(query.get(name, "")) for name in ("labelSelector", "fieldSelector", SHARD_PARAMETER)) // _SELECTORS
    )


class RequestLimits:
    """A handler of the chain that limits requests: ``RequestLimits(timeout=60, reading=400, writing=200)``.

    ``timeout`` is in seconds; ``reading`` and ``writing`` are how many requests of each sort may be in flight.
    ``watching`` is how many watches and other streams one user may have; administrators may have any number.
    ``sender`` finds a request's user, such as `Authentication.sender`; without it no user has a limit of its own.
    """

    def __init__(
        self,
        *,
        timeout: float = 60.0,
        reading: int = 400,
        writing: int = 200,
        watching: int = 1000,
        sender: Callable[[ServerRequest], User] | None = None,
    ) -> None:
        self._timeout = timeout
        self._most = {True: reading, False: writing}
        self.watching = watching
        self.sender = sender
        #: How many requests are in flight that read or write, of administrators or of others.
        self._under_way: _Counts = Counter()
        #: The same for each user, and how many streams each has.
        self._of_user: _Counts = Counter()
        self._streams: _Counts = Counter()

    async def __call__(self, request: ServerRequest, next_: NextHandler) -> ServerResponse:
        """Pass a request on, within the limits."""
        user = self._user(request)
        if request.info.verb == "watch":
            return await self._held(request, next_, self._stream(user, _weight(request)))
        seconds = self._seconds(request)
        place = self._place(request.info.verb in READING, user)
        end = asyncio.get_running_loop().time() + seconds
        deadline = asyncio.timeout_at(end)
        try:
            async with deadline:
                reply = await self._held(request, next_, place)
        except TimeoutError:
            if not deadline.expired():
                raise
            return ServerResponse(status=_LATE.status, headers=_LATE.headers, body=_LATE.body)
        if reply.reservation is None:
            return reply
        if request.sends_pieces or isinstance(reply.body, bytes):
            return replace(reply, deadline=end)
        place.release()
        return replace(reply, reservation=self._stream(user))

    async def _held(self, request: ServerRequest, next_: NextHandler, place: _Place) -> ServerResponse:
        """The response, with the place until it is sent. A short body needs none: the buffers take it."""
        is_held = False
        try:
            reply = await next_(request)
            is_held = not isinstance(reply.body, bytes) or len(reply.body) > _SHORT
            return replace(reply, reservation=place) if is_held else reply
        finally:
            if not is_held:
                place.release()

    def _place(self, reads: bool, user: User | None) -> _Place:  # noqa: FBT001 - the sort of a request
        """A place for a request; 429 if there is none."""
        most = self._most[reads]
        # A tenant who may create service accounts has any number of users.
        sort = (reads, user is not None and MASTERS in user.groups)
        mine = None if user is None else (reads, user.name)
        if self._under_way[sort] >= most or (mine is not None and self._of_user[mine] >= max(1, most // 2)):
            raise too_many_requests()
        return _Place((self._under_way, sort), *(() if mine is None else ((self._of_user, mine),)))

    def _stream(self, user: User | None, weight: int = 1) -> _Place:
        """A place for a stream; 429 if its user has too many."""
        if user is None or MASTERS in user.groups:
            return _Place()
        # One stream is always possible.
        if self._streams[user.name] + min(weight, self.watching) > self.watching:
            raise too_many_requests()
        return _Place((self._streams, user.name), weight=weight)

    def _user(self, request: ServerRequest) -> User | None:
        """A request's user; None if unknown, and then the request ends quickly."""
        if self.sender is None:
            return None
        try:
            return self.sender(request)
        except RequestRejected:
            return None

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
