"""A response body that a test feeds piece by piece, and that can be pushed to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from steersman.transport import Push, ServerResponse
from steersman.wire import HttpRequest


class Stream:
    """A body that yields what is put into its queue, and fails at an exception."""

    def __init__(self) -> None:
        self.push: Push | None = None
        self.pieces: asyncio.Queue[bytes | Exception] = asyncio.Queue()
        self.waits, self.ended = asyncio.Event(), asyncio.Event()

    def push_to(self, push: Push) -> None:
        self.push = push

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while True:
                if self.pieces.empty():
                    self.waits.set()
                piece = await self.pieces.get()
                if isinstance(piece, Exception):
                    raise piece
                if not piece:
                    return
                yield piece
        finally:
            self.ended.set()

    async def handle(self, request: HttpRequest) -> ServerResponse:
        del request
        return ServerResponse(status=200, body=self)

    def put(self, *pieces: bytes | Exception) -> None:
        for piece in pieces:
            self.pieces.put_nowait(piece)
