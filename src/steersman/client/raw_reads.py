"""Collections as bytes: pages and watch frames with undecoded objects.

Guarantees
- Each request is one attempt: failures raise immediately, and the caller alone decides when to retry.
- Items and frames are copies of their own bytes; none keeps a page or a stream's buffer alive.
- Leaving a watch's block closes its connection. After an error or the end, nothing more comes.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec.structs import replace

from steersman.aio import Closable
from steersman.client.bindings import Binding, VerbCall
from steersman.client.client import Client
from steersman.client.request_sender import forget_context
from steersman.client.watches import SpokenChunks
from steersman.errors import ApiError, ProtocolError
from steersman.objects import Kind, Object, PartialObjectMetadata
from steersman.transport import Response
from steersman.wire import (
    FrameSplitter,
    HttpRequest,
    ListOptions,
    RawList,
    WatchFrame,
    WatchOptions,
    check_list_kind,
    decode_frame,
    error_from_frame,
    raise_for_failure,
    split_list,
)

_OptionsT = TypeVar("_OptionsT", ListOptions, WatchOptions)


class RawReads:
    """Lists and watches of one kind, as bytes: ``RawReads(client, Site)``."""

    def __init__(self, client: Client, kind: type[Object] | Kind, *, metadata_only: bool = False) -> None:
        self._reads = client.pipeline.server.metadata if metadata_only else client.pipeline.server
        self._sender = self._reads.sender.asking_once()
        self.kind = kind
        #: The names under which the client owns fields, the current one first.
        self.field_managers = client.field_managers

    async def binding(self) -> Binding[Any]:
        """The binding of the kind; `KindNotServed` if the server does not serve it."""
        return await self._reads.kinds.bind(self.kind)

    async def _sent(self, options: _OptionsT) -> _OptionsT:
        """The options as they are sent: without a shard selector, if the server does not know it."""
        if options.shards is None or await self._sender.shard_support.ask(self._ask):
            return options
        return replace(options, shards=None)

    async def _ask(self, request: HttpRequest) -> bytes:
        return await self._sender.send(request, tried=VerbCall("ask for a shard of Leases"))

    async def page(self, namespace: str, options: ListOptions) -> RawList:
        """Read one page of the collection; an empty namespace means all namespaces.

        With a shard selector, the server may return objects of other shards too.
        """
        options = await self._sent(options)
        try:
            return await self._page(namespace, options)
        except ApiError:
            self._sender.shard_support.forget()
            raise

    async def _page(self, namespace: str, options: ListOptions) -> RawList:
        binding = await self.binding()
        tried = VerbCall("list", binding.gvk, f"in namespace {namespace}" if namespace else "")
        request = HttpRequest(
            method="GET",
            path=binding.path(namespace),
            query=options.to_query(),
            headers=self._reads.accept_list,
        )
        body = await self._sender.send(request, tried=tried)
        try:
            page = split_list(body)
            check_list_kind(page, binding.gvk, metadata_only=binding.reads == PartialObjectMetadata.__name__)
        except ProtocolError as error:
            problem = str(error)
        else:
            return page
        # raised outside of the handler: the handled error may contain a Secret
        raise ProtocolError(f"{tried}: {problem}")

    async def watch(self, namespace: str, options: WatchOptions, *, idle_timeout: float | None = None) -> RawWatch:
        """Open a watch; the caller closes it. ``idle_timeout`` is as for `Client.watch`.

        With a shard selector, the server may send objects of other shards too.
        """
        options = await self._sent(options)
        try:
            return await self._watch(namespace, options, idle_timeout=idle_timeout)
        except ApiError:
            self._sender.shard_support.forget()
            raise

    async def _watch(self, namespace: str, options: WatchOptions, *, idle_timeout: float | None) -> RawWatch:
        binding = await self.binding()
        tried = VerbCall("watch", binding.gvk, f"in namespace {namespace}" if namespace else "")
        request = HttpRequest(
            method="GET",
            path=binding.path(namespace),
            query=options.to_query(),
            headers=self._reads.accept_object,
        )
        response: Response = await self._sender.stream(request, tried=tried)
        return RawWatch(response, tried, idle_timeout=idle_timeout)


class RawWatch(Closable):
    """An open watch, read in batches: the frames that arrived together come together."""

    def __init__(self, response: Response, tried: VerbCall, *, idle_timeout: float | None) -> None:
        self._response = response
        self._tried = tried
        self._splitter = FrameSplitter()
        self._chunks = SpokenChunks(response, tried, idle_timeout)
        self._failure: ApiError | None = None
        self._closed = False

    async def close(self) -> None:
        """Close the connection; closing twice does nothing."""
        self._closed = True
        await self._response.close()

    async def next_batch(self) -> list[WatchFrame]:
        """The next frames, in order; empty at the end of the stream.

        An error is raised after all frames before it have been returned.
        """
        while not self._closed:
            batch = await self._receive()
            if batch:
                return batch
            if self._failure is not None:
                break
        failure, self._failure = self._failure, None
        if failure is not None:
            await self.close()
            raise failure
        return []

    async def _receive(self) -> list[WatchFrame]:
        if self._failure is not None:
            return []
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            await self.close()
            return self._frames(None)
        except ApiError as error:
            forget_context(error)
            self._failure = error
            return []
        except BaseException:
            await self.close()
            raise
        return self._frames(chunk)

    def _frames(self, chunk: bytes | None) -> list[WatchFrame]:
        """Split and decode frames; an error in the middle is kept until the frames before it are returned."""
        frames: list[WatchFrame] = []
        problem = ""
        try:
            for raw in self._splitter.finish() if chunk is None else self._splitter.feed(chunk):
                try:
                    frame = decode_frame(raw)
                except ProtocolError:
                    raise_for_failure(raw, tried=str(self._tried))
                    raise
                if frame.type == "ERROR":
                    self._failure = error_from_frame(frame, tried=str(self._tried))
                    break
                frames.append(frame)
        except ProtocolError as error:
            problem = str(error)
        except ApiError as error:
            forget_context(error)
            self._failure = error
        if problem:
            # created outside of the handler: the handled error may contain a Secret
            self._failure = ProtocolError(f"{self._tried}: {problem}")
        return frames
