"""The IO around a reflector: performs the commands of each step and feeds the results back as inputs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator

import msgspec
from msgspec.structs import replace

from steersman import aio
from steersman.cache import reflector
from steersman.cache.contents import SLICE
from steersman.cache.intake import OUTSIDE, Intake, KindOptions, Outside
from steersman.cache.reflector import Change, Failed, Input, Mark, Put, Reason, Remove, Settings, State, Stepper
from steersman.cache.replica import FAILING, Replica
from steersman.cache.statistics import ScopeStatistics
from steersman.cache.stored_object import StoredObject
from steersman.client import RawReads, RawWatch
from steersman.errors import (
    UNREADABLE,
    ApiError,
    BadRequest,
    ConnectionFailed,
    DeadlineExceeded,
    Forbidden,
    Gone,
    Invalid,
    KindNotServed,
    MethodNotAllowed,
    NotAcceptable,
    ProtocolError,
    StatusError,
    TooManyRequests,
    Unauthorized,
)
from steersman.objects import Key, Kind
from steersman.telemetry import LineLimit
from steersman.wire import ListOptions, PageCount, WatchFrame, WatchOptions

_log = logging.getLogger("steersman.cache")

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
#: The minimum wait, in seconds, after a 429 response, whatever its Retry-After says.
_THROTTLED = 1.0
#: This many versions in a row may expire without a warning: a server ends every watch of a kind whose definition changes.
_EXPIRED_QUIETLY = 2
#: The staleness of a store whose watch was interrupted at this very moment.
_INSTANT = 1e-9
#: How a server fails that does not serve at all, as after a crash.
_LOST = frozenset[Reason]({"lost", "silent", "refused"})


class _BookmarkMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMetadata


_bookmark_decoder = msgspec.json.Decoder(_Bookmark)


class ListWatch:
    """Follows one scope of a collection into a replica."""

    def __init__(
        self,
        reads: RawReads,
        scope: str,
        replica: Replica,
        *,
        options: KindOptions,
        intake: Intake,
        settings: Settings,
        on_recovery: Callable[[], None],
    ) -> None:
        self._reads = reads
        self.scope = scope
        self._replica = replica
        self._intake = intake
        self._idle_timeout = options.idle_timeout or settings.idle_timeout
        self._stepper = Stepper(settings)
        self._scopes = replica.scopes
        self._labels = str(options.labels)
        self._fields = self._scopes.fields(scope, options.fields)
        #: A wide scope begins at a version, and its names are read one by one: see `steersman.cache.references`.
        self._is_wide = self._scopes.is_wide(scope)
        self._namespace = replica.scopes.namespace(scope)
        #: `Scopes.losses` when the current list began.
        self._losses = 0
        self._staged: dict[Key, StoredObject] = {}
        self._max_bytes = options.max_list_bytes
        self._count = self._new_count()
        self._stream: RawWatch | None = None
        self.state = State(streams=not self._is_wide)
        #: The number of recorded deletions when the current list began: it does not show those objects.
        self._began = 0
        #: The state before the last step.
        self._before = self.state
        #: Whether a list is replacing the contents now.
        self.commits = False
        self.requests = 0
        self.lists = 0
        self.unreadable = 0
        self._unreadable_lines = LineLimit()
        self.last_error: ApiError | None = None
        #: Whether the server failed the last request; not if it denied the request, or asked to wait.
        self._lost = False
        #: Called when a request succeeds after that.
        self._on_recovery = on_recovery
        self._warned = ""
        self.relists = 0
        #: When the stream last proved to be alive, and whether a stream has timed out since.
        self._heard = 0.0
        self._silent = False
        #: Whether the stream has failed, and nothing has shown since that the server still has what was read from it.
        self._is_doubted = False
        #: The last time at which the store was certainly complete; before the first list, the time of the start.
        self._current_at: float | None = None
        self._committed = False

    def _new_count(self) -> PageCount:
        return PageCount(self._max_bytes, "cache fewer objects, or raise KindOptions(max_list_bytes=...)")

    def staleness(self) -> float:
        """Return for how many seconds the store may have missed changes; 0 only while the watch is healthy.

        A watch without changes is healthy as long as bookmarks arrive. A watch that is open but silent is not.
        """
        if self._current_at is None:
            return 0.0
        now = asyncio.get_running_loop().time()
        if self._committed and self.state.phase == "watching" and self._is_trusted(now):
            return 0.0
        return max(now - self._current_at, _INSTANT)

    @property
    def is_current(self) -> bool:
        """Whether the watch is healthy, and has shown something since its last failure.

        A restored server accepts a watch, and may say only in its first frame that the version has expired.
        """
        return not self._is_doubted and not self.staleness()

    def statistics(self, *, watermark: str) -> ScopeStatistics:
        """Return the statistics of this scope; ``watermark`` is the version that the store has reached."""
        return ScopeStatistics(
            namespace=self.scope,
            phase=self.state.phase,
            watermark=watermark,
            requests=self.requests,
            lists=self.lists,
            failures=self.state.failures,
            unreadable=self.unreadable,
            last_error=str(self.last_error or ""),
            relists=self.relists,
            staleness=self.staleness(),
        )

    @property
    def fails(self) -> bool:
        """Whether requests have failed so often that it is unclear when one succeeds."""
        return self.state.failures >= FAILING

    @property
    def waits(self) -> bool:
        """Whether it waits before its next attempt because the server has failed the last one."""
        return self._lost and self.state.phase == "waiting"

    def _is_trusted(self, now: float) -> bool:
        return not self._silent and now - self._heard <= self._idle_timeout

    def _hear(self) -> None:
        """Note that a stream or a list has just shown the current state."""
        now = asyncio.get_running_loop().time()
        if self._warned:
            lost = now - (self._current_at or now)
            _log.info("the watch of %s recovered after %.0f s; the cache has caught up", self._name, lost)
            self._warned = ""
        self._heard = self._current_at = now
        self._silent = self._is_doubted = False

    def _lose(self, error: ApiError | None) -> None:
        """Note that the stream has ended. It was alive until now, unless it was silent, or the server failed it.

        A server that accepts a watch may send "expired" as its first frame, so an open stream alone proves nothing.
        """
        now = asyncio.get_running_loop().time()
        if isinstance(error, DeadlineExceeded):
            self._silent = True
        elif not isinstance(error, StatusError) and self._is_trusted(now):
            self._current_at = now

    async def run(self, first: Input, *, after: Collection[asyncio.Task[None]] = ()) -> None:
        """Follow the collection until cancelled, starting with the input ``first`` when earlier runs have ended."""
        if after:
            # They may need a moment to close their streams, and they share this state.
            await asyncio.wait(after)
        loop = asyncio.get_running_loop()
        if self._current_at is None:
            self._current_at = loop.time()
        given: Input = first
        try:
            while True:
                self._before = self.state
                self.state, commands = self._stepper.step(self.state, given, now=loop.time(), rng=aio.randomness())
                # The server failed, or ended the stream before its time.
                self._is_doubted |= isinstance(given, Failed) or self.state.phase in {"probing", "waiting"}
                answer: Input | None = None
                for command in commands:
                    answer = await self._perform(command)
                given = answer or await self._listen()
        finally:
            if self._stream is not None:
                self._lose(None)
            await self._close()

    async def _perform(self, command: reflector.Command) -> Input | None:
        match command:
            case tuple():
                self._replica.apply(self.scope, command, self.state.version)
            case reflector.Stage(changes):
                self._stage(changes)
            case reflector.Discard():
                staged, self._staged = self._staged, {}
                self._replica.disposal.add(staged, entries=len(staged))
                self._began = self._replica.overlay.deletions
                self._losses = self._scopes.losses
            case reflector.Report(version):
                self._replica.report_restore(self.scope, version)
            case reflector.Commit(version, new_epoch) if self._is_wide:
                self._replica.begin(self.scope, version, new_epoch=new_epoch)
                self.relists += self._committed
                self._committed = True
                self._hear()
            case reflector.Commit(version, new_epoch):
                staged, self._staged = self._staged, {}
                if self._scopes.losses != self._losses:
                    staged = {key: each for key, each in staged.items() if self._scopes.covers(self.scope, key)}
                steps = self._replica.committing(self.scope, staged, version, new_epoch=new_epoch, began=self._began)
                await self._switch(steps)
                self.relists += self._committed
                self._committed = True
                self._hear()
            case reflector.Empty():
                await self._switch(self._replica.withdrawing(self.scope))
            case reflector.Close():
                await self._close()
            case _:
                return await self._ask(command)
        return None

    async def _switch(self, steps: Iterator[None]) -> None:
        """Replace the contents with a list, step by step, without blocking the event loop."""
        self.commits = True
        try:
            async with self._replica.switching:
                for _ in steps:
                    await asyncio.sleep(0)
        except BaseException:
            # The step assumed that the list is in the store, and it is not: return to the state before.
            self.state = replace(self._before, phase="idle")
            raise
        finally:
            self.commits = False

    async def _ask(self, command: reflector.List | reflector.Probe | reflector.Open | reflector.Sleep) -> Input | None:
        if isinstance(command, reflector.Sleep):
            await asyncio.sleep(command.seconds)
            return reflector.Woke()
        try:
            answer = await self._answer(command)
        except ApiError as error:
            return self._failed(error)
        if self._lost:
            self._lost = False
            self._on_recovery()
        return answer

    async def _answer(self, command: reflector.List | reflector.Probe | reflector.Open) -> Input:
        match command:
            case reflector.List() if self._is_wide:
                self.lists += 1
                return reflector.Page((), await self._version())
            case reflector.List(limit, continue_):
                return await self._list(limit, continue_)
            case reflector.Probe():
                version = await self._version()
                if version == self.state.version:
                    self._hear()
                return reflector.Probed(version)
            case reflector.Open():
                return await self._open(command)

    async def _version(self) -> str:
        """Read the server's current version."""
        self.requests += 1
        options = ListOptions(
            label_selector=self._labels,
            field_selector=self._fields,
            limit=1,
            shards=self._scopes.selector(self.scope),
        )
        return (await self._reads.page(self._namespace, options)).resource_version

    async def _list(self, limit: int, continue_: str) -> Input:
        self.requests += 1
        self.lists += not continue_
        options = ListOptions(
            label_selector=self._labels,
            field_selector=self._fields,
            limit=limit or None,
            continue_=continue_,
            shards=self._scopes.selector(self.scope),
        )
        page = await self._reads.page(self._namespace, options)
        if not continue_:
            self._count = self._new_count()
        try:
            delay = self._count.add(page)
        except ProtocolError as error:
            raise ProtocolError(f"list {self._name}: {error}") from None
        items: list[StoredObject] = []
        for position, raw in enumerate(page.items):
            stored = self._intake.receive(raw, self.scope)
            if stored is None or not self._is_in_scope(stored):
                self.unreadable += 1
                # left out, it would look deleted
                raise ProtocolError(f"list {self._name}: items[{position}], {len(raw)} bytes, is not an object of it")
            if stored is not OUTSIDE:
                items.append(stored)
            if not (position + 1) % SLICE:  # an unpaged list may be long
                await asyncio.sleep(0)
        if delay:
            await asyncio.sleep(delay)
        return reflector.Page(tuple(items), page.resource_version, page.continue_)

    async def _open(self, command: reflector.Open) -> Input:
        await self._close()
        self.requests += 1
        self.lists += command.initial
        self._count = self._new_count()
        options = WatchOptions(
            label_selector=self._labels,
            field_selector=self._fields,
            resource_version=command.resource_version,
            resource_version_match="NotOlderThan" if command.initial else "",
            send_initial_events=True if command.initial else None,
            allow_bookmarks=True,
            timeout_seconds=command.seconds,
            shards=self._scopes.selector(self.scope),
        )
        self._stream = await self._reads.watch(self._namespace, options, idle_timeout=self._idle_timeout)
        if not self._silent and not command.initial:
            # The server accepted the version and immediately sends every later change.
            self._heard = asyncio.get_running_loop().time()
        return reflector.Opened()

    async def _listen(self) -> Input:
        """Return the next input from the open stream."""
        assert self._stream is not None, "a reflector that waits for nothing"
        try:
            while frames := await self._stream.next_batch():
                if changes := self._changes(frames):
                    if self.state.phase == "watching":
                        self._hear()
                    return changes
        except ApiError as error:
            self._lose(error)
            await self._close()
            return self._failed(error)
        self._lose(None)
        await self._close()
        return reflector.Ended()

    async def _close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.close()

    def _changes(self, frames: list[WatchFrame]) -> reflector.Changes:
        changes: list[Change] = []
        if self.state.phase == "streaming":
            try:
                self._count.add_bytes(sum(len(frame.object) for frame in frames))
            except ProtocolError as error:
                raise ProtocolError(f"list {self._name}: {error}") from None
        for frame in frames:
            if frame.type == "BOOKMARK":
                changes.append(_mark(frame.object))
            elif (stored := self._admitted(frame.object)) is None and self.state.phase == "streaming":
                raise ProtocolError(
                    f"list {self._name}: an initial event of {len(frame.object)} bytes is not an object of this kind"
                )
            elif stored is not None and stored is not OUTSIDE:
                changes.append(Remove(stored) if frame.type == "DELETED" else Put(stored))
        return tuple(changes)

    def _admitted(self, raw: bytes) -> StoredObject | Outside | None:
        stored = self._intake.receive(raw, self.scope)
        if stored is not None and self._is_in_scope(stored):
            return stored
        self.unreadable += 1
        if self._unreadable_lines.admits(asyncio.get_running_loop().time()):
            words = "the server sent %d bytes of %s that are not an object of it; ignoring them"
            _log.warning(words, len(raw), self._name)
        return None

    def _is_in_scope(self, stored: StoredObject | Outside) -> bool:
        """Whether an object is in the scope. What is not would never be removed: a list replaces its scope alone."""
        namespace = self._namespace
        return not namespace or stored is OUTSIDE or stored.key.namespace in {"", namespace}

    def _stage(self, changes: reflector.Changes) -> None:
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
        if self._staged:
            # half of a list is of no use, and may be long
            staged, self._staged = self._staged, {}
            self._replica.disposal.add(staged, entries=len(staged))
        failure = classify(error)
        self._lost = failure.reason in _LOST and not isinstance(error, Forbidden | Unauthorized | KindNotServed)
        self.last_error = error
        if failure.reason == "not_served" or (isinstance(error, KindNotServed) and not self._replica.sync.synced):
            self._replica.miss(self.scope)
        elif isinstance(error, Forbidden | Unauthorized):
            self._replica.deny(self.scope, error)
        self._replica.advance()  # its waiters look again after the next step
        text = str(error)
        # Texts about expired versions differ in their numbers.
        subject = failure.reason if failure.reason == "expired" else text
        if subject != self._warned and self._deserves_warning(failure.reason):
            self._warned = subject
            _log.warning("cannot list or watch %s; retrying: %s", self._name, text)
        else:
            _log.debug("following %s: %s", self._name, text)
        return failure

    def _deserves_warning(self, reason: Reason) -> bool:
        """Whether a failure is more than a first one, which is common and retried immediately."""
        state = self._stepper.after_stream(self.state, asyncio.get_running_loop().time())
        if reason == "expired" and state.phase in {"opening", "watching"}:
            return state.expired >= _EXPIRED_QUIETLY  # until then, the next list most likely mends it
        return state.failures > 0 and reason != "not_served"

    @property
    def _name(self) -> str:
        kind = self._reads.kind
        name = kind.kind if isinstance(kind, Kind) else kind.__name__
        return f"{name} in {self.scope}" if self.scope else name


def _mark(raw: bytes) -> Mark:
    try:
        metadata = _bookmark_decoder.decode(raw).metadata
    except UNREADABLE:
        metadata = None
    if metadata is None or not metadata.resource_version:
        raise ProtocolError("the server sent a bookmark without a resourceVersion")
    ended = (metadata.annotations or {}).get(_INITIAL_EVENTS_END) == "true"
    return Mark(metadata.resource_version, ended)


def classify(error: ApiError) -> Failed:
    """Classify a failure for the reflector."""
    reason: Reason
    retry_after = 0.0
    match error:
        case KindNotServed() if not error.versions:
            reason = "not_served"
        case Gone():
            reason = "expired"
        case TooManyRequests():
            reason, retry_after = "throttled", max(error.retry_after or 0.0, _THROTTLED)
        case BadRequest() | Invalid() | MethodNotAllowed() | NotAcceptable():
            reason = "unsupported"
        case DeadlineExceeded():
            reason = "silent"
        case ConnectionFailed() | ProtocolError():
            reason = "lost"
        case StatusError():
            reason, retry_after = "refused", error.retry_after or 0.0
        case _:
            reason = "refused"
    return Failed(reason, retry_after)
