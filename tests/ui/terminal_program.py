"""A program with the terminal view and a board of made-up services: ``terminal_program.py SERVICES LINES_PER_BATCH``.

With 0 lines per batch the services print one line each. ``fail`` as a third argument raises an error after a second.
A search for ``slow`` ends when a service is restarted.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

from steersman import aio
from steersman.ui.joined_logs import LogLine
from steersman.ui.log_search import Excerpt, LogMatches
from steersman.ui.rows import Row
from steersman.ui.terminal import run_terminal


class MadeUpBoard:
    """Services that run, the first of which prints."""

    def __init__(self, services: int, batch: int, *, fails: bool) -> None:
        self.rows = tuple(
            Row(name=f"service{number}", kind="process", state="running", since=aio.utc_now())
            for number in range(services)
        )
        self.connected = True
        self._batch, self._fails = batch, fails
        self.searches = 0
        self._restarted = asyncio.Event()

    async def wait_changed(self, since: int | None = None) -> int:
        if self._fails and since is not None:
            raise RuntimeError("the board failed")
        if since is not None:
            await asyncio.Event().wait()
        return 1

    @asynccontextmanager
    async def log_batches(self, names: Sequence[str] = (), **options: Any) -> AsyncIterator[AsyncIterator[list[Any]]]:
        yield self._lines()

    async def _lines(self) -> AsyncIterator[list[LogLine]]:
        names = [row.name for row in self.rows]
        yield [LogLine(service=name, replica=name, stream="stdout", text=f"{name} says hello") for name in names]
        number = 0
        while self._batch:
            number += 1
            text = f"{number} " + "x" * 90
            yield [LogLine(service=names[0], replica=names[0], stream="stdout", text=text) for _ in range(self._batch)]
        await asyncio.Event().wait()

    async def search_logs(self, text: str, names: Sequence[str] = (), **options: Any) -> LogMatches:
        self.searches += 1
        if text == "slow":
            await self._restarted.wait()
        lines = tuple(
            LogLine(service=name, replica=name, stream="stdout", text=f"{name} said {text} {number} hours ago")
            for name in names or ["service0"]
            for number in (3, 2, 1)
        )
        return LogMatches((Excerpt(lines, tuple(range(len(lines)))),), len(lines))

    async def restart(self, name: str) -> None:
        self._restarted.set()
        raise RuntimeError("the server refused it")


async def main() -> None:
    board = MadeUpBoard(int(sys.argv[1]), int(sys.argv[2]), fails="fail" in sys.argv)
    quits: list[str] = []

    def on_quit(number: signal.Signals | None) -> None:
        quits.append(number.name if number is not None else "key")
        task.cancel()

    async with aio.Supervisor() as tasks:
        task = tasks.start(run_terminal(cast("Any", board), on_quit=on_quit), name="terminal")
        with suppress(asyncio.CancelledError):
            await task
    sys.stdout.write(f"on_quit was called with {quits}, searches: {board.searches}\n")


asyncio.run(main())
