"""Counts requests where they leave the process, by what they do."""

from __future__ import annotations

from collections import Counter
from typing import Unpack

from steersman.transport import Response, SendOptions, Transport, TransportWrapper
from steersman.wire import HttpRequest, parse_path

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
#: Requests that change nothing.
READ, LIST, WATCH, OTHER = "read", "list", "watch", "other"
READS = frozenset({READ, LIST, WATCH, OTHER})


class Counting(TransportWrapper):
    """A transport that counts in ``into``: ``apply configmaps``, ``delete secrets``, ``apply sites/status``, ``read``, ..."""

    def __init__(self, inner: Transport, into: Counter[str]) -> None:
        super().__init__(inner)
        self._into = into

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        """Send a request and wait for the head of its response; see `Transport.send`."""
        self._into[described(request)] += 1
        return await self._inner.send(request, **options)

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()


def described(request: HttpRequest) -> str:
    """What a request does."""
    place = parse_path(request.path)
    if place is None:
        return OTHER
    if request.method == "GET":
        if not {("watch", "true"), ("watch", "1")}.isdisjoint(request.query):
            return WATCH
        return READ if place.name else LIST
    verb = _VERBS[request.method]
    if (request.header("Content-Type") or "").startswith("application/apply-patch"):
        verb = "apply"
    return f"{verb} {place.resource}" + (f"/{place.subresource}" if place.subresource else "")


def writes(counted: Counter[str]) -> Counter[str]:
    """The writes among the counted requests, without Events, which are not part of the desired state."""
    return Counter(
        {what: times for what, times in counted.items() if what not in READS and not what.endswith(" events")}
    )
