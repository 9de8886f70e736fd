"""Waiting for what no event tells."""

import asyncio
from collections.abc import Callable


async def eventually(condition: Callable[[], object], *, within: float = 60.0) -> None:
    """Return when the condition holds; TimeoutError if that takes too long."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 - there is nothing to wait on
            await asyncio.sleep(0.005)
