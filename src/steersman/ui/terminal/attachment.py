"""Connects the user's terminal to the terminal of a service until Ctrl-], or until the program ends.

Guarantees
- Keys, including Ctrl-C, go to the program unchanged, so pdb and shells work.
- A slow terminal slows the copying down instead of filling the memory.
- Detaching resets the terminal modes that the program has set.
"""

from __future__ import annotations

import asyncio
from typing import Final

from steersman.telemetry import visible
from steersman.ui.board import Board
from steersman.ui.rows import service_of
from steersman.ui.terminal.screen import Screen
from steersman.workloads import TerminalConnection

_DETACH: Final = b"\x1d"
#: Resets mouse reports, application cursor keys, bracketed paste, the alternate screen, cursor and colors.
_RESET: Final = b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1l\x1b>\x1b[?2004l\x1b[?1049l\x1b[?25h\x1b[0m\r\n"


def terminal_socket(board: Board, service: str) -> str | None:
    """The path of the terminal socket of a running service; None without a terminal."""
    for executable in board.objects.executables.values():
        status = executable.status
        if service_of(executable) == service and status is not None and status.state == "Running":
            return status.terminal_socket_path
    return None


def no_terminal_words(board: Board, service: str) -> str:
    """The message about a service without a terminal: why it has none, and what to do."""
    row = board.row(service)
    if row.kind == "container":
        return f"{service} is a container: run steersman exec {service} -- sh instead"
    replica_set = board.objects.replica_sets.get(service)
    if replica_set is None or replica_set.spec.template.spec.terminal is None:
        return f"{service} has no terminal: set tty: true for it in the file"
    if row.waiting_for:
        return f"{service} has not started: it waits for {row.waiting_for}"
    return f"{service} is not running (state: {row.state}): press t again once it runs"


class Attachment:
    """A connection between a screen and the terminal of a service."""

    def __init__(self, screen: Screen, link: TerminalConnection) -> None:
        self._screen, self._link = screen, link
        self._task = asyncio.current_task()
        self._is_detached = False

    def resize(self) -> None:
        """Give the terminal of the service the size of the screen."""
        size = self._screen.size
        self._link.resize(columns=size.columns, rows=size.rows)

    def press(self, data: bytes) -> None:
        """Send keys to the service, except the key that detaches."""
        before, detach, _ = data.partition(_DETACH)
        if before:
            self._link.write(before)
        if detach and self._task is not None and not self._is_detached:
            self._is_detached = True
            self._task.cancel()

    async def run(self, service: str) -> bool:
        """Copy output until the end. Call it in the task that created the attachment. Returns whether the user detached."""
        self._screen.lend()
        self._screen.send(f"Attached to {visible(service)}. Ctrl-] detaches.\r\n".encode())
        self.resize()
        try:
            while data := await self._link.read():
                self._screen.send(data)
                await self._screen.drained()
        except asyncio.CancelledError:
            if not self._is_detached or self._task is None or self._task.uncancel():
                raise
        finally:
            self._screen.send(_RESET)
        return self._is_detached
