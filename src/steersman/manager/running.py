"""The controllers of one term: each begins behind fresh caches, and each can come and go by itself.

Guarantees
- In a term of leadership a controller begins when every kind it watches, and every kind that is there to be read, is at
  least as new as the server was when the term began. A kind that is not served holds up only those that watch it.
- Removing one drains it, for a time, and disturbs no other.
- One that fails fails the term.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from steersman.aio import Supervisor
from steersman.cache import Informer
from steersman.client import Client
from steersman.controller import NO_EVENTS, Controller, ControllerPlan, Events, KeyRecord
from steersman.manager.caches import AnyKind, ManagedCache
from steersman.telemetry import Registry

#: Is told the name of a controller and what it did.
OnRecord = Callable[[str, KeyRecord], None]

#: How often to look whether a kind that is waited for is still served.
_LOOK = 0.5


class Barrier:
    """Lets controllers through when their kinds have been read again."""

    def __init__(self, cache: ManagedCache, tasks: Supervisor) -> None:
        # an informer that starts later than this reads everything anyway
        self._fresh = {kind: asyncio.Event() for kind in cache.informers()}
        # what is complete can be read at any time, also by those who do not watch it; what is not, its readers wait for
        self._readable = {kind: informer for kind, informer in cache.informers().items() if informer.synced}
        self._reading = [
            tasks.start(self._refresh(kind, informer), name=f"read {informer.gvk.kind} again")
            for kind, informer in cache.informers().items()
        ]

    async def _refresh(self, kind: AnyKind, informer: Informer[object]) -> None:
        await informer.refresh()
        self._fresh[kind].set()

    def stop(self) -> None:
        """Read nothing more: nobody will pass. A kind that is not served would be waited for."""
        for task in self._reading:
            task.cancel()

    async def passed(self, kinds: Iterable[AnyKind]) -> None:
        """Wait until all these kinds are fresh, and all that are there to be read."""
        for kind in kinds:
            if (fresh := self._fresh.get(kind)) is not None:
                await fresh.wait()
        for kind, informer in self._readable.items():
            while informer.served and not self._fresh[kind].is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK):
                        await self._fresh[kind].wait()


class _Entry:
    """A controller and the task that runs it."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.task: asyncio.Task[None] | None = None
        self.begun = False

    async def run(self, barrier: Barrier | None, kinds: Iterable[AnyKind]) -> None:
        if barrier is not None:
            await barrier.passed(kinds)
        self.begun = True
        await self.controller.run()

    def stop(self) -> None:
        self.controller.stop()
        if not self.begun and self.task is not None:
            self.task.cancel()


class Running:
    """The controllers that run with one client, each as a task of one supervisor."""

    def __init__(
        self,
        cache: ManagedCache,
        client: Client,
        tasks: Supervisor,
        *,
        fresh: bool,
        on_record: OnRecord,
        events: Events = NO_EVENTS,
        registry: Registry | None = None,
    ) -> None:
        self._cache = cache
        self._client = client
        self._tasks = tasks
        self._barrier = Barrier(cache, tasks) if fresh else None
        self._on_record = on_record
        self._events = events
        self._registry = registry
        self._entries: dict[str, _Entry] = {}

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """In the order in which they came."""
        return tuple(entry.controller for entry in self._entries.values())

    def start(self, plan: ControllerPlan) -> None:
        """Make the controller of a plan and run it."""
        on_record = partial(self._on_record, plan.name)
        entry = _Entry(
            plan.assemble(self._cache, self._client, on_record=on_record, events=self._events, registry=self._registry)
        )
        self._entries[plan.name] = entry
        entry.task = self._tasks.start(entry.run(self._barrier, plan.kinds()), name=f"controller {plan.name}")

    def stop(self) -> None:
        """Let what runs end, and start nothing more."""
        for entry in self._entries.values():
            entry.stop()
        if self._barrier is not None:
            self._barrier.stop()

    async def remove(self, name: str, *, grace: float) -> None:
        """Drain one controller, and end it after so many seconds."""
        entry = self._entries.get(name)
        if entry is None or entry.task is None:
            return
        entry.stop()
        try:
            await asyncio.wait((entry.task,), timeout=grace)
        finally:
            if not entry.task.done():
                entry.task.cancel()
                await asyncio.wait((entry.task,))
            self._entries.pop(name, None)
