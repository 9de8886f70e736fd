"""watch: what happens to the objects of a collection, as it happens.

Guarantees
- Every change after the revision that the client names arrives once, in order; or the watch ends with 410.
- Printing an event is done once for all watchers of the same form.
- An object that leaves a selection is DELETED with what it was before, at the revision at which it left.
- A client that reads slowly holds nobody up and costs no memory; when history has passed it, its watch ends with 410.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator

from steersman.aio import randomness
from steersman.apiserver.context import VerbContext
from steersman.apiserver.errors import Refused, expired, too_large_resource_version
from steersman.apiserver.presenting import Form, form_for
from steersman.apiserver.presenting.partial_metadata import PartialForm
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Page
from steersman.apiserver.verbs.options import not_a_number, refuse_options, version_of_get
from steersman.apiserver.watching.event import Event
from steersman.apiserver.watching.selection import Selection, check_syntax
from steersman.apiserver.watching.window import TooOld, Window
from steersman.objects.status import encode_status
from steersman.schemas import FieldProblem
from steersman.schemas.field_problems import problem
from steersman.transport import Push, ServerResponse
from steersman.wire import JSON, FrameType, InvalidOption, WatchOptions, encode_frame

_HEADERS = (("Cache-Control", "no-cache, private"), ("Content-Type", JSON))
_PIECE = 256 * 1024
#: Seconds before its end at which a watch sends a bookmark.
_LAST_BOOKMARK = 2.0
_MATCH = "resourceVersionMatch"


async def watch(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a GET of a collection that asks for a watch."""
    form = form_for(context.definition, request)
    if isinstance(form, PartialForm):
        # Events hold single objects: better refused now than in the middle of a stream.
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
    stream = _Stream(context, selection, form, options)
    try:
        await stream.begin(version_of_get(options.resource_version))
    except Refused as refused:
        if refused.status.code not in {410, 504}:
            raise
        # What is wrong with the history, not with the request, is told within the stream.
        frame = encode_frame("ERROR", encode_status(refused.status))
        return ServerResponse(status=200, headers=_HEADERS, body=_one(frame))
    return ServerResponse(status=200, headers=_HEADERS, body=stream)


async def _one(frame: bytes) -> AsyncIterator[bytes]:
    yield frame


def _options(request: ServerRequest) -> WatchOptions:
    try:
        options = WatchOptions.from_query(request.wire.query)
    except InvalidOption as option:
        raise not_a_number(option) from None
    check_syntax(options.label_selector, options.field_selector)
    match, initial = options.resource_version_match, options.send_initial_events
    continues = any(name == "continue" and value for name, value in request.wire.query)
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
    """One watch under way: a body that can be pushed."""

    def __init__(self, context: VerbContext, selection: Selection, form: Form, options: WatchOptions) -> None:
        self._context = context
        self._selection = selection
        self._form = form
        self._bookmarks = options.allow_bookmarks
        self._wants_initial = bool(options.send_initial_events)
        self._window: Window = context.feed.window(context.definition.prefix)
        self._initial: Page | None = None
        self._position = 0
        #: Changes up to here are known to the client.
        self._known = 0
        self._push: Push | None = None
        #: What was printed but not taken.
        self._left = b""
        seconds = options.timeout_seconds or context.limits.watch * (1 + randomness().random())
        self._deadline = asyncio.get_running_loop().time() + seconds

    async def begin(self, revision: int) -> None:
        """Find out what comes first: everything that is there, or the changes after a revision."""
        context = self._context
        if self._wants_initial:
            current = await context.storage.revision()
            if revision > current and not await context.feed.wait_for(revision, context.limits.freshness):
                raise too_large_resource_version(revision, await context.storage.revision())
            self._initial = await context.storage.list(self._selection.prefix)
            revision = self._initial.revision
        elif not revision:
            revision = await context.storage.revision()
        try:
            self._position = self._window.position_after(revision)
        except TooOld as old:
            raise self._too_old(revision, old) from None
        self._known = revision

    def push_to(self, push: Push) -> None:
        """Name who takes events as they happen: a thousand watchers need no thousand turns of tasks."""
        self._push = push

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The stream, in pieces of any number of frames."""
        try:
            async for piece in self._pieces():
                yield piece
        except Refused as refused:
            # Of an object that cannot be shown, such as one that cannot be converted, that is told in its place.
            yield encode_frame("ERROR", encode_status(refused.status))

    async def _pieces(self) -> AsyncIterator[bytes]:
        if self._initial is not None:
            for piece in self._initial_pieces(self._initial):
                yield piece
            self._initial = None
        loop = asyncio.get_running_loop()
        next_bookmark = self._next_bookmark()
        while True:
            closed = self._window.closed
            try:
                events = self._window.after(self._position)
            except TooOld as old:
                yield encode_frame("ERROR", encode_status(self._too_old(self._known, old).status))
                return
            self._position += len(events)
            piece, self._left = self._left + self._print(events), b""
            if piece:
                yield piece
            if closed or loop.time() >= self._deadline:
                return
            if self._bookmarks and loop.time() >= next_bookmark:
                next_bookmark = self._next_bookmark()
                if not self._window.has(self._position):
                    yield self._bookmark(max(self._known, self._context.feed.reached), ends_initial=False)
            until = min(self._deadline, next_bookmark) if self._bookmarks else self._deadline
            await self._window.wait(self._position, until, self._take)

    def _take(self) -> bool:
        """Push what has happened; whether that is all there was to do."""
        push, window = self._push, self._window
        if push is None or window.closed:
            return False
        before = self._known, self._form
        try:
            events = window.after(self._position)
            piece = self._print(events)
        except Exception:  # noqa: BLE001 - no other watcher's affair: the task of this one looks, and meets it again
            self._known, self._form = before
            return False
        self._position += len(events)
        if piece and not push(piece):
            self._left = piece
            return False
        return True

    def _too_old(self, revision: int, old: TooOld) -> Refused:
        if self._context.definition.ttl is not None:
            # Events are not kept in memory by kube-apiserver: it is its store that has forgotten.
            return expired("The resourceVersion for the provided watch is too old.")
        return expired(f"too old resource version: {revision} ({old.oldest})")

    def _next_bookmark(self) -> float:
        """When the next bookmark is due: after a while, and shortly before the end."""
        time = asyncio.get_running_loop().time()
        last = self._deadline - _LAST_BOOKMARK
        due = min(time + self._context.limits.bookmarks, last)
        return due if due > time else math.inf

    def _initial_pieces(self, page: Page) -> list[bytes]:
        pieces: list[bytes] = []
        frames: list[bytes] = []
        size = 0
        by_content = self._selection.by_content
        for record in page.records:
            if by_content and not self._selection.matches(record, self._window):
                continue
            frame = encode_frame("ADDED", self._next_form().one(record))
            frames.append(frame)
            size += len(frame)
            if size > _PIECE:
                pieces.append(b"".join(frames))
                frames, size = [], 0
        if self._bookmarks:
            frames.append(self._bookmark(page.revision, ends_initial=True))
        if frames:
            pieces.append(b"".join(frames))
        return pieces

    def _bookmark(self, revision: int, *, ends_initial: bool) -> bytes:
        return encode_frame("BOOKMARK", self._next_form().bookmark(revision, ends_initial=ends_initial))

    def _next_form(self) -> Form:
        form = self._form
        self._form = form.next_event()
        return form

    def _print(self, events: list[Event]) -> bytes:
        frames: list[bytes] = []
        for event in events:
            if event.revision <= self._known:
                continue
            self._known = event.revision
            type_ = self._type(event)
            if type_ is not None:
                frames.append(_frame(event, type_, self._next_form()))
        return b"".join(frames)

    def _type(self, event: Event) -> FrameType | None:
        """What an event is to this watch; None if it is nothing."""
        selection = self._selection
        if not selection.by_content:
            if not event.key.startswith(selection.prefix):
                return None
            is_in, was_in = event.record is not None, event.previous is not None
        else:
            is_in = selection.matches_event(event, previous=False)
            was_in = selection.matches_event(event, previous=True)
        if is_in:
            return "MODIFIED" if was_in else "ADDED"
        return "DELETED" if was_in else None


def _frame(event: Event, type_: FrameType, form: Form) -> bytes:
    key = (form.key, type_)
    frame = event.frames.get(key)
    if frame is None:
        record = event.previous if type_ == "DELETED" else event.record
        assert record is not None
        frame = event.frames[key] = encode_frame(type_, form.one(record, revision=event.revision))
    return frame
