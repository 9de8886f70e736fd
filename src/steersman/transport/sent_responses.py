"""Sends the responses of a listener.

Guarantees
- A response is sent no faster than its client reads, and for no longer than its deadline.
- A response that fails halfway ends the connection: it never looks complete.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable
from functools import lru_cache

from aiohttp import HttpVersion11, web

from steersman.transport.connection_ends import abort
from steersman.transport.protocol import Push, Pushing, ServerResponse
from steersman.wire import Pairs

_log = logging.getLogger("steersman.transport")

_PIECE_MAX = 64 * 1024
# The listener frames responses, not the handler.
_FRAMING = frozenset({"content-length", "transfer-encoding", "connection", "keep-alive"})


async def send_response(incoming: web.BaseRequest, reply: ServerResponse) -> web.StreamResponse:
    """Send a response, and release what it holds."""
    deadline = asyncio.timeout_at(reply.deadline)
    try:
        async with deadline:
            return await _send(incoming, reply)
    except TimeoutError:
        if not deadline.expired():
            raise
        # The connection is closed: the client reads too slowly.
        return web.StreamResponse(status=reply.status)
    finally:
        reply.release()


async def _send(incoming: web.BaseRequest, reply: ServerResponse) -> web.StreamResponse:
    body = reply.body
    # a short response is sent together with its head
    is_short = isinstance(body, bytes) and len(body) <= _PIECE_MAX
    outgoing = web.Response(status=reply.status, body=body) if is_short else web.StreamResponse(status=reply.status)
    closes = _add_headers(outgoing, reply.headers)
    # What follows a CONNECT must not be read as a request. The parser reads nothing after an upgrade, which no handler
    # offers: the client must not wait for answers to later requests.
    if closes or incoming.method == "CONNECT" or "Upgrade" in incoming.headers:
        outgoing.force_close()
    if isinstance(body, bytes) and not is_short:
        outgoing.content_length = len(body)
    whole = False
    pieces = body if isinstance(body, bytes) else aiter(body)
    try:
        await outgoing.prepare(incoming)
        if incoming.method != "HEAD" and not is_short:
            if isinstance(body, Pushing) and incoming.version >= HttpVersion11:
                body.push_to(_pusher(incoming))
            await _send_body(outgoing, pieces)
        await outgoing.write_eof()
        whole = True
    except ConnectionError:
        pass  # the client disconnected
    except Exception:  # noqa: BLE001 - a failure halfway must not look like the end of the response
        _log.exception("the response to %s %s failed halfway", incoming.method, incoming.path)
    finally:
        if (finish := getattr(pieces, "aclose", None)) is not None:
            # an abandoned iterator keeps its resources until it is closed
            await finish()
        if not whole and incoming.transport is not None:
            abort(incoming.transport)
    return outgoing


def _add_headers(outgoing: web.StreamResponse, headers: Pairs) -> bool:
    """Add the handler's headers; returns whether it asked to close the connection."""
    closes = False
    for name, value in headers:
        lower = name.lower()
        if lower not in _FRAMING:
            outgoing.headers.add(name, value)
        closes = closes or (lower == "connection" and value.lower() == "close")
    outgoing.headers.setdefault("Server", "steersman")
    return closes


async def _send_body(outgoing: web.StreamResponse, body: bytes | AsyncIterable[bytes]) -> None:
    if isinstance(body, bytes):
        view = memoryview(body)
        for start in range(0, len(body), _PIECE_MAX):
            await outgoing.write(view[start : start + _PIECE_MAX])
        return
    async for piece in body:
        # a slow client then holds a part of a piece, which may be shared, and not a copy of all of it
        await _send_body(outgoing, piece)


def _pusher(incoming: web.BaseRequest) -> Push:
    """A function that writes pieces of a chunked response directly, while the task that iterates over it waits."""
    protocol, transport = incoming.protocol, incoming.transport

    def push(piece: bytes) -> bool:
        if transport is None or protocol.writing_paused or transport.is_closing() or len(piece) > _PIECE_MAX:
            return False
        transport.write(_chunk(piece))
        return True

    return push


@lru_cache(maxsize=1)
def _chunk(piece: bytes) -> bytes:
    """A piece framed for a chunked body; cached, since one piece often goes to many clients."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)
