"""Where causes come from: watched kinds.

Guarantees
- A source calls ``started`` once, when everything that was there at its start has been told.
- What was there at the start, and looks without a change, come with low priority.
- User code in the way (predicates, mappers) that fails loses nothing: a failing predicate lets the event pass, a failing
  mapper is asked again, with growing delays, until it answers (see `steersman.controller.mapping_retries`). Both are
  logged and counted with the object they failed on; the other objects go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

import msgspec

from steersman.aio import randomness
from steersman.controller.causes import Cause, Request
from steersman.controller.events import ObjectEvent, View
from steersman.controller.mappers import NO_STORES, Mapper, Stores
from steersman.controller.mapping_retries import MappingRetries, remainder, single
from steersman.controller.predicates import Predicate
from steersman.controller.queue_state import LOW_PRIORITY
from steersman.objects.errors import DecodeError

_log = logging.getLogger("steersman.controller")

#: So many seconds pass between two failures that a source logs with their traceback: a mapper that fails on everything
#: must not fill the disk.
_LOG_EVERY = 1.0

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
    #: Objects whose mapper failed and is asked again.
    retrying: int = 0
    #: Objects that are gone and whose mapper failed too often: nobody was told.
    given_up: int = 0


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
        self._retries = MappingRetries()
        self._timer: asyncio.TimerHandle | None = None
        #: When a failure was last logged, and how many were not since.
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
        """What came through."""
        return SourceStatistics(
            name=self.name,
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
            except Exception as error:  # noqa: BLE001 - an object that cannot be read is an error of that object
                self._failed("reading", event, error, "it goes on")
        if self._passes(event):
            self._tell(self._retries.merged(event))
        else:
            self._filtered += 1
            self._retries.update(event)

    def _tell(self, event: ObjectEvent) -> None:
        try:
            requests = tuple(self._mapper.requests(event, self._stores))
        except Exception as error:  # noqa: BLE001 - user code: whatever it raises is an error of this object
            self._tell_apart(event, error)
            return
        if self._retries and self._retries.succeeded(event.key):
            _log.info("source %s: the mapper answers again on %r", self.name, event, extra=self._fields(event))
        self._send(event, requests)

    def _send(self, event: ObjectEvent, requests: Iterable[Request]) -> None:
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
            self._failed("predicate", event, error, "the event passes")
            return True

    # mappers that failed

    def _tell_apart(self, event: ObjectEvent, error: Exception) -> None:
        """The mapper failed: tell of the states on which it does not, and ask again about the others."""
        failed: list[View[Any]] = []
        requests: dict[Request, None] = {}
        for view in event.states if len(event.states) > 1 else ():
            try:
                requests |= dict.fromkeys(self._mapper.requests(single(event, view), self._stores))
            except Exception as other:  # noqa: BLE001 - as above
                # What our type cannot hold will never be held, and nobody has read it: once it is gone, it is no matter.
                if view is event.new or not isinstance(other, DecodeError):
                    failed.append(view)
        self._send(event, requests)
        if failed or len(event.states) == 1:
            self._retry(remainder(event, failed) if failed else event, error)
        else:
            self._retries.succeeded(event.key)
            self._failed("mapper", event, error, "the states that it could not read are gone")

    def _retry(self, event: ObjectEvent, error: Exception) -> None:
        loop = asyncio.get_running_loop()
        delay = self._retries.failed(event, now=loop.time(), rng=randomness())
        if delay is None:
            then = "the object is gone, and nobody is told any more"
        else:
            then = f"it is asked again in {delay:.1f} s"
        self._failed("mapper", event, error, then)
        self._set_timer(loop)

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        due = self._retries.next_due
        if self._timer is not None:
            if self._timer.when() == due:
                return
            self._timer.cancel()
        self._timer = None if due is None else loop.call_at(due, self._ask_again)

    def _ask_again(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        for event in self._retries.due(loop.time()):
            self._tell(event)
        self._set_timer(loop)

    def _failed(self, what: str, event: ObjectEvent, error: Exception, then: str) -> None:
        self._failures += 1
        self._last_failure = f"{what} on {event!r}: {type(error).__name__}: {error}"[:4000]
        moment = asyncio.get_running_loop().time()
        if self._logged is not None and moment - self._logged < _LOG_EVERY:
            self._unlogged += 1
            _log.debug("source %s: %s; %s", self.name, self._last_failure, then, extra=self._fields(event))
            return
        more = f" ({self._unlogged} more failures since the last line)" if self._unlogged else ""
        self._logged, self._unlogged = moment, 0
        _log.error(
            "source %s: %s; %s%s", self.name, self._last_failure, then, more, exc_info=error, extra=self._fields(event)
        )

    def _fields(self, event: ObjectEvent) -> dict[str, Any]:
        return {"source": self.name, "key": str(event.key)}
