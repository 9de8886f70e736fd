"""A watch: the changes of a kind, as they happen.

Guarantees
- Leaving the ``async with`` block closes the connection; so does cancelling the task inside it.
- An undecodable object is an `Undecodable` event for its key; the stream continues.
- With ``idle_timeout``, a stream that is silent, or sends only blank lines, raises `DeadlineExceeded`.
- After an error or the end, nothing more comes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Generic, Self, TypeVar

import msgspec

from steersman.aio import Closable
from steersman.client.bindings import Binding, VerbCall
from steersman.client.request_sender import RequestSender, forget_context
from steersman.client.results import Added, Bookmark, Deleted, Modified, Undecodable, WatchEvent
from steersman.errors import UNREADABLE, ApiError, DeadlineExceeded, DecodeError, ProtocolError
from steersman.transport import Response
from steersman.wire import (
    FrameSplitter,
    HttpRequest,
    WatchFrame,
    decode_frame,
    error_from_frame,
    key_of,
    raise_for_failure,
)

T = TypeVar("T")
_EVENTS: dict[str, Callable[[Any], Any]] = {"ADDED": Added, "MODIFIED": Modified, "DELETED": Deleted}
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str
    annotations: dict[str, str] | None = None


class _Marked(msgspec.Struct):
    metadata: _Metadata


_bookmark_decoder = msgspec.json.Decoder(_Marked)


class SpokenChunks:
    """The pieces of a stream that say something: the blank lines that some proxies send do not end a silence."""

    __slots__ = ("_chunks", "_idle_timeout", "_loop", "_tried")

    def __init__(self, response: Response, tried: VerbCall, idle_timeout: float | None) -> None:
        self._chunks: AsyncIterator[bytes] = response.chunks(idle_timeout=idle_timeout)
        self._tried = tried
        self._idle_timeout = idle_timeout
        self._loop = asyncio.get_running_loop()

    async def __anext__(self) -> bytes:
        since = self._loop.time()
        while (chunk := await anext(self._chunks)).isspace():
            if self._idle_timeout is not None and self._loop.time() - since >= self._idle_timeout:
                seconds = f"{self._idle_timeout:g} s"
                raise DeadlineExceeded(f"{self._tried}: only blank lines for {seconds}; the connection may be dead")
        return chunk


class Watch(Closable, Generic[T]):
    """An open watch; made by ``client.watch(...)``."""

    def __init__(
        self,
        sender: RequestSender,
        start: Callable[[], Awaitable[tuple[Binding[T], HttpRequest]]],
        *,
        idle_timeout: float | None,
    ) -> None:
        self._sender = sender
        self._start = start
        self._idle_timeout = idle_timeout
        self._binding: Binding[T] | None = None
        self._response: Response | None = None
        self._tried = VerbCall("watch")
        self._splitter = FrameSplitter()
        self._frames: deque[bytes] = deque()
        self._chunks: SpokenChunks | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def close(self) -> None:
        """End the watch; events already read can still be iterated."""
        self._closed = True
        response, self._response = self._response, None
        if response is not None:
            await response.close()

    async def _open(self) -> Binding[T]:
        if self._binding is None:
            binding, request = await self._start()
            self._tried = VerbCall("watch", binding.gvk)
            self._response = await self._sender.stream(request, tried=self._tried)
            self._chunks = SpokenChunks(self._response, self._tried, self._idle_timeout)
            self._binding = binding
        return self._binding

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent[T]:
        """The next event. A second loop continues where the first one stopped."""
        binding = await self._open()
        while not self._frames:
            if self._closed or self._chunks is None:
                raise StopAsyncIteration
            await self._receive(self._chunks)
        try:
            return self._event(binding, self._frames.popleft())
        except ApiError:
            self._frames.clear()
            await self.close()
            raise

    async def _receive(self, chunks: SpokenChunks) -> None:
        """Read the next bytes; any failure closes the connection."""
        try:
            chunk = await anext(chunks)
        except StopAsyncIteration:
            await self.close()
            chunk = None
        except ApiError as error:
            if self._closed:
                return  # closed by us while waiting
            forget_context(error)
            await self.close()
            raise
        except BaseException:
            await self.close()
            raise
        try:
            self._frames.extend(self._splitter.finish() if chunk is None else self._splitter.feed(chunk))
        except ProtocolError as error:
            problem = str(error)
        else:
            return
        # raised outside of the handler: the handled error may contain a Secret
        await self.close()
        raise ProtocolError(f"{self._tried}: {problem}")

    def _frame(self, raw: bytes) -> WatchFrame:
        try:
            return decode_frame(raw)
        except ProtocolError as error:
            problem = str(error)
        raise_for_failure(raw, tried=str(self._tried))
        raise ProtocolError(f"{self._tried}: {problem}")

    def _event(self, binding: Binding[T], raw: bytes) -> WatchEvent[T]:
        frame = self._frame(raw)
        make = _EVENTS.get(frame.type)
        if make is not None:
            try:
                return make(binding.decode_item(frame.object))
            except DecodeError as error:
                return Undecodable(key_of(frame.object), error, frame.object)
        if frame.type == "BOOKMARK":
            return self._bookmark(frame.object)
        raise error_from_frame(frame, tried=str(self._tried))

    def _bookmark(self, raw: bytes) -> Bookmark:
        try:
            metadata = _bookmark_decoder.decode(raw).metadata
        except UNREADABLE:
            metadata = None
        if metadata is None:
            raise ProtocolError(f"{self._tried}: the server sent a bookmark without a resourceVersion")
        ended = (metadata.annotations or {}).get(_INITIAL_EVENTS_END) == "true"
        return Bookmark(metadata.resource_version, ended)
