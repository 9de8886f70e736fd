"""The controllers of one term. Each starts when its caches are fresh, and each can be added and removed on its own.

Guarantees
- In a term of leadership, a controller starts when every kind that it watches is at least as new as the server was when
  the term began. A read of another kind waits until that kind is too.
- A kind that is not served, or may not be listed, delays only the controllers that watch it, unless it is optional.
- Removing a controller drains it, for a limited time, and does not disturb the others.
- A controller that fails ends the term with its error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from steersman.aio import Supervisor
from steersman.cache import Informer
from steersman.client import Client
from steersman.controller import NO_EVENTS, Blueprint, Controller, Events, KeyRecord, Request
from steersman.manager.caches import AnyKind, ManagedCache
from steersman.telemetry import Registry

#: Called with the controller's name and the record of a finished reconcile.
OnRecord = Callable[[str, KeyRecord], None]


class Barrier:
    """Holds back each controller until the kinds that it watches are as new as the server was."""

    def __init__(self, cache: ManagedCache, tasks: Supervisor) -> None:
        self._cache = cache
        # Informers that start later list everything anyway.
        self._informers = cache.informers()
        self._fresh = {
            kind: tasks.start(informer.catch_up(), name=f"catch up with {informer.gvk.kind}")
            for kind, informer in self._informers.items()
        }

    def stop(self) -> None:
        """Stop waiting: no controller passes any more."""
        for task in self._fresh.values():
            task.cancel()

    async def passed(self, kinds: Iterable[AnyKind]) -> None:
        """Wait until all these kinds are fresh."""
        waiting = [self._fresh[kind] for kind in kinds if self._concerns(kind)]
        if waiting:
            await asyncio.wait(waiting)

    def behind(self, kinds: Iterable[AnyKind]) -> list[Informer[object]]:
        """The informers of these kinds that are not fresh yet."""
        return [self._informers[kind] for kind in kinds if self._concerns(kind) and not self._fresh[kind].done()]

    def _concerns(self, kind: AnyKind) -> bool:
        """Whether the informer of this kind existed when the term began.

        An informer that was released, because its last controller was removed, never catches up. Its successor lists
        everything.
        """
        return kind in self._fresh and self._cache.informers().get(kind) is self._informers[kind]


class _Entry:
    """A controller and the task that runs it."""

    def __init__(self, controller: Controller, kinds: Iterable[AnyKind]) -> None:
        self.controller = controller
        self.kinds = tuple(kinds)
        self.task: asyncio.Task[None] | None = None
        self.begun = False

    async def run(self, barrier: Barrier | None) -> None:
        if barrier is not None:
            await barrier.passed(self.kinds)
        self.begun = True
        await self.controller.run()

    def stop(self) -> None:
        self.controller.stop()
        if not self.begun and self.task is not None:
            self.task.cancel()


class TermControllers:
    """The controllers of one client, each a task of one supervisor."""

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
        admits: Callable[[Request], bool] | None = None,
    ) -> None:
        self._cache = cache
        self._client = client
        self._tasks = tasks
        self._barrier = Barrier(cache, tasks) if fresh else None
        self._on_record = on_record
        self._events = events
        self._registry = registry
        self._admits = admits
        self._entries: dict[str, _Entry] = {}

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """The controllers, in the order in which they were started."""
        return tuple(entry.controller for entry in self._entries.values())

    def behind(self, name: str) -> list[Informer[object]]:
        """The informers that keep a controller from starting because they are older than the term."""
        entry = self._entries.get(name)
        if entry is None or entry.begun or self._barrier is None:
            return []
        return self._barrier.behind(entry.kinds)

    def start(self, blueprint: Blueprint) -> None:
        """Make the controller of a blueprint and run it."""
        on_record = partial(self._on_record, blueprint.name)
        entry = _Entry(
            blueprint.assemble(
                self._cache,
                self._client,
                on_record=on_record,
                events=self._events,
                registry=self._registry,
                admits=self._admits,
            ),
            blueprint.required_kinds(),
        )
        self._entries[blueprint.name] = entry
        entry.task = self._tasks.start(entry.run(self._barrier), name=f"controller {blueprint.name}")

    def stop(self) -> None:
        """Let running reconciles end, and start no more."""
        for entry in self._entries.values():
            entry.stop()
        if self._barrier is not None:
            self._barrier.stop()

    async def remove(self, name: str, *, grace: float) -> None:
        """Drain one controller, and cancel it after ``grace`` seconds."""
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
