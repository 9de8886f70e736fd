"""Limits of requests: how long one may take, and how many there may be at a time.

Guarantees
- A request that does not run for long ends in time: its own ``timeout``, at most the server's, then 504.
- No more requests are under way than allowed; one too many is answered at once with 429 and when to come again.
- Watches have no deadline and no place here: they end by their own time-out.

The longest body is a matter of whoever reads it: see `Limits.body`.
"""

from __future__ import annotations

import asyncio
import re

from steersman.apiserver.errors import bad_request, too_many_requests
from steersman.apiserver.request import Next, ServerRequest
from steersman.transport import ServerResponse

_READING = frozenset({"get", "list", "watch", "head", "options"})
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+")

#: What kube-apiserver answers for a request that took too long: its text names no kind.
_LATE = ServerResponse(
    status=504,
    headers=(("Cache-Control", "no-cache, private"), ("Content-Type", "text/plain; charset=utf-8")),
    body=(
        b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
        b'"reason":"Timeout","details":{},"code":504}'
    ),
)


class RequestLimits:
    """A handler of the chain that bounds requests: ``RequestLimits(timeout=60, reading=400, writing=200)``.

    ``timeout`` is in seconds; ``reading`` and ``writing`` are how many requests of each sort may be under way.
    """

    def __init__(self, *, timeout: float = 60.0, reading: int = 400, writing: int = 200) -> None:
        self._timeout = timeout
        self._most = {True: reading, False: writing}
        self._under_way = {True: 0, False: 0}

    async def __call__(self, request: ServerRequest, next_: Next) -> ServerResponse:
        """Pass a request on, within the limits."""
        if _is_long_running(request):
            return await next_(request)
        seconds = self._seconds(request)
        reads = request.info.verb in _READING
        if self._under_way[reads] >= self._most[reads]:
            raise too_many_requests()
        self._under_way[reads] += 1
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

    def _seconds(self, request: ServerRequest) -> float:
        """How long a request may take: what it says, but not longer than the server allows."""
        text = next((value for name, value in request.wire.query if name == "timeout"), "")
        if not text:
            return self._timeout
        seconds = parse_duration(text)
        if seconds is None:
            raise bad_request(f'invalid timeout specified in the request URL - time: invalid duration "{text}"')
        return min(seconds, self._timeout) if seconds > 0 else self._timeout


def _is_long_running(request: ServerRequest) -> bool:
    return request.info.verb == "watch"


def parse_duration(text: str) -> float | None:
    """A duration as Go writes it (``1m30s``), in seconds; None if it is none."""
    if text in {"0", "+0", "-0"}:
        return 0.0
    if len(text) > 64 or not _DURATION.fullmatch(text):
        return None
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    return -seconds if text.startswith("-") else seconds
