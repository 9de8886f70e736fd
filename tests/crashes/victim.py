"""The operator that is killed: one process that runs, and one that is about to."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import IO, Self

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("operator_process.py")


class Victim:
    """``async with Victim("examples.NAME.operator:manager", environment, log) as victim: victim.kill()``."""

    def __init__(self, target: str, environment: dict[str, str], log: Path) -> None:
        self._target = target
        self._environment = os.environ | environment
        self._log: IO[bytes] = log.open("ab")
        self._running: asyncio.subprocess.Process | None = None
        self._spare: asyncio.subprocess.Process | None = None
        self.kills = 0

    async def __aenter__(self) -> Self:
        self._spare = await self._prepare()
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in (self._running, self._spare):
            if process is not None and process.returncode is None:
                process.kill()
                await process.wait()
        self._log.close()

    async def _prepare(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, str(PROGRAM), self._target,
            cwd=ROOT, env=self._environment, stderr=self._log,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip

    async def start(self) -> None:
        """Let the one that is prepared run, and prepare the next."""
        assert self._running is None
        assert self._spare is not None
        assert self._spare.stdin is not None
        assert self._spare.stdout is not None
        said = await self._spare.stdout.readline()
        assert said == b"ready\n", f"the operator did not start: {said!r}, see {self._log.name}"
        self._spare.stdin.write(b"go\n")
        self._running, self._spare = self._spare, await self._prepare()

    async def kill(self) -> None:
        """Kill -9; returns when there is no such process any more."""
        assert self._running is not None
        assert self._running.returncode is None, f"the operator ended by itself, see {self._log.name}"
        self._running.kill()
        await self._running.wait()
        self._running = None
        self.kills += 1

    def check(self) -> None:
        """It runs."""
        assert self._running is not None
        assert self._running.returncode is None, f"the operator ended by itself, see {self._log.name}"
