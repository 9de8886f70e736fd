"""The copy of a container's output to files: a command of the runtime that follows one run."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from steersman.workloads.processes import Ended, FailedToStart, Lost, Process, ProcessEvent

#: Seconds that a copy may take to end after its container, and after it was stopped.
_PATIENCE = 2.0


class OutputCopy:
    """Follows the output of one run."""

    def __init__(self) -> None:
        self.process: Process | None = None
        self._ended = asyncio.Event()

    def on_event(self, event: ProcessEvent) -> None:
        """Note the end of the command."""
        if isinstance(event, Ended | FailedToStart | Lost):
            self._ended.set()

    def stop(self) -> None:
        """End the copy now."""
        if self.process is not None:
            self.process.stop(signal=15, timeout=1.0)

    async def finish(self) -> None:
        """Wait until all output of a run that has ended is in the files, and stop a copy that takes longer."""
        if not await self._ends():
            self.stop()
            await self._ends()

    async def _ends(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._ended.wait()
        return self._ended.is_set()
