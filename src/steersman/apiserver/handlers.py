"""Functions that answer requests for a program's own subresources and paths.

Guarantees
- A handler is called only after the request was authenticated and authorized.
- A raised `StatusError` is the answer; any other exception is a 500 Status with its message, and a log entry.
- A stream is read no faster than its client reads it. It ends when the client leaves or stops reading.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from steersman.apiserver.answers import answer
from steersman.apiserver.errors import RequestRejected, internal
from steersman.apiserver.request import Route, ServerRequest
from steersman.errors import StatusError
from steersman.transport import ServerResponse
from steersman.wire import first_values

_log = logging.getLogger("steersman.apiserver")

#: The answer of a handler: a JSON value, or bytes and streams of bytes with the content type of the handler.
Answer: TypeAlias = Mapping[str, Any] | Sequence[Any] | bytes | AsyncIterable[bytes]


class SubresourceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a subresource of an existing object."""

    #: "get", "create", "update", "patch" or "delete".
    verb: str
    namespace: str
    name: str
    #: The first value of each parameter.
    query: Mapping[str, str]
    body: bytes
    #: The name of the user.
    user: str
    #: The stored object in the requested version. Handlers may change it: it is a copy.
    obj: dict[str, Any]


class PathRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a path."""

    #: The HTTP method, such as "GET".
    method: str
    path: str
    query: Mapping[str, str]
    body: bytes
    user: str


SubresourceHandler: TypeAlias = Callable[[SubresourceRequest], Awaitable[Answer]]
PathHandler: TypeAlias = Callable[[PathRequest], Awaitable[Answer]]


async def answered(
    request: ServerRequest, subject: str, work: Awaitable[Answer], *, content_type: str = "text/plain"
) -> ServerResponse:
    """The response to the answer of a handler. ``subject`` names the handler in errors."""
    try:
        found = await work
    except StatusError as error:
        raise RequestRejected(error.status) from error
    except RequestRejected:
        raise
    except Exception as error:
        _log.exception("%s failed", subject)
        raise internal(f"{subject} failed: {str(error) or type(error).__name__}") from error
    if isinstance(found, AsyncIterable):
        headers = (("Cache-Control", "no-cache, private"), ("Content-Type", content_type))
        return ServerResponse(status=200, headers=headers, body=found)
    if isinstance(found, bytes):
        headers = (("Cache-Control", "no-cache, private"), ("Content-Type", content_type))
        return ServerResponse(status=200, headers=headers, body=found)
    return answer(request, msgspec.json.encode(found))


def path_route(paths: Mapping[str, PathHandler]) -> Route:
    """A route for exact paths."""

    async def route(request: ServerRequest) -> ServerResponse | None:
        wire = request.wire
        handler = paths.get(wire.path)
        if handler is None:
            return None
        asked = PathRequest(
            method=wire.method,
            path=wire.path,
            query=first_values(wire.query),
            body=wire.body or b"",
            user=request.user.name,
        )
        return await answered(request, wire.path, handler(asked))

    return route
