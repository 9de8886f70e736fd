"""Where causes come from: watched kinds.

Guarantees
- A source calls ``started`` once, when everything that was there at its start has been told.
- What was there at the start, and looks without a change, come with low priority.
- User code in the way (predicates, mappers) that fails loses nothing it does not have to: a failing predicate lets the
  event pass, a failing mapper is logged and counted with the object it failed on; the source goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

import msgspec

from steersman.controller.causes import Cause, Request
from steersman.controller.events import ObjectEvent
from steersman.controller.mappers import NO_STORES, Mapper, Stores
from steersman.controller.predicates import Predicate
from steersman.controller.queue_state import LOW_PRIORITY

_log = logging.getLogger("steersman.controller")

#: Takes a request, its cause and its priority; never waits.
Emit: TypeAlias = Callable[[Request, Cause, int], None]


class SourceStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What came through a source."""

    name: str
    started: bool
    events: int
    #: Events that a predicate held back.
    filtered: int
    emitted: int
    #: Failures of predicates and mappers.
    failures: int
    last_failure: str = ""


class Source(Protocol):
    """Tells a controller what to reconcile."""

    @property
    def name(self) -> str:
        """How logs and pages speak of it."""
        ...

    async def run(self, emit: Emit, started: Callable[[], None]) -> None:
        """Emit until cancelled; call ``started`` when everything that was there at the start was emitted."""
        ...

    def statistics(self) -> SourceStatistics:
        """What came through."""
        ...


class Registration(Protocol):
    """A handler's place at an informer."""

    async def wait_synced(self) -> None:
        """Wait until the handler was told everything that was there at the start."""
        ...


class Watched(Protocol):
    """A kind that is being watched, seen from a controller: it can be listened to."""

    def listen(self, handler: Callable[[ObjectEvent], None]) -> AbstractAsyncContextManager[Registration]:
        """Call ``handler`` with every event for as long as the block lasts."""
        ...


class KindSource:
    """Requests from the events of one kind."""

    def __init__(
        self,
        name: str,
        watched: Watched,
        mapper: Mapper,
        *,
        predicate: Predicate | None = None,
        stores: Stores = NO_STORES,
        before: Callable[[ObjectEvent], None] | None = None,
    ) -> None:
        self.name = name
        self._watched = watched
        self._mapper = mapper
        self._predicate = predicate
        self._stores = stores
        self._before = before
        self._emit: Emit | None = None
        self._started = False
        self._events = self._filtered = self._emitted = self._failures = 0
        self._last_failure = ""

    async def run(self, emit: Emit, started: Callable[[], None]) -> None:
        """Listen until cancelled."""
        self._emit = emit
        async with self._watched.listen(self._handle) as registration:
            await registration.wait_synced()
            self._started = True
            started()
            await asyncio.get_running_loop().create_future()

    def statistics(self) -> SourceStatistics:
        """What came through."""
        return SourceStatistics(
            name=self.name,
            started=self._started,
            events=self._events,
            filtered=self._filtered,
            emitted=self._emitted,
            failures=self._failures,
            last_failure=self._last_failure,
        )

    def _handle(self, event: ObjectEvent) -> None:
        self._events += 1
        if self._before is not None:
            self._before(event)
        if not self._passes(event):
            self._filtered += 1
            return
        try:
            requests = tuple(self._mapper.requests(event, self._stores))
        except Exception as error:  # noqa: BLE001 - user code: whatever it raises is an error of this event
            self._failed("mapper", event, error)
            return
        cause = event.cause()
        priority = LOW_PRIORITY if event.initial or event.resync else 0
        assert self._emit is not None
        for request in requests:
            self._emitted += 1
            self._emit(request, cause, priority)

    def _passes(self, event: ObjectEvent) -> bool:
        if self._predicate is None:
            return True
        try:
            return self._predicate(event)
        except Exception as error:  # noqa: BLE001 - as above; one reconcile too many is better than one too few
            self._failed("predicate", event, error)
            return True

    def _failed(self, what: str, event: ObjectEvent, error: Exception) -> None:
        self._failures += 1
        self._last_failure = f"{what} on {event!r}: {type(error).__name__}: {error}"
        extra: dict[str, Any] = {"source": self.name, "key": str(event.key)}
        _log.error("source %s: %s", self.name, self._last_failure, exc_info=error, extra=extra)
