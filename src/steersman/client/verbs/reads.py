"""Reading: get, list, pages and watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, TypeAlias, TypedDict, TypeVar, Unpack, overload

from steersman.aio import collector_paused
from steersman.client.bindings import Attempt, Binding, bind_class, no_kind
from steersman.client.discovery import Discovery
from steersman.client.results import ListOf, Undecodable
from steersman.client.session import Session
from steersman.client.verbs.checks import check_key
from steersman.client.verbs.watches import Watch
from steersman.errors import DecodeError, Expired, NotFound, ProtocolError
from steersman.objects import (
    FieldSelector,
    Key,
    Kind,
    Object,
    PartialObjectMetadata,
    Selector,
    Unstructured,
    check_equalities,
    decode,
)
from steersman.wire import (
    JSON,
    PARTIAL_OBJECT_METADATA,
    PARTIAL_OBJECT_METADATA_LIST,
    HttpRequest,
    ListOptions,
    PageCount,
    RawList,
    ResourceVersionMatch,
    WatchOptions,
    check_list_kind,
    key_of,
    split_list,
)

ObjectT = TypeVar("ObjectT", bound=Object)
AnyKind: TypeAlias = type[Object] | Kind
KeyLike: TypeAlias = Key | str | tuple[str, str]
Labels: TypeAlias = Selector | str | dict[str, str]
Fields: TypeAlias = FieldSelector | str | dict[str, str]

#: Items per request when reading a whole list.
PAGE = 500
#: The most bytes of objects that `Reader.list` reads, unless the caller says otherwise: as many as in one response.
LIST_MAX_BYTES = 256 * 1024 * 1024


def selector_text(selector: Labels | Fields | None) -> str:
    """A selector as query text; a dict requires equality of all its entries."""
    if selector is None:
        return ""
    if isinstance(selector, dict):
        check_equalities(selector)
        return ",".join(f"{name}={value}" for name, value in sorted(selector.items()))
    if not isinstance(selector, str | Selector | FieldSelector):  # pyright: ignore[reportUnnecessaryIsInstance] - user
        raise TypeError(f'{selector!r} is not a selector; write "app=web" or {{"app": "web"}}')
    return str(selector)


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


class Selection(TypedDict, total=False):
    """Selects objects of a kind; all of them by default."""

    #: One namespace; None means all.
    namespace: str | None
    labels: Labels | None
    fields: Fields | None


class ListSelection(Selection, total=False):
    """Selects objects of a kind, a version and a page size."""

    #: Items per page; 0 reads all in one response.
    limit: int
    resource_version: str | None
    match: ResourceVersionMatch
    #: The most that `list` reads in all, in bytes; `iterate` and `pages` hold one page at a time and have no such limit.
    max_bytes: int


class WatchSelection(Selection, total=False):
    """Selects the changes to watch, the start version and the duration."""

    resource_version: str | None
    #: Stream the existing objects first, then a `Bookmark` that marks their end.
    initial_events: bool
    bookmarks: bool
    #: The server ends the watch after this many seconds.
    timeout_seconds: int | None
    #: Raise `DeadlineExceeded` after this many seconds without data.
    idle_timeout: float | None


class Reading:
    """The shared implementation of `Reader` and `MetadataReader`."""

    _accept_object = (("Accept", JSON),)
    _accept_list = (("Accept", JSON),)

    def __init__(self, session: Session, discovery: Discovery, *, namespace: str) -> None:
        self._session = session
        self.discovery = discovery
        #: The namespace of a bare name; by default that of the context.
        self.namespace = namespace
        self._bindings: dict[AnyKind, Binding[Any]] = {}

    def _bound(self, kind: AnyKind) -> Binding[Any] | None:
        try:
            return self._bindings.get(kind)
        except TypeError:  # objects are not hashable; classes and Kinds are
            raise no_kind(kind) from None

    async def _bind(self, kind: AnyKind) -> Binding[Any]:
        binding = self._bound(kind)
        if binding is None:
            binding = await self.discovery.bind(kind) if isinstance(kind, Kind) else bind_class(kind)
            self._bindings[kind] = binding
        return binding

    def _key(self, binding: Binding[Any], key: KeyLike) -> Key:
        """Parse a key; a bare name gets the client's namespace."""
        check_key(binding.gvk.kind, key)
        namespace, name = Key.parse(key) if isinstance(key, str) else key
        if not name:
            raise ValueError(f"{binding.gvk.kind}: the name is empty; call list() to read all objects")
        return Key(namespace or self.namespace, name) if binding.namespaced else Key("", name)

    async def _get(self, kind: AnyKind, key: KeyLike, resource_version: str | None) -> Any:
        binding = self._bound(kind) or await self._bind(kind)
        key = self._key(binding, key)
        query = (("resourceVersion", resource_version),) if resource_version else ()
        request = HttpRequest(method="GET", path=binding.path(*key), query=query, headers=self._accept_object)
        tried = Attempt("get", binding.gvk, key)
        return await self._session.fetch(request, binding.decode, tried=tried, reads=binding.reads)

    async def _find(self, kind: AnyKind, key: KeyLike) -> Any:
        try:
            return await self._get(kind, key, None)
        except NotFound:
            return None

    async def _page(
        self, binding: Binding[Any], namespace: str | None, options: ListOptions, count: PageCount
    ) -> tuple[ListOf[Any], float]:
        """Read a page; also return how many seconds to wait before the next one."""
        request = HttpRequest(
            method="GET", path=binding.path(namespace or ""), query=options.to_query(), headers=self._accept_list
        )
        tried = Attempt("list", binding.gvk, f"in namespace {namespace}" if namespace and binding.namespaced else "")
        body = await self._session.send(request, tried=tried)
        try:
            page = split_list(body)
            check_list_kind(page, binding.gvk, metadata_only=binding.reads == PartialObjectMetadata.__name__)
            delay = count.add(page)
            return decode_list(binding, page), delay
        except ProtocolError as error:
            problem = str(error)
        # raised outside of the handler: the handled error may contain a Secret
        raise ProtocolError(f"{tried}: {problem}")

    async def _pages(
        self, kind: AnyKind, selection: ListSelection, *, max_bytes: int | None = None
    ) -> AsyncIterator[ListOf[Any]]:
        binding = await self._bind(kind)
        options = ListOptions(
            label_selector=selector_text(selection.get("labels")),
            field_selector=selector_text(selection.get("fields")),
            limit=selection.get("limit", PAGE) or None,
            resource_version=selection.get("resource_version") or "",
            resource_version_match=selection.get("match", ""),
        )
        namespace = selection.get("namespace")
        count = PageCount(max_bytes, "select fewer objects, call iterate(), or pass list(max_bytes=...)")
        page, delay = await self._page(binding, namespace, options, count)
        yield page
        while token := page.continue_:
            if delay:
                await asyncio.sleep(delay)
            page, delay = await self._page(binding, namespace, options.next_page(token), count)
            yield page

    async def _list(self, kind: AnyKind, selection: ListSelection) -> ListOf[Any]:
        try:
            return await self._all_pages(kind, selection)
        except Expired:
            if selection.get("limit", PAGE) == 0:
                raise
            selection["limit"] = 0
            return await self._all_pages(kind, selection)

    async def _all_pages(self, kind: AnyKind, selection: ListSelection) -> ListOf[Any]:
        max_bytes = selection.get("max_bytes", LIST_MAX_BYTES)
        pages = [page async for page in self._pages(kind, selection, max_bytes=max_bytes)]
        if len(pages) == 1:
            return pages[0]
        return ListOf(
            items=[item for page in pages for item in page.items],
            resource_version=pages[-1].resource_version,
            undecodable=[failure for page in pages for failure in page.undecodable],
        )

    async def _iterate(self, kind: AnyKind, selection: ListSelection) -> AsyncIterator[Any]:
        async for page in self._pages(kind, selection):
            for item in page.items:
                yield item
            for failure in page.undecodable:
                raise failure.error

    def _watch(self, kind: AnyKind, selection: WatchSelection) -> Watch[Any]:
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

        async def start() -> tuple[Binding[Any], HttpRequest]:
            binding = await self._bind(kind)
            path = binding.path(selection.get("namespace") or "")
            return binding, HttpRequest(method="GET", path=path, query=options.to_query(), headers=self._accept_object)

        return Watch(self._session, start, idle_timeout=selection.get("idle_timeout"))


class Reader(Reading):
    """The reading verbs. They read from the server; nothing is cached."""

    @overload
    async def get(self, kind: type[ObjectT], key: KeyLike, *, resource_version: str | None = ...) -> ObjectT: ...
    @overload
    async def get(self, kind: Kind, key: KeyLike, *, resource_version: str | None = ...) -> Unstructured: ...

    async def get(self, kind: AnyKind, key: KeyLike, *, resource_version: str | None = None) -> Any:
        """Read one object: ``await client.get(Site, "default/web")``.

        A bare name is in the client's namespace. ``resource_version="0"`` accepts any state that the server has cached.
        """
        return await self._get(kind, key, resource_version)

    @overload
    async def find(self, kind: type[ObjectT], key: KeyLike) -> ObjectT | None: ...
    @overload
    async def find(self, kind: Kind, key: KeyLike) -> Unstructured | None: ...

    async def find(self, kind: AnyKind, key: KeyLike) -> Any:
        """Read one object; None if it does not exist: ``if (site := await client.find(Site, key)) is None: ...``.

        Only a missing object is None; a kind that the server does not serve raises, as with `get`.
        """
        return await self._find(kind, key)

    async def get_subresource(
        self, kind: AnyKind, key: KeyLike, subresource: str, *, returns: type[ObjectT]
    ) -> ObjectT:
        """Read a subresource: ``await client.get_subresource(Deployment, key, "scale", returns=Scale)``."""
        binding = await self._bind(kind)
        key = self._key(binding, key)
        request = HttpRequest(method="GET", path=binding.path(*key, subresource), headers=(("Accept", JSON),))
        tried = Attempt(f"get {subresource} of", binding.gvk, key)
        return await self._session.fetch(request, lambda raw: decode(returns, raw), tried=tried)

    @overload
    def pages(self, kind: type[ObjectT], **selection: Unpack[ListSelection]) -> AsyncIterator[ListOf[ObjectT]]: ...
    @overload
    def pages(self, kind: Kind, **selection: Unpack[ListSelection]) -> AsyncIterator[ListOf[Unstructured]]: ...

    def pages(self, kind: AnyKind, **selection: Unpack[ListSelection]) -> AsyncIterator[ListOf[Any]]:
        """Read a collection page by page, ``limit`` items at a time (0: all in one response).

        All pages show the state of the first. Raises `Expired` if the server drops that state before the last page is
        read: start again.
        """
        return self._pages(kind, selection)

    @overload
    async def list(self, kind: type[ObjectT], **selection: Unpack[ListSelection]) -> ListOf[ObjectT]: ...
    @overload
    async def list(self, kind: Kind, **selection: Unpack[ListSelection]) -> ListOf[Unstructured]: ...

    async def list(self, kind: AnyKind, **selection: Unpack[ListSelection]) -> ListOf[Any]:
        """Read all objects of a kind, in all namespaces or in one, following all pages.

        Undecodable objects are in ``.undecodable``. A list of more than ``max_bytes`` raises `ProtocolError`, as do 500
        pages in a row without objects: `iterate` reads a list of any length. If the server drops the state of the first page before the last one
        is read, everything is read again in one response.
        """
        return await self._list(kind, selection)

    @overload
    def iterate(self, kind: type[ObjectT], **selection: Unpack[ListSelection]) -> AsyncIterator[ObjectT]: ...
    @overload
    def iterate(self, kind: Kind, **selection: Unpack[ListSelection]) -> AsyncIterator[Unstructured]: ...

    def iterate(self, kind: AnyKind, **selection: Unpack[ListSelection]) -> AsyncIterator[Any]:
        """Iterate over the objects of a kind, with one page in memory at a time.

        An undecodable object raises its `DecodeError` after the other objects of its page.
        """
        return self._iterate(kind, selection)

    @overload
    def watch(self, kind: type[ObjectT], **selection: Unpack[WatchSelection]) -> Watch[ObjectT]: ...
    @overload
    def watch(self, kind: Kind, **selection: Unpack[WatchSelection]) -> Watch[Unstructured]: ...

    def watch(self, kind: AnyKind, **selection: Unpack[WatchSelection]) -> Watch[Any]:
        """Watch the changes of a kind: ``async with client.watch(Site) as events: async for event in events: ...``.

        The stream ends when the server ends it: after ``timeout_seconds``, or at any time. An error frame raises, most
        often `Expired`. ``initial_events=True`` streams the existing objects first, then a `Bookmark` marks their end.
        """
        return self._watch(kind, selection)


class MetadataReader(Reading):
    """The reading verbs, for metadata alone: ``await client.metadata.list(Pod)`` transfers a fraction of the bytes."""

    _accept_object = (("Accept", PARTIAL_OBJECT_METADATA),)
    _accept_list = (("Accept", PARTIAL_OBJECT_METADATA_LIST),)

    async def _bind(self, kind: AnyKind) -> Binding[PartialObjectMetadata]:
        if kind not in self._bindings:
            self._bindings[kind] = (await super()._bind(kind)).metadata_only()
        return self._bindings[kind]

    async def get(self, kind: AnyKind, key: KeyLike, *, resource_version: str | None = None) -> PartialObjectMetadata:
        """Read the metadata of one object."""
        return await self._get(kind, key, resource_version)

    async def find(self, kind: AnyKind, key: KeyLike) -> PartialObjectMetadata | None:
        """Read the metadata of one object; None if it does not exist."""
        return await self._find(kind, key)

    def pages(self, kind: AnyKind, **selection: Unpack[ListSelection]) -> AsyncIterator[ListOf[PartialObjectMetadata]]:
        """Read a collection page by page; see `Reader.pages`."""
        return self._pages(kind, selection)

    async def list(self, kind: AnyKind, **selection: Unpack[ListSelection]) -> ListOf[PartialObjectMetadata]:
        """Read the metadata of all objects of a kind; see `Reader.list`."""
        return await self._list(kind, selection)

    def iterate(self, kind: AnyKind, **selection: Unpack[ListSelection]) -> AsyncIterator[PartialObjectMetadata]:
        """Iterate over the objects of a kind; see `Reader.iterate`."""
        return self._iterate(kind, selection)

    def watch(self, kind: AnyKind, **selection: Unpack[WatchSelection]) -> Watch[PartialObjectMetadata]:
        """Watch the changes of a kind; see `Reader.watch`."""
        return self._watch(kind, selection)
