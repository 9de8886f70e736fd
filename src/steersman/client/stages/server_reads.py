"""The last stage of reading: get, list, pages and watch, from the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from functools import cached_property
from typing import Any

from steersman.aio import collector_paused
from steersman.client.bindings import Binding, VerbCall
from steersman.client.kind_bindings import KindBindings, MetadataBindings
from steersman.client.request_sender import RequestSender
from steersman.client.results import ListOf, Undecodable
from steersman.client.selections import (
    AnyKind,
    KeyLike,
    ListSelection,
    ReadSelection,
    WatchSelection,
    check_options,
    selector_text,
)
from steersman.client.watches import Watch
from steersman.errors import DecodeError, Expired, ProtocolError
from steersman.objects import PartialObjectMetadata
from steersman.wire import (
    JSON,
    PARTIAL_OBJECT_METADATA,
    PARTIAL_OBJECT_METADATA_LIST,
    HttpRequest,
    ListOptions,
    PageCount,
    RawList,
    WatchOptions,
    check_list_kind,
    key_of,
    split_list,
)

#: Items per request when reading a whole list.
PAGE = 500
#: The most bytes of objects that `list` reads, unless the caller says otherwise: as many as in one response.
LIST_MAX_BYTES = 256 * 1024 * 1024


def decode_list(binding: Binding[Any], page: RawList) -> ListOf[Any]:
    """Decode a page; an undecodable object does not affect the others."""
    items: list[Any] = []
    undecodable: list[Undecodable] = []
    decode_item = binding.decode_item
    with collector_paused():
        for position, raw in enumerate(page.items):
            try:
                items.append(decode_item(raw))
            except DecodeError as error:
                undecodable.append(_undecodable(position, raw, error))
    return ListOf(
        items=items,
        resource_version=page.resource_version or "",
        continue_=page.continue_ or None,
        remaining_item_count=page.remaining_item_count,
        undecodable=undecodable,
    )


def _undecodable(position: int, raw: bytes, error: DecodeError) -> Undecodable:
    key = key_of(raw)
    # without a name, only its place in the page can tell which one it is
    return Undecodable(key, error if key.name else DecodeError(f"items[{position}]: {error}"), raw)


def joined_lists(parts: Iterable[ListOf[Any]]) -> ListOf[Any]:
    """One list of all objects; without a version if the parts have several."""
    lists = list(parts)
    if len(lists) == 1:
        return lists[0]
    versions = {each.resource_version for each in lists}
    return ListOf(
        items=[item for each in lists for item in each.items],
        resource_version=versions.pop() if len(versions) == 1 else "",
        undecodable=[failure for each in lists for failure in each.undecodable],
    )


def count_pages(selection: ListSelection) -> PageCount:
    """Count the pages of a list that is read whole."""
    max_bytes = selection.get("max_bytes", LIST_MAX_BYTES)
    return PageCount(max_bytes, "select fewer objects, call iterate(), or pass list(max_bytes=...)")


class ServerReads:
    """Reads from the server, as one user; nothing is cached, and all objects are in scope."""

    def __init__(self, sender: RequestSender, kinds: KindBindings) -> None:
        self.sender = sender
        self.kinds = kinds
        metadata_only = isinstance(kinds, MetadataBindings)
        #: The headers of a request for one object or a watch, and for a list.
        self.accept_object = (("Accept", PARTIAL_OBJECT_METADATA if metadata_only else JSON),)
        self.accept_list = (("Accept", PARTIAL_OBJECT_METADATA_LIST if metadata_only else JSON),)

    @cached_property
    def metadata(self) -> ServerReads:
        """The same, for metadata alone."""
        return ServerReads(self.sender, self.kinds.metadata)

    def live(self) -> ServerReads:
        """The same: it has no cache."""
        return self

    async def admit(self, kind: AnyKind, key: KeyLike) -> None:
        """Do nothing: all objects are in scope."""

    async def get(self, kind: AnyKind, key: KeyLike, resource_version: str | None) -> Any:
        """Read one object, perhaps in a certain version."""
        binding = self.kinds.get(kind) or await self.kinds.bind(kind)
        key = self.kinds.key(binding, key)
        query = (("resourceVersion", resource_version),) if resource_version else ()
        request = HttpRequest(method="GET", path=binding.path(*key), query=query, headers=self.accept_object)
        tried = VerbCall("get", binding.gvk, key)
        return await self.sender.fetch(request, binding.decode, tried=tried, reads=binding.reads)

    async def _page(
        self, binding: Binding[Any], namespace: str | None, options: ListOptions, count: PageCount
    ) -> tuple[ListOf[Any], float]:
        """Read a page; also return how many seconds to wait before the next one."""
        request = HttpRequest(
            method="GET", path=binding.path(namespace or ""), query=options.to_query(), headers=self.accept_list
        )
        tried = VerbCall("list", binding.gvk, f"in namespace {namespace}" if namespace and binding.namespaced else "")
        body = await self.sender.send(request, tried=tried)
        try:
            page = split_list(body)
            check_list_kind(page, binding.gvk, metadata_only=binding.reads == PartialObjectMetadata.__name__)
            delay = count.add(page)
            return decode_list(binding, page), delay
        except ProtocolError as error:
            problem = str(error)
        # raised outside of the handler: the handled error may contain a Secret
        raise ProtocolError(f"{tried}: {problem}")

    async def pages(
        self, kind: AnyKind, selection: ListSelection, *, count: PageCount | None = None
    ) -> AsyncGenerator[ListOf[Any]]:
        """Read a collection page by page."""
        binding = await self.kinds.bind(kind)
        options = ListOptions(
            label_selector=selector_text(selection.get("labels")),
            field_selector=selector_text(selection.get("fields")),
            limit=selection.get("page_size", PAGE) or None,
            resource_version=selection.get("resource_version") or "",
            resource_version_match=selection.get("match", ""),
        )
        namespace = selection.get("namespace")
        count = count or PageCount()
        page, delay = await self._page(binding, namespace, options, count)
        yield page
        while token := page.continue_:
            if delay:
                await asyncio.sleep(delay)
            page, delay = await self._page(binding, namespace, options.next_page(token), count)
            yield page

    async def list(self, kind: AnyKind, selection: ListSelection, *, count: PageCount | None = None) -> ListOf[Any]:
        """Read a collection whole; again in one response if the server drops the state of the first page."""
        count = count or count_pages(selection)
        before = count.size
        try:
            return joined_lists([page async for page in self.pages(kind, selection, count=count)])
        except Expired:
            if selection.get("page_size", PAGE) == 0:
                raise
            count.rewind(before)
            whole: ListSelection = {**selection, "page_size": 0}
            return joined_lists([page async for page in self.pages(kind, whole, count=count)])

    async def head(self, kind: AnyKind, selection: ReadSelection) -> ListOf[Any]:
        """Read the first object of a collection, in one request unless the server sends empty pages."""
        one: ListSelection = {**selection, "page_size": 1}
        async with aclosing(self.pages(kind, one)) as pages:
            async for page in pages:
                if page.items or page.undecodable:
                    return page
        return ListOf(items=[], resource_version="")

    def watch(self, kind: AnyKind, selection: WatchSelection) -> Watch[Any]:
        """Watch the changes of a kind."""

        async def start() -> tuple[Binding[Any], HttpRequest]:
            return await self.watch_request(kind, selection)

        return Watch(self.sender, start, idle_timeout=selection.get("idle_timeout"))

    async def watch_request(self, kind: AnyKind, selection: WatchSelection) -> tuple[Binding[Any], HttpRequest]:
        """The request that opens a watch."""
        check_options("watch", selection, WatchSelection)
        initial_events = selection.get("initial_events", False)
        options = WatchOptions(
            label_selector=selector_text(selection.get("labels")),
            field_selector=selector_text(selection.get("fields")),
            resource_version=selection.get("resource_version") or "",
            resource_version_match="NotOlderThan" if initial_events else "",
            send_initial_events=initial_events or None,
            allow_bookmarks=selection.get("bookmarks", False) or initial_events,
            timeout_seconds=selection.get("timeout_seconds"),
        )
        binding = await self.kinds.bind(kind)
        path = binding.path(selection.get("namespace") or "")
        return binding, HttpRequest(method="GET", path=path, query=options.to_query(), headers=self.accept_object)
