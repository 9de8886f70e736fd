"""Watches the state folder of a running session.

Guarantees
- If the record of a session is removed or replaced, the session ends, because no command could find it again.
- The user is notified once when the disk of the logs is full, and once when it has space again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from steersman.projects.session_record import RECORD, SessionRecord, read_record

#: Seconds between two checks without a call of `look`.
_INTERVAL: Final = 2.0
#: Free bytes below which a disk counts as full.
_FULL: Final = 64 << 10


class StateGuard:
    """Checks a state folder at intervals, and when `look` is called."""

    def __init__(self, record: SessionRecord, report: Callable[[str], None]) -> None:
        self._record, self._report = record, report
        self._state = Path(record.state)
        self._changed = asyncio.Event()

    def look(self) -> None:
        """Check the folder now."""
        self._changed.set()

    def is_lost(self) -> bool:
        """Whether the record of the session was removed, or replaced by another session."""
        with suppress(OSError):
            if not (self._state / RECORD).exists():
                return True
        found = read_record(self._state)
        return found is not None and (found.pid, found.start) != (self._record.pid, self._record.start)

    async def run(self) -> None:
        """Run until the record is lost, and report that."""
        was_full = False
        while not self.is_lost():
            is_full = _is_full(self._state)
            if is_full and not was_full:
                self._report(f"the disk of {self._state} is full: log lines are lost until you free space")
            elif was_full and not is_full:
                self._report(f"the disk of {self._state} has space again: new log lines are kept")
            was_full = is_full
            with suppress(TimeoutError):
                async with asyncio.timeout(_INTERVAL):
                    await self._changed.wait()
            self._changed.clear()
        self._report(
            f"stopping: the session record in {self._state} was removed or replaced, so no command can find this session;"
            " start it again with steersman up"
        )


def _is_full(folder: Path) -> bool:
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < _FULL
