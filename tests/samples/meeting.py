"""Where plays of one scenario on two servers wait for each other, and are compared."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from samples.tree_differences import differences

#: How long two servers may take to show the same, once both are where they should be.
SETTLE_SECONDS = 60.0


class Meeting:
    """Where the plays of one scenario wait for each other and are compared; what differed, by checkpoint."""

    def __init__(self) -> None:
        self.differences: dict[str, str] = {}
        self.checkpoints: list[str] = []
        self._barrier = asyncio.Barrier(2)
        self._states: dict[str, Callable[[], Awaitable[list[Any]]]] = {}

    async def compare(self, server: str, label: str, state: Callable[[], Awaitable[list[Any]]]) -> None:
        """Wait until both are here and show the same; note what differs if they never do."""
        self._states[server] = state
        place = await self._barrier.wait()
        if place == 0:
            self.checkpoints.append(label)
            difference = await self._settled(*self._states.items())
            if difference:
                self.differences[label] = difference
        await self._barrier.wait()

    async def leave(self) -> None:
        """Let no play wait for one that has failed."""
        await self._barrier.abort()

    @staticmethod
    async def _settled(*states: tuple[str, Callable[[], Awaitable[list[Any]]]]) -> str:
        deadline = asyncio.get_running_loop().time() + SETTLE_SECONDS
        (_, embedded), (_, engine) = sorted(states)
        while True:
            here, there = await asyncio.gather(embedded(), engine())
            if here == there:
                return ""
            if asyncio.get_running_loop().time() > deadline:
                return "\n".join(differences(there, here))
            await asyncio.sleep(0.1)
