"""Events (events.k8s.io/v1): what a controller did or could not do, shown by ``kubectl describe``.

Guarantees
- `record` returns immediately and never raises. Events wait in a bounded buffer; overflow is counted and dropped.
  An unavailable API server costs events, never a reconcile.
- Similar events become one with a count (see `steersman.client.events.series`), so no object is flooded.
- Leaving the block writes the remaining events, for a few seconds at most.
"""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import AsyncExitStack
from typing import Literal, Self

import msgspec

from steersman import aio
from steersman.client.client import Client
from steersman.client.events.series import Series, SeriesLog
from steersman.client.patch_documents import MergePatch
from steersman.errors import (
    AlreadyExists,
    ApiError,
    ConnectionFailed,
    DeadlineExceeded,
    GatewayTimeout,
    InternalError,
    NotFound,
    OutcomeUnknown,
    ServerTimeout,
    ServiceUnavailable,
    TooManyRequests,
)
from steersman.kinds.core_v1 import ObjectReference
from steersman.kinds.events_v1 import Event, EventSeries
from steersman.objects import Key, MicroTime, Object, ObjectMeta, Unstructured, format_time

_log = logging.getLogger("steersman.events")

EventType = Literal["Normal", "Warning"]

#: How many events may wait to be written.
CAPACITY = 1000

#: How often to check for series that are due or over.
_LOOK_SECONDS = 30.0

#: How many times to try a write that fails for a transient reason.
_ATTEMPTS = 5

#: How long leaving the block waits for the remaining events.
_LEAVE_SECONDS = 3.0

# limits of the API
_WORD_MAX = 128
_NOTE_BYTES_MAX = 1024
_CONTROLLER = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_OBJECT_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")

_MAY_PASS = (
    ConnectionFailed,
    DeadlineExceeded,
    GatewayTimeout,
    InternalError,
    OutcomeUnknown,
    ServerTimeout,
    ServiceUnavailable,
    TooManyRequests,
)


class EventStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to the recorded events."""

    #: Events created, and series written.
    written: int
    #: Occurrences only counted, as part of a series.
    counted: int
    #: Dropped: too many for one object, too many at once, or rejected by the server.
    dropped: int
    #: Waiting to be written.
    waiting: int


class _Told:
    """An event as first written, and when it was last seen."""

    __slots__ = ("event", "last")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.last: MicroTime = event.event_time


class EventRecorder:
    """Writes events: ``async with EventRecorder(client, controller="site-operator", instance=name) as events: ...``.

    `controller` names the program, as in ``example.com/site-operator``; `instance` distinguishes its replicas.
    """

    def __init__(self, client: Client, *, controller: str, instance: str) -> None:
        if not _CONTROLLER.fullmatch(controller):
            raise ValueError(
                f"invalid controller name for events: {controller!r}; use a name such as site-operator or"
                " example.com/site-operator, its last part at most 63 characters"
            )
        if not instance:
            raise ValueError("events need the name of the reporting instance, for example the Pod's name")
        self._client = client
        self._controller = controller
        self._instance = instance[:_WORD_MAX]
        self._waiting: aio.Channel[Event] = aio.Channel(CAPACITY)
        self._series: SeriesLog[_Told] = SeriesLog()
        self._owner = AsyncExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._refusals: set[str] = set()
        self._written = 0
        self._counted = 0
        self._dropped = 0
        self._taken = 0
        self._settled = 0

    @property
    def idle(self) -> bool:
        """Whether every recorded event has been written, counted or dropped."""
        return self._taken == self._settled

    def record(
        self,
        regarding: Object | Unstructured | ObjectReference,
        type: EventType,  # noqa: A002 - Kubernetes' own noun
        reason: str,
        action: str,
        note: str,
        related: Object | Unstructured | ObjectReference | None = None,
    ) -> None:
        """Record that `action` happened or failed, and why: ``record(site, "Warning", "NoImage", "Deploying", "...")``.

        `reason` and `action` are upper camel case words for machines; `note` is for people. Thread-safe.
        """
        try:
            if why := _mistake(type, reason, action):
                self._dropped += 1
                _log.warning("dropped an event about %s: %s", _shown(regarding), why)
                return
            event = self._event(regarding, type, reason, action, note, related)
            loop = self._loop
            if loop is None or _running() is loop:
                self._enqueue(event)
            else:
                loop.call_soon_threadsafe(self._enqueue, event)
        except Exception:  # noqa: BLE001 - recording an event must not break the work it is about
            self._dropped += 1
            _log.warning("dropped an event: %s %s", type, reason, exc_info=True)

    def statistics(self) -> EventStatistics:
        """Return what happened to the events so far."""
        return EventStatistics(
            written=self._written,
            counted=self._counted,
            dropped=self._dropped,
            waiting=self._waiting.statistics().buffered,
        )

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        tasks = await self._owner.enter_async_context(aio.Supervisor())
        self._worker = tasks.start(self._work(), name=f"events of {self._controller}")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._waiting.close()
        try:
            await asyncio.wait([self._worker], timeout=_LEAVE_SECONDS)
        finally:
            self._worker.cancel()
            # a failure of the block is not one of the worker
            await self._owner.aclose()

    def _event(
        self,
        regarding: Object | Unstructured | ObjectReference,
        kind: str,
        reason: str,
        action: str,
        note: str,
        related: Object | Unstructured | ObjectReference | None,
    ) -> Event:
        subject = reference_to(regarding)
        return Event(
            # events about cluster-scoped objects go to the default namespace
            metadata=ObjectMeta(namespace=subject.namespace or "default", name=_name_for(subject.name or "")),
            event_time=MicroTime.of(aio.utc_now()),
            reporting_controller=self._controller,
            reporting_instance=self._instance,
            type=kind,
            reason=reason[:_WORD_MAX],
            action=action[:_WORD_MAX],
            note=_cut(note),
            regarding=subject,
            related=reference_to(related) if related is not None else None,
        )

    def _enqueue(self, event: Event) -> None:
        try:
            self._waiting.send_nowait(event)
            self._taken += 1
        except (aio.ChannelFull, aio.ChannelClosed):
            self._dropped += 1

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        look_at = loop.time() + _LOOK_SECONDS
        while True:
            event = None
            try:
                async with asyncio.timeout_at(look_at):
                    event = await self._waiting.receive()
            except TimeoutError:
                look_at = loop.time() + _LOOK_SECONDS
            except aio.ChannelClosed:
                break
            if event is not None:
                await self._take(event, loop.time())
                self._settled += 1
                continue
            for series in self._series.take_due(loop.time()):
                await self._write(series, create=False)
        for series in self._series.take_due(loop.time(), all_of_them=True):
            await self._write(series, create=False)

    async def _take(self, event: Event, now: float) -> None:
        assert event.regarding is not None
        subject = _identity(event.regarding)
        alike = (subject, _identity(event.related), event.type, event.reason, event.action)
        verdict, series = self._series.observe(subject, alike, _Told(event), now)
        series.content.last = event.event_time
        match verdict:
            case "create":
                await self._write(series, create=True)
            case "write":
                await self._write(series, create=False)
            case "count":
                self._counted += 1
            case "drop":
                self._dropped += 1

    async def _write(self, series: Series[_Told], *, create: bool) -> None:
        backoff = aio.Backoff(initial=0.5, factor=2.0, maximum=10.0, jitter=0.5)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                if create:
                    await self._create(series)
                else:
                    await self._patch(series)
            except ApiError as error:
                if attempt == _ATTEMPTS or not isinstance(error, _MAY_PASS):
                    self._give_up(series, error)
                    return
                await asyncio.sleep(backoff.next_delay(aio.randomness()))
            except Exception as error:  # noqa: BLE001 - one failed event must not end the worker
                self._give_up(series, error)
                return
            else:
                self._written += 1
                return

    async def _create(self, series: Series[_Told]) -> None:
        event, last = series.content.event, series.content.last
        if series.count > 1:
            event.series = EventSeries(count=series.count, last_observed_time=last)
        try:
            await self._client.create(event)
        except AlreadyExists:
            # an earlier attempt succeeded, but its response was lost
            return

    async def _patch(self, series: Series[_Told]) -> None:
        event, last = series.content.event, series.content.last
        change = {"count": series.count, "lastObservedTime": format_time(last)}
        try:
            await self._client.patch(Event, event.key, MergePatch({"series": change}))
        except NotFound:
            # the event has expired, or its creation failed
            await self._create(series)

    def _give_up(self, series: Series[_Told], error: Exception) -> None:
        self._dropped += 1
        kind = type(error).__name__
        # warn once per kind of failure, then log at debug
        level = logging.DEBUG if kind in self._refusals else logging.WARNING
        self._refusals.add(kind)
        _log.log(level, "dropped event %s of %s: %s", series.content.event.reason, self._controller, error)


def reference_to(obj: Object | Unstructured | ObjectReference) -> ObjectReference:
    """A reference to an object, as events store it."""
    if isinstance(obj, ObjectReference):
        return obj
    key: Key = obj.key
    untyped = isinstance(obj, Unstructured)
    return ObjectReference(
        api_version=obj.api_version,
        kind=obj.kind,
        namespace=key.namespace or None,
        name=key.name,
        uid=obj.metadata.get("uid") if untyped else obj.metadata.uid,
        resource_version=obj.metadata.get("resourceVersion") if untyped else obj.metadata.resource_version,
    )


def _identity(reference: ObjectReference | None) -> tuple[str | None, ...]:
    """The identity of a reference: the object and its field path, without the version."""
    if reference is None:
        return ()
    ref = reference
    return (ref.api_version, ref.kind, ref.namespace, ref.name, ref.uid, ref.field_path)


def _name_for(subject: str) -> str:
    """A unique name for an event, starting with its object's name if the rules for names allow it."""
    suffix = aio.name_suffix(12)
    start = subject[: 253 - len(suffix) - 1].rstrip("-.")
    return f"{start}.{suffix}" if _OBJECT_NAME.fullmatch(start) else f"event.{suffix}"


def _cut(note: str) -> str:
    raw = note.encode("utf-8", "replace")
    return note if len(raw) <= _NOTE_BYTES_MAX else raw[: _NOTE_BYTES_MAX - 3].decode("utf-8", "ignore") + "..."


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _mistake(kind: str, reason: str, action: str) -> str:
    """Why the server would reject an event, and what to write; empty if it would not."""
    if kind not in {"Normal", "Warning"}:
        return f'its type must be "Normal" or "Warning" (got {kind!r}); write record(obj, "Normal", {reason!r}, ...)'
    if not reason or not action:
        return (
            'it needs a reason and an action, one word each; write record(obj, "Normal", "Created", "Creating", note)'
        )
    return ""


def _shown(regarding: Object | Unstructured | ObjectReference) -> str:
    if isinstance(regarding, Object | Unstructured):
        return f"{regarding.kind} {regarding.key}"
    return f"{regarding.kind} {regarding.namespace}/{regarding.name}"
