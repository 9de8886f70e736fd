"""How long a loop could not answer, and how much memory that took, while something else was done."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from pathlib import Path
from time import process_time  # noqa: TID251 - how long others wait is what is looked at
from types import TracebackType
from typing import Self

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class LoopGauge:
    """``async with LoopGauge() as gauge: ...``, then look at `blocked` and `memory`.

    Time is that of the processor: it counts the same on a machine that is busy with other things.
    """

    def __init__(self) -> None:
        #: The longest time between two turns of the loop, in seconds of the processor.
        self.blocked = 0.0
        #: By how many bytes the memory of the process grew at most.
        self.memory = 0
        self._before = 0
        self._last = process_time()

    async def __aenter__(self) -> Self:
        self._before = _begin()
        self._task = asyncio.create_task(self._turns())  # noqa: TID251 - ended below
        await asyncio.sleep(0)
        self._last = process_time()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.look()
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self.memory = _bytes("VmHWM") - self._before

    async def _turns(self) -> None:
        while True:
            await asyncio.sleep(0.002)
            self.look()

    def look(self) -> None:
        """Note a turn of the loop."""
        now = process_time()
        self.blocked = max(self.blocked, now - self._last)
        self._last = now


def _begin() -> int:
    gc.collect()
    _RESET.write_text("5")
    return _bytes("VmRSS")


def _bytes(name: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024
