"""watch: the changes of a collection's objects, as they happen.

Guarantees
- Every change after the revision that the client names arrives once, in order; or the watch ends with 410.
- A change is printed once for all watchers with the same form.
- An object that leaves a selection is DELETED, with its previous state, at the revision at which it left.
- A client that asks for bookmarks gets one after the initial objects, if it wants these too, one every `Limits.bookmarks`
  seconds, and one shortly before the watch ends. Changes that are on their way come first.
- A slow client delays no other client and costs at most one piece of memory, `_PIECE` or one frame. When the history
  has passed it, its watch ends with 410.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from functools import partial

from steersman.aio import randomness
from steersman.apiserver import protobuf
from steersman.apiserver.context import VerbContext
from steersman.apiserver.errors import RequestRejected, expired, too_large_resource_version
from steersman.apiserver.forms import Form, form_for
from steersman.apiserver.forms.form import WholeForm
from steersman.apiserver.forms.partial_metadata import PartialForm
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Page, Record
from steersman.apiserver.verbs.options import not_a_number, refuse_options, version_of_get
from steersman.apiserver.watching.pace import Pace
from steersman.apiserver.watching.selection import Selection, check_syntax
from steersman.apiserver.watching.shard_selectors import requested_shards
from steersman.apiserver.watching.watched_change import WatchedChange, is_converted
from steersman.apiserver.watching.window import TooOld, Window
from steersman.errors import encode_status
from steersman.objects.field_problems import FieldProblem, problem
from steersman.transport import Push, ServerResponse
from steersman.wire import (
    JSON,
    PROTOBUF,
    FrameType,
    InvalidOption,
    ListOptions,
    WatchOptions,
    encode_frame,
    first_values,
)

_CACHING = ("Cache-Control", "no-cache, private")
_HEADERS = (_CACHING, ("Content-Type", JSON))
_PROTOBUF_HEADERS = (_CACHING, ("Content-Type", f"{PROTOBUF};stream=watch"))
_PIECE = 64 * 1024
#: How many changes a webhook converts at a time, and about how many bytes of stored objects.
_CONVERTED, _CONVERTED_SIZE = 100, 1024 * 1024
#: Seconds before its end at which a watch sends a bookmark.
_LAST_BOOKMARK = 2.0
_MATCH = "resourceVersionMatch"


async def watch(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a GET of a collection with watch=true."""
    form = form_for(context.definition, request)
    if isinstance(form, PartialForm):
        # Events hold single objects: reject the form now, not in the middle of a stream.
        form.check_one()
    options = _options(request)
    info = request.info
    selection = Selection(
        context.definition,
        namespace=info.namespace,
        name=info.name if info.is_watch_path else "",
        labels=options.label_selector,
        fields=options.field_selector,
    )
    selection.select_shards(requested_shards(request, context.features))
    headers = _PROTOBUF_HEADERS if request.media_type == PROTOBUF else _HEADERS
    stream = _Stream(context, request, selection, form, options)
    try:
        await stream.begin(version_of_get(options.resource_version))
    except RequestRejected as refused:
        if refused.status.code not in {410, 504}:
            raise
        # An error about the history, not about the request, is reported within the stream.
        return ServerResponse(status=200, headers=headers, body=_one(stream.error(refused)))
    return ServerResponse(status=200, headers=headers, body=stream)


async def _one(frame: bytes) -> AsyncIterator[bytes]:
    yield frame


def _protobuf_frame(type_: FrameType, obj: bytes) -> bytes:
    message = protobuf.to_protobuf(obj)
    assert message is not None, "only forms with messages are negotiated as protobuf"
    return protobuf.watch_frame(type_, message)


def _options(request: ServerRequest) -> WatchOptions:
    try:
        options = WatchOptions.from_query(request.wire.query)
        # The other options of lists are ignored, but must be valid.
        ListOptions.from_query(request.wire.query)
    except InvalidOption as option:
        raise not_a_number(option) from None
    check_syntax(options.label_selector, options.field_selector)
    match, initial = options.resource_version_match, options.send_initial_events
    continues = first_values(request.wire.query).get("continue")
    if initial is None and not match and options.resource_version in {"", "0"}:
        match, initial = "NotOlderThan", True
    problems: list[FieldProblem] = []
    if initial is not None and match != "NotOlderThan":
        words = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        problems.append(problem(_MATCH, "FieldValueForbidden", "", words))
    if match:
        if initial is None:
            words = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            problems.append(problem(_MATCH, "FieldValueForbidden", "", words))
        if match != "NotOlderThan":
            words = 'supported values: "NotOlderThan"'
            problems.append(problem(_MATCH, "FieldValueNotSupported", match, words))
        if continues:
            words = "resourceVersionMatch is forbidden when continue is provided"
            problems.append(problem(_MATCH, "FieldValueForbidden", "", words))
    if problems:
        raise refuse_options("ListOptions", problems)
    return WatchOptions(
        label_selector=options.label_selector,
        field_selector=options.field_selector,
        resource_version=options.resource_version,
        timeout_seconds=options.timeout_seconds,
        allow_bookmarks=options.allow_bookmarks,
        send_initial_events=initial,
    )


class _Stream:
    """One running watch: a body that accepts pushes."""

    def __init__(
        self, context: VerbContext, request: ServerRequest, selection: Selection, form: Form, options: WatchOptions
    ) -> None:
        self._context = context
        self._info = request.info
        self._selection = selection
        self._form: Form = form
        self._is_protobuf = request.media_type == PROTOBUF
        self._encode = _protobuf_frame if self._is_protobuf else encode_frame
        #: Whether a frame is little more than a copy of stored bytes: a thread computes any other.
        self._is_copied = isinstance(form, WholeForm) and not self._is_protobuf
        self._user = request.user.name
        self._bookmarks = options.allow_bookmarks
        self._wants_initial = bool(options.send_initial_events)
        self._window: Window = context.feed.window(context.definition.prefix)
        self._initial: Page | None = None
        self._position = 0
        #: The client has all changes up to here.
        self._known = 0
        #: Whether a webhook converts the objects.
        self._converts = is_converted(context.definition)
        self._push: Push | None = None
        #: Printed but not sent yet.
        self._left = b""
        seconds = options.timeout_seconds or context.limits.watch * (1 + randomness().random())
        self._deadline = asyncio.get_running_loop().time() + seconds

    async def begin(self, revision: int) -> None:
        """Determine what comes first: all existing objects, or the changes after a revision."""
        context = self._context
        if self._wants_initial:
            current = await context.storage.revision()
            if revision > current and not await context.feed.wait_for(revision, context.limits.freshness):
                raise too_large_resource_version(revision, await context.storage.revision())
            page = await context.storage.list(self._selection.prefix)
            readable = await context.all_readable(page.records)
            self._initial = page._replace(records=await self._selected(readable))
            revision = page.revision
        elif not revision:
            revision = await context.storage.revision()
        try:
            self._position = self._window.position_after(revision)
        except TooOld as old:
            raise self._too_old(revision, old) from None
        self._known = revision

    def error(self, refused: RequestRejected) -> bytes:
        """The frame of an error."""
        return self._encode("ERROR", encode_status(refused.status))

    def push_to(self, push: Push) -> None:
        """Set the receiver of changes as they happen: a thousand watchers then need no thousand task switches."""
        self._push = push

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        """The stream, in pieces of any number of frames."""
        metrics, is_sharded = self._context.metrics, self._selection.shards is not None
        metrics.watching(self._info, 1, is_sharded=is_sharded)
        try:
            # A client that leaves ends the stream here: without aclosing, its state would stay until a garbage collection.
            async with aclosing(self._pieces()) as pieces:
                async for piece in pieces:
                    yield piece
        except RequestRejected as refused:
            # An object that cannot be shown, such as one that cannot be converted, is an error in its place.
            yield self.error(refused)
        finally:
            metrics.watching(self._info, -1, is_sharded=is_sharded)

    async def _pieces(self) -> AsyncGenerator[bytes]:
        if self._initial is not None:
            page, self._initial = self._initial, None
            async with aclosing(self._initial_pieces(page)) as initial:
                async for piece in initial:
                    yield piece
        loop = asyncio.get_running_loop()
        next_bookmark = self._next_bookmark()
        while True:
            closed = self._window.closed
            try:
                changes = await self._changes()
            except TooOld as old:
                yield self.error(self._too_old(self._known, old))
                return
            piece, self._left = self._left, b""
            piece = piece or self._print(changes)
            if piece:
                yield piece
            if self._window.has(self._position) and loop.time() < self._deadline:
                # More than a piece: the rest is printed when this one is taken.
                continue
            if closed or loop.time() >= self._deadline:
                return
            if self._bookmarks and loop.time() >= next_bookmark:
                next_bookmark = self._next_bookmark()
                # A window that was closed meanwhile lacks later changes, which a bookmark would cover.
                if not self._window.closed and not self._window.has(self._position):
                    yield self._bookmark(max(self._known, self._context.feed.reached), ends_initial=False)
            until = min(self._deadline, next_bookmark) if self._bookmarks else self._deadline
            await self._window.wait(self._position, until, self._take)

    async def _changes(self) -> list[WatchedChange]:
        """The next changes; if a webhook converts their objects, some of them, converted."""
        changes = self._window.after(self._position)
        return await self._converted(changes) if self._converts else changes

    async def _converted(self, changes: list[WatchedChange]) -> list[WatchedChange]:
        """The first changes, with their objects in the version of the resource."""
        records: list[Record] = []
        count = size = 0
        for change in changes[:_CONVERTED]:
            added = [record for record in (change.record, change.previous) if record is not None]
            size += sum(len(record.value) for record in added)
            if count and size > _CONVERTED_SIZE:
                break
            count += 1
            records += added
        converted = iter(await self._context.all_readable(records))
        return [
            WatchedChange(
                change.key, change.revision, change.record and next(converted), change.previous and next(converted)
            )
            for change in changes[:count]
        ]

    def _take(self) -> bool:
        """Push the pending changes. Returns whether that was all."""
        push, window = self._push, self._window
        if push is None or window.closed or self._converts:
            return False
        before = self._known, self._form, self._position
        try:
            piece = self._print(window.after(self._position))
        except Exception:  # noqa: BLE001 - no other watcher's affair: the task of this one looks, and meets it again
            self._known, self._form, self._position = before
            return False
        if piece and not push(piece):
            self._left = piece
            return False
        return not window.has(self._position)

    def _too_old(self, revision: int, old: TooOld) -> RequestRejected:
        if self._context.definition.ttl is not None:
            # kube-apiserver does not keep Events in memory: its store reports the missing history.
            return expired("The resourceVersion for the provided watch is too old.")
        return expired(f"too old resource version: {revision} ({old.oldest})")

    def _next_bookmark(self) -> float:
        """When the next bookmark is due: after a while, and shortly before the end."""
        time = asyncio.get_running_loop().time()
        last = self._deadline - _LAST_BOOKMARK
        due = min(time + self._context.limits.bookmarks, last)
        return due if due > time else math.inf

    async def _initial_pieces(self, page: Page) -> AsyncGenerator[bytes]:
        """The existing objects, printed piece by piece as the client reads. It holds only references to shared records."""
        records, at, left = page.records, 0, b""
        while at < len(records):
            start, size = at, 0
            while at < len(records) and (at == start or size + len(records[at].value) <= _PIECE):
                size += len(records[at].value)
                at += 1
            if left:
                yield left
            left = await self._computed(partial(self._initial_frames, records[start:at]), size)
            self._context.metrics.sent(self._info, at - start)
        if self._bookmarks:
            self._context.metrics.sent(self._info, 1)
            left += self._bookmark(page.revision, ends_initial=True)
        if left:
            yield left

    async def _computed(self, work: Callable[[], bytes], size: int) -> bytes:
        return work() if self._is_copied else await self._context.workers.answer(work, size=size, user=self._user)

    def _initial_frames(self, records: list[Record]) -> bytes:
        return b"".join([self._encode("ADDED", self._next_form().one(record)) for record in records])

    async def _selected(self, records: list[Record]) -> list[Record]:
        if not self._selection.by_content:
            return records
        selected: list[Record] = []
        pace = Pace()
        for record in records:
            if pace.is_due(record):
                await asyncio.sleep(0)
            if self._selection.matches(record, self._window):
                selected.append(record)
        return selected

    def _bookmark(self, revision: int, *, ends_initial: bool) -> bytes:
        return self._encode("BOOKMARK", self._next_form().bookmark(revision, ends_initial=ends_initial))

    def _next_form(self) -> Form:
        form = self._form
        self._form = form.next_event()
        return form

    def _print(self, changes: list[WatchedChange]) -> bytes:
        """Print changes up to a piece, and advance past them."""
        frames: list[bytes] = []
        size = 0
        for change in changes:
            self._position += 1
            if change.revision <= self._known:
                continue
            self._known = change.revision
            type_ = self._type(change)
            if type_ is not None:
                frames.append(self._frame(change, type_, self._next_form()))
                size += len(frames[-1])
                if size > _PIECE:
                    break
        self._context.metrics.sent(self._info, len(frames))
        return b"".join(frames)

    def _type(self, change: WatchedChange) -> FrameType | None:
        """The type of the watch event for a change; None if it is not selected."""
        selection = self._selection
        if not selection.by_content:
            if not change.key.startswith(selection.prefix):
                return None
            is_in, was_in = change.record is not None, change.previous is not None
        else:
            if (
                selection.shards is not None
                and change.key.startswith(selection.prefix)
                and not selection.in_shard(change)
            ):
                states = (change.record is not None) + (change.previous is not None)
                self._context.metrics.left_out(self._info, states)
                return None
            is_in = selection.matches_change(change, previous=False)
            was_in = selection.matches_change(change, previous=True)
        if is_in:
            return "MODIFIED" if was_in else "ADDED"
        return "DELETED" if was_in else None

    def _frame(self, change: WatchedChange, type_: FrameType, form: Form) -> bytes:
        form_key = ("protobuf", form.key) if self._is_protobuf else form.key
        kept, key = self._context.feed.frames, (change.revision, form_key, type_)
        frame = kept.get(key)
        if frame is None:
            record = change.previous if type_ == "DELETED" else change.record
            assert record is not None
            frame = self._encode(type_, form.one(record, revision=change.revision))
            kept.add(key, frame)
        return frame
