"""Sources of causes: watched kinds.

Guarantees
- A source calls ``started`` once, when it has delivered every object that was present at its start.
- Objects present at the start, and resyncs, have low priority.
- Failing user code (predicates, mappers) loses nothing. A failing predicate lets the event pass. A failing mapper is
  retried with growing delays until it succeeds (see `steersman.controller.sources.mapping_retries`). Both are logged and
  counted with the object; other objects are not affected.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

import msgspec

from steersman.aio import randomness
from steersman.cache import IndexPending, ObjectEvent, StoredView
from steersman.controller.causes import Cause, Request
from steersman.controller.queue.state import LOW_PRIORITY
from steersman.controller.sources.mappers import NO_STORES, Mapper, Stores
from steersman.controller.sources.mapping_retries import MappingRetries, remainder, single
from steersman.controller.sources.predicates import Predicate
from steersman.controller.sources.views import cause_of
from steersman.errors import DecodeError, is_exit
from steersman.objects import GroupVersionKind
from steersman.telemetry import error_words, user_frames

_log = logging.getLogger("steersman.controller")

#: Seconds between two failures that a source logs with a traceback: a mapper that fails on everything must not fill the
#: disk.
_LOG_EVERY = 1.0

#: Called with a request, its cause and its priority; never waits.
Emit: TypeAlias = Callable[[Request, Cause, int], None]


class SourceStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The counters of a source."""

    name: str
    #: The kind that it watches, as `steersman.cache.InformerStatistics` names it; empty for other sources.
    kind: str = ""
    started: bool
    events: int
    #: Events that a predicate filtered out.
    filtered: int
    emitted: int
    #: Failures of predicates and mappers.
    failures: int
    last_failure: str = ""
    #: Objects whose mapper failed and is being retried.
    retrying: int = 0
    #: Deleted objects whose mapper failed too often: their events were dropped.
    given_up: int = 0
    #: Work of the source itself that leads to requests without anything else happening: calls in progress, events held back.
    pending: int = 0
    #: Objects whose next call waits until an earlier request can no longer arrive.
    in_doubt: int = 0
    #: In how many seconds the last call that failed comes again; None if none does.
    next_retry: float | None = None
    #: Functions of `@daemon` that run now.
    running: int = 0


class Source(Protocol):
    """Feeds a controller with requests."""

    @property
    def name(self) -> str:
        """The name in logs and on pages."""
        ...

    async def run(self, emit: Emit, started: Callable[[], None]) -> None:
        """Emit until cancelled; call ``started`` when everything present at the start was emitted."""
        ...

    def statistics(self) -> SourceStatistics:
        """The counters of this source."""
        ...


class FinishingSource(Protocol):
    """A source with work of its own, such as calls to a service, that should end before the controller does."""

    async def finish(self) -> None:
        """Start nothing more, and return when what is in progress has ended. Cancelled after the grace period."""
        ...


class StoppingSource(Protocol):
    """A source that starts work of its own, such as calls to a service."""

    def stop(self) -> None:
        """Start nothing more. Called when the controller stops, once or more, while its running reconciles still end."""
        ...


class Registration(Protocol):
    """A handler registered with an informer."""

    async def wait_synced(self) -> None:
        """Wait until the handler was called for every object present at the start."""
        ...


class KindEvents(Protocol):
    """A watched kind that a controller can listen to."""

    def listen(self, handler: Callable[[ObjectEvent], None]) -> AbstractAsyncContextManager[Registration]:
        """Call ``handler`` with every event while the block lasts."""
        ...


class KindSource:
    """Turns the events of one kind into requests."""

    def __init__(
        self,
        name: str,
        watched: KindEvents,
        mapper: Mapper,
        *,
        kind: GroupVersionKind | None = None,
        predicate: Predicate | None = None,
        stores: Stores = NO_STORES,
        before: Callable[[ObjectEvent], None] | None = None,
    ) -> None:
        self.name = name
        self._kind = kind
        self._watched = watched
        self._mapper = mapper
        self._predicate = predicate
        self._stores = stores
        self._before = before
        self._emit: Emit | None = None
        self._started = False
        self._events = self._filtered = self._emitted = self._failures = 0
        self._last_failure = ""
        self._retries = MappingRetries()
        self._timer: asyncio.TimerHandle | None = None
        #: When a failure was last logged, and how many were not logged since.
        self._logged: float | None = None
        self._unlogged = 0

    async def run(self, emit: Emit, started: Callable[[], None]) -> None:
        """Listen until cancelled."""
        self._emit = emit
        try:
            async with self._watched.listen(self._handle) as registration:
                await registration.wait_synced()
                self._started = True
                started()
                await asyncio.get_running_loop().create_future()
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def statistics(self) -> SourceStatistics:
        """The counters of this source."""
        return SourceStatistics(
            name=self.name,
            kind=str(self._kind or ""),
            started=self._started,
            events=self._events,
            filtered=self._filtered,
            emitted=self._emitted,
            failures=self._failures,
            last_failure=self._last_failure,
            retrying=len(self._retries),
            given_up=self._retries.given_up,
        )

    def _handle(self, event: ObjectEvent) -> None:
        self._events += 1
        if self._before is not None:
            try:
                self._before(event)
            except BaseException as error:
                # An object that cannot be read is an error of that object.
                if is_exit(error):
                    raise
                self._failed("reading", event, error, "it goes on")
        if self._passes(event):
            try:
                self._map(self._retries.merged(event))
            except IndexPending:
                self._events -= 1  # the informer repeats the call
                raise
        else:
            self._filtered += 1
            self._retries.update(event)

    def _map(self, event: ObjectEvent) -> None:
        try:
            requests = tuple(self._mapper.requests(event, self._stores))
        except IndexPending:
            raise
        except BaseException as error:
            # User code: whatever it raises is an error of this object.
            if is_exit(error):
                raise
            self._map_states(event, error)
            return
        if self._retries and self._retries.succeeded(event.key):
            _log.info("source %s: the mapper succeeds again on %r", self.name, event, extra=self._fields(event))
        self._send(event, requests)

    def _send(self, event: ObjectEvent, requests: Iterable[Request]) -> None:
        cause = cause_of(event)
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
        except BaseException as error:
            # User code: one reconcile too many is better than one too few.
            if is_exit(error):
                raise
            self._failed("predicate", event, error, "the event passes")
            return True

    # failed mappers

    def _map_states(self, event: ObjectEvent, error: BaseException) -> None:
        """Emit the states on which the mapper succeeds, and schedule a retry of the others."""
        failed: list[StoredView] = []
        requests: dict[Request, None] = {}
        for view in event.states if len(event.states) > 1 else ():
            try:
                requests |= dict.fromkeys(self._mapper.requests(single(event, view), self._stores))
            except IndexPending:
                raise
            except BaseException as other:
                if is_exit(other):
                    raise
                # A past state that cannot be decoded never will be, and no reconcile has read it.
                if view is event.new or not isinstance(other, DecodeError):
                    failed.append(view)
        self._send(event, requests)
        if failed or len(event.states) == 1:
            self._retry(remainder(event, failed) if failed else event, error)
        else:
            self._retries.succeeded(event.key)
            self._failed("mapper", event, error, "the states it could not read are gone")

    def _retry(self, event: ObjectEvent, error: BaseException) -> None:
        loop = asyncio.get_running_loop()
        delay = self._retries.failed(event, now=loop.time(), rng=randomness())
        then = "the object is gone, and its event is dropped" if delay is None else f"retrying in {delay:.1f} s"
        self._failed("mapper", event, error, then)
        self._set_timer(loop)

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        due = self._retries.next_due
        if self._timer is not None:
            if self._timer.when() == due:
                return
            self._timer.cancel()
        self._timer = None if due is None else loop.call_at(due, self._retry_due)

    def _retry_due(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        for event in self._retries.due(loop.time()):
            while True:
                try:
                    self._map(event)
                    break
                except IndexPending as pending:
                    # A retry is rare, and cannot wait.
                    for _ in pending.build():
                        pass
        self._set_timer(loop)

    def _failed(self, what: str, event: ObjectEvent, error: BaseException, then: str) -> None:
        self._failures += 1
        self._last_failure = f"{what} on {event!r}: {error_words(error)}"[:4000]
        moment = asyncio.get_running_loop().time()
        if self._logged is not None and moment - self._logged < _LOG_EVERY:
            self._unlogged += 1
            _log.debug("source %s: %s; %s", self.name, self._last_failure, then, extra=self._fields(event))
            return
        more = f" ({self._unlogged} more failures since the last line)" if self._unlogged else ""
        self._logged, self._unlogged = moment, 0
        _log.error(
            "source %s: %s; %s%s",
            self.name,
            self._last_failure,
            then,
            more,
            exc_info=user_frames(error),
            extra=self._fields(event),
        )

    def _fields(self, event: ObjectEvent) -> dict[str, Any]:
        return {"source": self.name, "key": str(event.key)}
