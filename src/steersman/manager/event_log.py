"""The events of a manager's controllers: nothing is opened before the first one is told.

Guarantees
- Telling returns at once and never raises; what is told while the manager does not run is not heard.
- The recorder outlives the controllers: what they told last is written, for a moment and no longer.
"""

from __future__ import annotations

import asyncio
import platform
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

from steersman import aio
from steersman.client import Client
from steersman.objects import Object, Unstructured

if TYPE_CHECKING:
    from steersman.client.events import EventRecorder
    from steersman.kinds.core_v1 import ObjectReference

#: What a name may hold that reports events.
_FOREIGN = re.compile(r"[^-A-Za-z0-9_.]+")
_NAME_MAX = 63


class EventLog:
    """Records events under a manager's name."""

    def __init__(self, name: str) -> None:
        self._name = _FOREIGN.sub("-", name)[:_NAME_MAX].strip("-_.") or "steersman"
        self._client: Client | None = None
        self._tasks: aio.Supervisor | None = None
        self._recorder: EventRecorder | None = None
        self._closing = asyncio.Event()

    @property
    def idle(self) -> bool:
        """Whether everything that was told has been written."""
        return self._recorder is None or self._recorder.idle

    def record(
        self,
        regarding: Object | Unstructured | ObjectReference,
        type: Literal["Normal", "Warning"],  # noqa: A002 - Kubernetes' own noun
        reason: str,
        action: str,
        note: str,
        related: Object | Unstructured | ObjectReference | None = None,
    ) -> None:
        """Tell that ``action`` was taken or failed, and why."""
        recorder = self._recorder or self._open()
        if recorder is not None:
            recorder.record(regarding, type, reason, action, note, related)

    @asynccontextmanager
    async def opened(self, client: Client) -> AsyncGenerator[None]:
        """Hear what is told, for as long as the block lasts."""
        self._client = client
        async with aio.Supervisor() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                self._tasks = None
                self._closing.set()

    def _open(self) -> EventRecorder | None:
        if self._tasks is None or self._client is None:
            return None
        from steersman.client.events import EventRecorder  # noqa: PLC0415 - most tests and many programs tell nothing

        instance = f"{self._name}-{platform.node() or 'unnamed'}"
        self._recorder = EventRecorder(self._client, controller=self._name, instance=instance)
        self._tasks.start(self._write(self._recorder), name=f"events of {self._name}")
        return self._recorder

    async def _write(self, recorder: EventRecorder) -> None:
        async with recorder:
            await self._closing.wait()
