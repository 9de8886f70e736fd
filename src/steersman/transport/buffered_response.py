"""A response already in memory: for transports between a client and a server, or that respond themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator

from multidict import CIMultiDictProxy

from steersman.aio import Closable
from steersman.transport.protocol import MAX_BODY


class BufferedResponse(Closable):
    """A response already in memory."""

    def __init__(self, status: int, headers: CIMultiDictProxy[str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self._body = body

    async def read(self, limit: int = MAX_BODY) -> bytes:
        """The whole body, of any length."""
        del limit
        return self._body

    async def chunks(self, *, idle_timeout: float | None = None) -> AsyncIterator[bytes]:
        """The whole body at once."""
        del idle_timeout
        if self._body:
            yield self._body

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""
