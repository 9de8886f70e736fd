"""The records of Containers, and the events of the container runtime that change them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from steersman.aio import Supervisor
from steersman.controller import Emit
from steersman.workloads.containers import ContainerRunner, ContainerRuntimeError, RuntimeEvent
from steersman.workloads.controllers.container_run import Run
from steersman.workloads.world import World

_log = logging.getLogger("steersman.workloads")
#: Seconds until leftovers are looked for if there is no Container.
_NO_HURRY = 3.0
#: The work that reads the facts of a container for the first time.
_READING = frozenset({"look", "start"})
#: The actions of events that the start of a container causes itself.
_BEGINNINGS = frozenset({"create", "init", "start"})


class ContainerWorld(World[Run]):
    """Follows the events of the runtime, as soon as there is a Container.

    With the first Container, or seconds after the start, it also removes what killed sessions have left in the runtime.
    """

    def __init__(self, runner: ContainerRunner, *, limit: int) -> None:
        super().__init__("containers", Run, limit=limit)
        self._runner = runner
        self._needed = asyncio.Event()

    def work(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Run slow work as a task. From the first work on, events are followed."""
        self._needed.set()
        return super().work(work, name=name)

    async def run(self, emit: Emit, started: Callable[[], None]) -> None:
        """Emit until cancelled."""
        async with Supervisor() as tasks:
            tasks.start(self._harvest(), name="leftovers of killed sessions")
            tasks.start(self._listen(), name="events of the container runtime")
            try:
                await super().run(emit, started)
            finally:
                tasks.cancel()

    async def _harvest(self) -> None:
        # Without containers there is no hurry, and the commands of the runtime would slow down the start of processes.
        with suppress(TimeoutError):
            async with asyncio.timeout(_NO_HURRY):
                await self._needed.wait()
        try:
            removed = await self._runner.harvest()
        except ContainerRuntimeError as error:
            _log.debug("no leftovers of killed sessions were looked for: %s", error)
        else:
            if removed:
                _log.info("removed what a killed session had left behind: %s", ", ".join(removed))

    async def _listen(self) -> None:
        await self._needed.wait()
        async for event in self._runner.events():
            if event.kind in {"", "container"}:
                self._hear(event)

    def _hear(self, event: RuntimeEvent) -> None:
        for uid, run in self:
            facts = run.facts
            if facts is not None and event.id in {"", facts.id}:
                self.defer(uid, _mark_stale, event.action or "events were lost")
            elif facts is None and (run.missing or (run.outage and not event.id)):
                self.defer(uid, _look_again, event.action)
            elif facts is None and run.work in _READING and event.action not in _BEGINNINGS:
                self.defer(uid, partial(_mark_early_end, event.id), event.action)


def _mark_stale(run: Run) -> None:
    run.stale = True


def _mark_early_end(identity: str, run: Run) -> None:
    """A container may end while its start still reads the facts, or before these are in the record."""
    known = {"", run.created, run.again} if run.facts is None else {"", run.facts.id}
    if identity in known or (run.facts is None and run.work == "look"):
        run.stale = True


def _look_again(run: Run) -> None:
    run.looked, run.retry_at = False, 0.0
