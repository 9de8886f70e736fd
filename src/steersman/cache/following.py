"""The IO around a reflector: does what the step commands, and tells it what came of it."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

import msgspec

from steersman import aio
from steersman.cache import reflector
from steersman.cache.intake import Intake, KindOptions
from steersman.cache.reflector import Change, Event, Failed, Mark, Put, Reason, Remove, Settings, State, Stepper
from steersman.cache.stored import Stored
from steersman.client import KindNotServed
from steersman.client.raw_reads import RawReads, RawWatch
from steersman.objects import Key, Kind
from steersman.objects.errors import (
    ApiError,
    BadRequest,
    ConnectionFailed,
    DeadlineExceeded,
    Gone,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    ProtocolError,
    StatusError,
    TooManyRequests,
)
from steersman.wire import ListOptions, WatchFrame, WatchOptions

_log = logging.getLogger("steersman.cache")

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
#: A server that has too much to do is left alone for at least so long, whatever it asks for.
_THROTTLED = 1.0


class _BookmarkMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMetadata


_bookmark_decoder = msgspec.json.Decoder(_Bookmark)


class Sink(Protocol):
    """Where a collection goes."""

    def commit(self, scope: str, objects: dict[Key, Stored], resource_version: str, *, new_epoch: bool) -> None:
        """These are all objects of the scope."""
        ...

    def apply(self, scope: str, changes: tuple[Change, ...], resource_version: str) -> None:
        """These changes came, in order."""
        ...

    def empty(self, scope: str) -> None:
        """The kind is not served any more."""
        ...

    def missing(self, scope: str) -> None:
        """The kind is not served, yet or any more."""
        ...


class Following:
    """One collection of a server, followed into a sink: all namespaces (scope ``""``), or one."""

    def __init__(
        self, reads: RawReads, scope: str, sink: Sink, *, options: KindOptions, intake: Intake, settings: Settings
    ) -> None:
        self._reads = reads
        self.scope = scope
        self._sink = sink
        self._intake = intake
        self._idle_timeout = options.idle_timeout or settings.idle_timeout
        self._stepper = Stepper(settings)
        self._labels = str(options.labels)
        self._fields = str(options.fields)
        self._staged: dict[Key, Stored] = {}
        self._stream: RawWatch | None = None
        self.state = State()
        self.requests = 0
        self.lists = 0
        self.unreadable = 0
        self.last_error: ApiError | None = None
        self._warned = ""

    async def run(self, first: Event) -> None:
        """Follow for ever, beginning with ``first``."""
        loop = asyncio.get_running_loop()
        event: Event = first
        try:
            while True:
                self.state, commands = self._stepper.step(self.state, event, now=loop.time(), rng=aio.randomness())
                answer: Event | None = None
                for command in commands:
                    answer = await self._perform(command)
                event = answer or await self._listen()
        finally:
            await self._close()

    async def _perform(self, command: reflector.Command) -> Event | None:
        match command:
            case reflector.Stage(changes):
                self._stage(changes)
            case reflector.Discard():
                self._staged = {}
            case reflector.Commit(version, new_epoch):
                staged, self._staged = self._staged, {}
                self._warned = ""
                self._sink.commit(self.scope, staged, version, new_epoch=new_epoch)
            case reflector.Apply(changes, version):
                self._sink.apply(self.scope, changes, version)
            case reflector.Empty():
                self._sink.empty(self.scope)
            case reflector.Close():
                await self._close()
            case _:
                return await self._ask(command)
        return None

    async def _ask(self, command: reflector.List | reflector.Probe | reflector.Open | reflector.Sleep) -> Event | None:
        try:
            match command:
                case reflector.Sleep(seconds):
                    await asyncio.sleep(seconds)
                    return reflector.Woke()
                case reflector.List(limit, continue_):
                    return await self._list(limit, continue_)
                case reflector.Probe():
                    self.requests += 1
                    options = ListOptions(label_selector=self._labels, field_selector=self._fields, limit=1)
                    return reflector.Probed((await self._reads.page(self.scope, options)).resource_version)
                case reflector.Open():
                    return await self._open(command)
        except ApiError as error:
            return self._failed(error)

    async def _list(self, limit: int, continue_: str) -> Event:
        self.requests += 1
        self.lists += not continue_
        options = ListOptions(
            label_selector=self._labels, field_selector=self._fields, limit=limit or None, continue_=continue_
        )
        page = await self._reads.page(self.scope, options)
        items = tuple(stored for raw in page.items if (stored := self._admitted(raw)) is not None)
        if continue_ and page.continue_ == continue_:
            raise ProtocolError("list: the server's next page leads to itself; it would never end")
        return reflector.Page(items, page.resource_version, page.continue_)

    async def _open(self, command: reflector.Open) -> Event:
        await self._close()
        self.requests += 1
        self.lists += command.initial
        options = WatchOptions(
            label_selector=self._labels,
            field_selector=self._fields,
            resource_version=command.resource_version,
            resource_version_match="NotOlderThan" if command.initial else "",
            send_initial_events=True if command.initial else None,
            allow_bookmarks=True,
            timeout_seconds=command.seconds,
        )
        self._stream = await self._reads.watch(self.scope, options, idle_timeout=self._idle_timeout)
        return reflector.Opened()

    async def _listen(self) -> Event:
        """What the open stream says next."""
        assert self._stream is not None, "a reflector that waits for nothing"
        try:
            while frames := await self._stream.next_batch():
                if changes := self._changes(frames):
                    return reflector.Changes(changes)
        except ApiError as error:
            await self._close()
            return self._failed(error)
        await self._close()
        return reflector.Ended()

    async def _close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.close()

    def _changes(self, frames: list[WatchFrame]) -> tuple[Change, ...]:
        changes: list[Change] = []
        for frame in frames:
            if frame.type == "BOOKMARK":
                changes.append(_mark(frame.object))
            elif (stored := self._admitted(frame.object)) is not None:
                changes.append(Remove(stored) if frame.type == "DELETED" else Put(stored))
        return tuple(changes)

    def _admitted(self, raw: bytes) -> Stored | None:
        stored = self._intake.admit(raw)
        if stored is None:
            self.unreadable += 1
            _log.warning("the server sent %d bytes of %s that are no object; they are left out", len(raw), self._name)
        return stored

    def _stage(self, changes: tuple[Change, ...]) -> None:
        staged = self._staged
        for change in changes:
            match change:
                case Put(stored):
                    staged[stored.key] = stored
                case Remove(stored):
                    staged.pop(stored.key, None)
                case Mark():
                    pass

    def _failed(self, error: ApiError) -> Failed:
        failure = classify(error)
        self.last_error = error
        if failure.reason == "not_served":
            self._sink.missing(self.scope)
        text = str(error)
        # one failure is everyday life and is made good at once; the second of a kind is worth a line, the third is not
        if self.state.failures and text != self._warned and failure.reason != "not_served":
            self._warned = text
            _log.warning("%s cannot be followed, and is tried again: %s", self._name, text)
        else:
            _log.debug("following %s: %s", self._name, text)
        return failure

    @property
    def _name(self) -> str:
        kind = self._reads.kind
        name = kind.kind if isinstance(kind, Kind) else kind.__name__
        return f"{name} in {self.scope}" if self.scope else name


def _mark(raw: bytes) -> Mark:
    try:
        metadata = _bookmark_decoder.decode(raw).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        metadata = None
    if metadata is None or not metadata.resource_version:
        raise ProtocolError("the server sent a bookmark without a resourceVersion")
    ended = (metadata.annotations or {}).get(_INITIAL_EVENTS_END) == "true"
    return Mark(metadata.resource_version, ended)


def classify(error: ApiError) -> Failed:
    """What a failure means for a reflector."""
    reason: Reason
    retry_after = 0.0
    match error:
        case KindNotServed():
            reason = "not_served"
        case Gone():
            reason = "expired"
        case TooManyRequests():
            reason, retry_after = "throttled", max(error.retry_after or 0.0, _THROTTLED)
        case BadRequest() | Invalid() | MethodNotAllowed() | NotAcceptable():
            reason = "unsupported"
        case ConnectionFailed() | DeadlineExceeded() | ProtocolError():
            reason = "lost"
        case StatusError():
            reason, retry_after = "refused", error.retry_after or 0.0
        case _:
            reason = "refused"
    return Failed(reason, retry_after)
