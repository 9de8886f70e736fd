"""The Kubernetes Events of a manager's controllers. The recorder opens with the first event.

Guarantees
- `record` returns at once and never raises. Events recorded while the log is closed are dropped.
- With leader election, each term has its own recorder, and its events go through the term's fence. A deposed leader
  writes none, and neither does a task that outlives its term.
- The recorder outlives the controllers briefly, to write their last events.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

from steersman import aio
from steersman.client import Client
from steersman.objects import Object, Unstructured

if TYPE_CHECKING:
    from steersman.client import EventRecorder
    from steersman.kinds.core_v1 import ObjectReference

#: Characters that the name of a reporting controller may not contain.
_FOREIGN = re.compile(r"[^-A-Za-z0-9_.]+")
_NAME_MAX = 63


class _Log:
    """Records events while it has a recorder."""

    def record(
        self,
        regarding: Object | Unstructured | ObjectReference,
        type: Literal["Normal", "Warning"],  # noqa: A002 - Kubernetes' own noun
        reason: str,
        action: str,
        note: str,
        related: Object | Unstructured | ObjectReference | None = None,
    ) -> None:
        """Record that ``action`` was taken or failed, and why; dropped while the manager does not run or lead."""
        recorder = self.open_recorder()
        if recorder is not None:
            recorder.record(regarding, type, reason, action, note, related)

    def open_recorder(self) -> EventRecorder | None:
        """The recorder, opened with the first event; None while events are dropped."""
        raise NotImplementedError


class OpenLog(_Log):
    """The events of one term, or of a whole run without leader election."""

    def __init__(self, name: str, client: Client, tasks: aio.Supervisor) -> None:
        self._name = name
        self._client = client
        self._tasks: aio.Supervisor | None = tasks
        self._recorder: EventRecorder | None = None
        self._closing = asyncio.Event()

    @property
    def idle(self) -> bool:
        """Whether every recorded event has been written."""
        return self._recorder is None or self._recorder.idle

    def close(self) -> None:
        """Accept no more events. The recorder writes the remaining ones."""
        self._tasks = None
        self._closing.set()

    def open_recorder(self) -> EventRecorder | None:
        """The recorder, opened with the first event; None once the log is closed, if it recorded nothing."""
        if self._recorder is not None or self._tasks is None:
            return self._recorder
        from steersman.client import EventRecorder  # noqa: PLC0415 - many programs and most tests record nothing

        instance = f"{self._name}-{aio.host_name() or 'unnamed'}"
        self._recorder = EventRecorder(self._client, controller=self._name, instance=instance)
        self._tasks.start(self._write(self._recorder), name=f"events of {self._name}")
        return self._recorder

    async def _write(self, recorder: EventRecorder) -> None:
        async with recorder:
            await self._closing.wait()


class EventLog(_Log):
    """Records events under a manager's name, in the current term if there is leader election."""

    def __init__(self, name: str) -> None:
        self._name = _FOREIGN.sub("-", name)[:_NAME_MAX].strip("-_.") or "steersman"
        self._current: OpenLog | None = None

    @property
    def idle(self) -> bool:
        """Whether every recorded event has been written."""
        return self._current is None or self._current.idle

    def open_recorder(self) -> EventRecorder | None:
        """The recorder of the current term, if there is one."""
        return None if self._current is None else self._current.open_recorder()

    @asynccontextmanager
    async def opened(self, client: Client) -> AsyncGenerator[OpenLog]:
        """Write events with this client while the block lasts."""
        async with aio.Supervisor() as tasks:
            self._current = current = OpenLog(self._name, client, tasks)
            try:
                yield current
            finally:
                self._current = None
                current.close()
