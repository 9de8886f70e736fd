"""The records of Containers, and the events of the container runtime that change them."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from steersman.aio import Backoff, Supervisor, randomness
from steersman.controller import Emit
from steersman.workloads.containers import ContainerRunner, ContainerRuntimeError, RuntimeEvent, RuntimeUnavailable
from steersman.workloads.controllers.container_run import Run
from steersman.workloads.kinds import ContainerAttach
from steersman.workloads.monitored_process import wait_for_end
from steersman.workloads.world import World

_log = logging.getLogger("steersman.workloads")
#: Seconds until leftovers are looked for if there is no Container.
_NO_HURRY = 3.0
#: Seconds until leftovers are looked for again if the runtime does not answer, and at most if something is in use.
_HARVEST_AGAIN, _HARVEST_SELDOM = 5.0, 300.0
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
        self._watches: Supervisor | None = None
        #: The tasks that wait for the programs that start containers, by the uid of the Container.
        self._clients: dict[str, asyncio.Task[None]] = {}

    def work(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Run slow work as a task. From the first work on, events are followed."""
        self._needed.set()
        return super().work(work, name=name)

    async def run(self, emit: Emit, started: Callable[[], None]) -> None:
        """Emit until cancelled."""
        async with Supervisor() as tasks:
            tasks.start(self._harvest(), name="leftovers of killed sessions")
            tasks.start(self._listen(), name="events of the container runtime")
            self._watches = tasks
            try:
                await super().run(emit, started)
            finally:
                self._watches = None
                tasks.cancel()

    def watch_client(self, uid: str, attach: ContainerAttach) -> None:
        """Wait for the end of the program that starts a container, and note it in the record."""
        if uid not in self._clients and self._watches is not None and sys.platform == "linux":
            name = f"client of a container: pid {attach.pid}"
            self._clients[uid] = self._watches.start(self._wait_for_client(uid, attach), name=name)

    def forget(self, uid: str) -> None:
        """Drop a record, when nothing of it is left in the real world."""
        super().forget(uid)
        task = self._clients.pop(uid, None)
        if task is not None:
            task.cancel()

    async def _wait_for_client(self, uid: str, attach: ContainerAttach) -> None:
        try:
            await wait_for_end(attach.pid, attach.start_ticks)
        except OSError as error:
            # Without a descriptor its end would be missed, and the container would stay for good.
            _log.warning("cannot watch the client of a container, so it counts as ended: pid %d: %s", attach.pid, error)
        self.defer(uid, _mark_client_ended, "the program that started the container has ended")

    async def _harvest(self) -> None:
        # Without containers there is no hurry, and the commands of the runtime would slow down the start of processes.
        with suppress(TimeoutError):
            async with asyncio.timeout(_NO_HURRY):
                await self._needed.wait()
        pauses = Backoff(initial=_HARVEST_AGAIN, maximum=_HARVEST_SELDOM)
        while True:
            try:
                removed = await self._runner.harvest()
            except ContainerRuntimeError as error:
                _log.debug("leftovers of killed sessions are looked for again later: %s", error)
                if isinstance(error, RuntimeUnavailable):
                    pauses.reset()
            else:
                if removed:
                    _log.info("removed what a killed session had left behind: %s", ", ".join(removed))
                return
            # What an earlier session left may have the names and ports of the containers that wait for the runtime.
            await self._needed.wait()
            await asyncio.sleep(pauses.next_delay(randomness()))

    async def _listen(self) -> None:
        await self._needed.wait()
        async for event in self._runner.events():
            if event.kind in {"", "container"}:
                self._hear(event)

    def _hear(self, event: RuntimeEvent) -> None:
        for uid, run in self:
            facts = run.facts
            known = facts.id if facts is not None else run.created if run.attachable else None
            if known is not None and event.id in {"", known}:
                self.defer(uid, _mark_stale, event.action or "events were lost")
            elif facts is None and (run.missing or (run.outage and not event.id)):
                self.defer(uid, _look_again, event.action)
            elif facts is None and run.work in _READING and event.action not in _BEGINNINGS:
                self.defer(uid, partial(_mark_early_end, event.id), event.action)


def _mark_stale(run: Run) -> None:
    run.stale = True


def _mark_client_ended(run: Run) -> None:
    run.client_ended = True


def _mark_early_end(identity: str, run: Run) -> None:
    """A container may end while its start still reads the facts, or before these are in the record."""
    known = {"", run.created, run.again} if run.facts is None else {"", run.facts.id}
    if identity in known or (run.facts is None and run.work == "look"):
        run.stale = True


def _look_again(run: Run) -> None:
    run.looked, run.retry_at = False, 0.0
