"""One connection to the engine, for raw bytes in and raw bytes out."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import aiohttp
import pytest_asyncio

from steersman.testing import Engine


class Wire:
    """Raw requests to the API server."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Send bytes, receive bytes; anything but success fails the test with the server's words."""
        headers = {"Content-Type": "application/json"}
        async with self.session.request(method, path, data=body, headers=headers) as answer:
            raw = await answer.read()
            assert answer.status < 300, f"{method} {path}: {raw.decode()}"
            return raw


@pytest_asyncio.fixture(scope="session")
async def wire(engine: Engine) -> AsyncIterator[Wire]:
    """The engine's API server."""
    async with aiohttp.ClientSession(
        base_url=engine.url,
        headers={"Authorization": f"Bearer {engine.admin_token}"},
        connector=aiohttp.TCPConnector(limit=1, ssl=ssl.create_default_context(cafile=engine.ca_file)),
    ) as session:
        yield Wire(session)
