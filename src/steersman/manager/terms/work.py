"""The work of a manager: its controllers, at once or in terms of leadership."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from steersman.aio import Supervisor, utc_now
from steersman.client import Client
from steersman.controller import Blueprint, Events
from steersman.manager.builtin_checks import LeadershipCheck
from steersman.manager.caches import ManagedCache
from steersman.manager.event_log import EventLog
from steersman.manager.leader import Term
from steersman.manager.stages import Stages
from steersman.manager.state import State
from steersman.manager.term_controllers import OnRecord, TermControllers
from steersman.telemetry import Registry


class Work:
    """Runs the controllers of one manager until it stops."""

    def __init__(
        self,
        name: str,
        state: State,
        *,
        stages: Stages,
        events: EventLog,
        leadership: LeadershipCheck,
        registry: Registry,
        blueprints: Callable[[], tuple[Blueprint, ...]],
        on_record: OnRecord,
    ) -> None:
        self._name = name
        self._state = state
        self._stopping = state.stopping
        self._stages = stages
        self._events = events
        self._leadership = leadership
        self._registry = registry
        self._blueprints = blueprints
        self._on_record = on_record

    async def run(self, cache: ManagedCache, client: Client) -> None:
        """Work until the manager stops."""
        state = self._state
        try:
            if state.election is None:
                state.warn_unelected(self._name, client.server, self._blueprints())
                state.working = True
                async with self._events.opened(client) as events:
                    await self._reconcile(cache, client, events, fresh=False)
                return
            await cache.warm_up(self._stopping)
            if not self._stopping.is_set():
                await self._work_in_terms(cache, client)
        finally:
            state.drained.set()
            self._stopping.set()

    async def _work_in_terms(self, cache: ManagedCache, client: Client) -> None:
        state = self._state
        assert state.election is not None
        async with state.election.campaign(client, hesitates=cache.is_stale) as campaign:
            state.campaign = campaign
            async for term in campaign:
                state.working = True
                async with term:
                    await self._lead(cache, term)
                if self._stopping.is_set():
                    return
                state.working = False

    async def _lead(self, cache: ManagedCache, term: Term) -> None:
        self._state.since = utc_now()
        self._leadership.entered(term)
        try:
            # Inside the term, so that its fence lets the last events pass.
            async with self._events.opened(term.client) as events:
                await self._reconcile(cache, term.client, events, fresh=True)
        finally:
            self._state.since = None
            self._leadership.entered(None)

    async def _reconcile(self, cache: ManagedCache, client: Client, events: Events, *, fresh: bool) -> None:
        """Run the controllers of this term, which are new ones, until they are stopped."""
        if self._stopping.is_set():
            return
        try:
            async with self._stages.led(client), Supervisor() as tasks:
                if self._stopping.is_set():
                    return  # `stop` found no controllers to stop
                running = TermControllers(
                    cache, client, tasks, fresh=fresh, on_record=self._on_record, events=events, registry=self._registry
                )
                self._state.running = running
                for blueprint in self._led_blueprints():
                    running.start(blueprint)
                duty = self._start_duty(client, tasks)
                await self._stopping.wait()
                if duty is not None:
                    duty.cancel()
        finally:
            self._state.running = None

    def _led_blueprints(self) -> Iterable[Blueprint]:
        """The controllers that only the leading process runs."""
        return self._blueprints()

    def _start_duty(self, _client: Client, _tasks: Supervisor) -> asyncio.Task[None] | None:
        """Start what the leading process does beside its controllers until the stop."""
        return None
