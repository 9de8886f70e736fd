"""Dashboard: serves a Board to a browser on this machine.

Guarantees
- It listens only on loopback, and every request needs a cookie, which only a one-time link sets. See `access`.
- Log lines are sent as data, never as part of the document.
- Bodies, connections and streams are limited.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import cache
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from steersman.transport import HttpListener, ServerResponse
from steersman.ui.board import Board
from steersman.ui.page.access import Access, AccessRefused, security_headers
from steersman.ui.page.feed import act, feed
from steersman.ui.refusal import ActionRefused
from steersman.wire import HttpRequest

#: The maximum number of open streams. A hidden tab has none.
STREAMS_MAX: Final = 32
_BODY_MAX: Final = 4096
_CONNECTIONS_MAX: Final = 256
_TYPES: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_ASSETS: Final = {"": "page.html", "page.css": "page.css", "page.js": "page.js", "graph.js": "graph.js"}
_RENEWAL: Final = "Run steersman page in the folder of the project to get a new link."


class _Action(msgspec.Struct):
    """The body of a request that changes something."""

    action: str
    service: str


class Dashboard:
    """Serves a Board: ``async with Dashboard(board) as page: print(page.link())``.

    ``port`` 0 takes a free one. ``renewal`` is the sentence that tells a user how to get a new link.
    """

    def __init__(self, board: Board, *, port: int = 0, renewal: str = _RENEWAL) -> None:
        self._board = board
        self._access = Access(renewal=renewal)
        self._streams = 0
        self._listener = HttpListener(
            self._answer,
            port=port,
            max_body=_BODY_MAX,
            max_connections=_CONNECTIONS_MAX,
            grace=0.2,
            on_demand=True,
        )
        self._posts: dict[str, Callable[[HttpRequest], Awaitable[ServerResponse]]] = {
            "feed": self._feed,
            "action": self._act,
        }

    async def __aenter__(self) -> Self:
        await self._listener.start()
        self._access.port = self._listener.port
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listener.close()

    @property
    def address(self) -> str:
        """The URL of the page; a browser needs a link or a cookie to see it."""
        return self._access.origin

    @property
    def key(self) -> str:
        """The secret with which another program of this user gets a link; see `new_link`."""
        return self._access.key

    def link(self, *, own_user: bool = False) -> str:
        """A new URL that opens the page once, within ten minutes; see `Access.link`."""
        return self._access.link(own_user=own_user)

    # requests

    async def _answer(self, request: HttpRequest) -> ServerResponse:
        try:
            self._access.check_host(request)
            return await self._route(request)
        except AccessRefused as refused:
            return _text(refused.status, str(refused))

    async def _route(self, request: HttpRequest) -> ServerResponse:
        access, path = self._access, request.path
        if path.startswith("/open/"):
            _check_method(request, "GET")
            return _opened(access.exchange(path.removeprefix("/open/")), access.path)
        if path == "/link":
            _check_method(request, "POST")
            access.check_key(request)
            return _json({"url": access.link()})
        if path == "/":
            # A bookmark without the path: only a browser with the cookie is redirected to it.
            raise AccessRefused(401, access.refusal)
        place, _, name = path[1:].partition("/")
        if place != access.place or (name not in _ASSETS and name not in self._posts):
            raise AccessRefused(404, access.refusal)
        access.check_cookie(request)
        if name in self._posts:
            _check_method(request, "POST")
            access.check_origin(request)
            return await self._posts[name](request)
        _check_method(request, "GET", "HEAD")
        access.check_fetch(request)
        return _asset(_ASSETS[name])

    async def _feed(self, _request: HttpRequest) -> ServerResponse:
        if self._streams >= STREAMS_MAX:
            raise AccessRefused(
                429, f"The page already has {STREAMS_MAX} open streams, the maximum: close a tab and try again."
            )
        headers = _headers("application/x-ndjson")
        return ServerResponse(status=200, headers=headers, body=self._stream())

    async def _stream(self) -> AsyncGenerator[bytes]:
        self._streams += 1
        try:
            async with aclosing(feed(self._board)) as messages:
                async for message in messages:
                    yield message
        finally:
            self._streams -= 1

    async def _act(self, request: HttpRequest) -> ServerResponse:
        if request.header("content-type") != "application/json":
            raise AccessRefused(415, "The Content-Type of an action must be application/json.")
        try:
            wanted = msgspec.json.decode(request.body or b"", type=_Action)
        except msgspec.DecodeError as error:
            raise AccessRefused(400, f"Cannot decode the body of the action: {error}.") from None
        try:
            return _json({"message": await act(self._board, wanted.action, wanted.service)})
        except ActionRefused as refused:
            return _json({"message": str(refused)}, status=409)


async def new_link(address: str, key: str) -> str:
    """A new one-time URL of a page that another program of this user serves."""
    from steersman.transport import HttpTransport  # noqa: PLC0415 - imports aiohttp

    transport = HttpTransport(address)
    try:
        request = HttpRequest("POST", "/link", headers=(("Authorization", f"Bearer {key}"),), body=b"")
        async with await transport.send(request) as response:
            body = await response.read(limit=_BODY_MAX)
            if response.status != 200:
                raise AccessRefused(response.status, body.decode("utf-8", "replace").strip())
            return msgspec.json.decode(body, type=dict[str, str])["url"]
    finally:
        await transport.close()


def _check_method(request: HttpRequest, *allowed: str) -> None:
    if request.method not in allowed:
        raise AccessRefused(405, f"{request.method} is not allowed here: use {' or '.join(allowed)}.")


def _opened(cookie: str, path: str) -> ServerResponse:
    """A document that leads to the page.

    A redirect would not work: if the link was on another site, the browser sends no strict cookie with it.
    """
    body = f'<!doctype html><title>Steersman</title><meta http-equiv="refresh" content="0; url={path}">'
    headers = (*_headers("text/html; charset=utf-8"), ("Set-Cookie", cookie))
    return ServerResponse(status=200, headers=headers, body=f"{body}<a href={path}>Continue to the page</a>\n".encode())


def _asset(name: str) -> ServerResponse:
    kind = _TYPES[name.rpartition(".")[2]]
    return ServerResponse(
        status=200, headers=_headers(f"{kind}; charset=utf-8", documents=name.endswith(".html")), body=_read(name)
    )


@cache
def _read(name: str) -> bytes:
    from importlib.resources import files  # noqa: PLC0415 - only if a browser opens the page

    return (files("steersman.ui.page") / "assets" / name).read_bytes()


def _json(value: Any, *, status: int = 200) -> ServerResponse:
    return ServerResponse(status=status, headers=_headers("application/json"), body=msgspec.json.encode(value))


def _text(status: int, words: str) -> ServerResponse:
    return ServerResponse(status=status, headers=_headers("text/plain; charset=utf-8"), body=f"{words}\n".encode())


def _headers(content_type: str, *, documents: bool = False) -> tuple[tuple[str, str], ...]:
    return (("Content-Type", content_type), *security_headers(documents=documents).items())
