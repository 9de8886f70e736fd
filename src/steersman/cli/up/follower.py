"""Prints the logs of services and the changes of their states, as lines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from steersman.cli.up.outcomes import change_words
from steersman.cli.up.output import Label, Output
from steersman.ui import Board, LogLine, Row

#: Seconds without a line after which all output counts as printed, and the longest wait for that.
_REST: Final = 0.25
_REST_MAX: Final = 2.0


class Replicas:
    """Numbers the replicas of each service from 1. A replacement takes the number of the replica that it replaces."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._slots: dict[str, dict[int, str]] = {}

    def number(self, service: str, replica: str) -> int:
        """The number of a replica, by the name of its Executable or Container."""
        slots = self._slots.setdefault(service, {})
        for number, name in slots.items():
            if name == replica:
                return number
        living = self._living()
        free = (number for number, name in slots.items() if name not in living)
        number = next(free, len(slots) + 1)
        slots[number] = replica
        return number

    def _living(self) -> set[str]:
        objects = self._board.objects
        running = {
            name
            for name, each in objects.executables.items()
            if each.status is None or each.status.finish_timestamp is None
        }
        return running | objects.containers.keys()


class Follower:
    """Prints the lines and the changes of the services of a board."""

    def __init__(self, board: Board, output: Output, names: Sequence[str] = ()) -> None:
        self._board = board
        self._output = output
        self._names = tuple(names)
        self._replicas = Replicas(board)
        self._shown: dict[str, Row] = {}
        self._last_line = 0.0
        self._align()

    async def follow_lines(self, *, tail: int = 1000, follow: bool = True, timestamps: bool = False) -> None:
        """Print the lines of the services."""
        async with self._board.log_batches(self._names, tail=tail, follow=follow) as batches:
            async for lines in batches:
                await self._output.lines([self._shaped(line, timestamps=timestamps) for line in lines])
                self._last_line = asyncio.get_running_loop().time()

    @property
    def has_lines(self) -> bool:
        """Whether a line was printed."""
        return self._last_line > 0

    async def rest(self) -> None:
        """Wait until the lines that services have written so far are printed."""
        loop = asyncio.get_running_loop()
        begun = self._last_line = loop.time()
        while (now := loop.time()) - begun < _REST_MAX and (left := self._last_line + _REST - now) > 0:  # noqa: ASYNC110
            await asyncio.sleep(left)

    async def follow_changes(self) -> None:
        """Print changes of state until cancelled."""
        version = self._board.version
        while True:
            self.show_changes()
            version = await self._board.wait_changed(version)

    def show_changes(self) -> None:
        """Print what has changed since the last call."""
        self._align()
        for row in self._board.rows:
            if self._names and row.name not in self._names:
                continue
            before = self._shown.get(row.name)
            if before is not None and row.restarts > before.restarts and (reason := self._restart_reason(row.name)):
                self._output.note(f"{row.name} restarts: {reason}")
            if words := change_words(before, row):
                self._output.note(f"{row.name} {words}")
            self._shown[row.name] = row

    def _restart_reason(self, name: str) -> str:
        replica_set = self._board.objects.replica_sets.get(name)
        observed = replica_set.status.steersman if replica_set is not None and replica_set.status is not None else None
        return (observed.last_restart_reason if observed is not None else None) or ""

    def _align(self) -> None:
        rows = [row for row in self._board.rows if not self._names or row.name in self._names]
        self._output.align(max((len(row.name) + 2 for row in rows), default=0))

    def _shaped(self, line: LogLine, *, timestamps: bool) -> tuple[Label, str, bool]:
        order = next((row.order for row in self._board.rows if row.name == line.service), 0)
        label = Label(f"{line.service}-{self._replicas.number(line.service, line.replica)}", order)
        moment = f"{line.time.isoformat(timespec='milliseconds')} " if timestamps and line.time is not None else ""
        return label, f"{moment}{line.text}", line.stream == "stderr"
