"""Reading: get, list, first, pages and watch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar, Unpack, overload

from steersman.client.bindings import VerbCall
from steersman.client.discovery import Discovery
from steersman.client.results import ListOf
from steersman.client.selections import AnyKind, KeyLike, ListSelection, ReadSelection, WatchSelection
from steersman.client.stages.pipeline import Pipeline
from steersman.client.stages.reads import Reads, exists_in, first_of, list_of, objects_of, pages_of
from steersman.client.watches import Watch
from steersman.errors import NotFound
from steersman.objects import Kind, Object, PartialObjectMetadata, Unstructured, decode
from steersman.wire import JSON, HttpRequest

ObjectT = TypeVar("ObjectT", bound=Object)


class Reader:
    """The reading verbs, over the stages of a client."""

    def __init__(self, pipeline: Pipeline) -> None:
        #: How this client reads, sends and applies. It may change in any version: programs use the verbs.
        self.pipeline = pipeline

    @property
    def namespace(self) -> str:
        """The namespace of a bare name; by default that of the context."""
        return self.pipeline.kinds.namespace

    @property
    def discovery(self) -> Discovery:
        """What the server serves."""
        return self.pipeline.kinds.discovery

    @property
    def metadata(self) -> MetadataReader:
        """The reading verbs, returning metadata alone."""
        return MetadataReader(self.pipeline.metadata)

    @overload
    async def get(self, kind: type[ObjectT], key: KeyLike, *, resource_version: str | None = ...) -> ObjectT: ...
    @overload
    async def get(self, kind: Kind, key: KeyLike, *, resource_version: str | None = ...) -> Unstructured: ...

    async def get(self, kind: AnyKind, key: KeyLike, *, resource_version: str | None = None) -> Any:
        """Read one object: ``await client.get(Site, "default/web")``.

        A bare name is in the client's namespace. ``resource_version="0"`` accepts any state that the server has cached.
        """
        return await self.pipeline.reads.get(kind, key, resource_version)

    @overload
    async def find(self, kind: type[ObjectT], key: KeyLike) -> ObjectT | None: ...
    @overload
    async def find(self, kind: Kind, key: KeyLike) -> Unstructured | None: ...

    async def find(self, kind: AnyKind, key: KeyLike) -> Any:
        """Read one object; None if it does not exist: ``if (site := await client.find(Site, key)) is None: ...``.

        Only a missing object is None; a kind that the server does not serve raises, as with `get`.
        """
        try:
            return await self.pipeline.reads.get(kind, key, None)
        except NotFound:
            return None

    async def get_subresource(
        self, kind: AnyKind, key: KeyLike, subresource: str, *, returns: type[ObjectT]
    ) -> ObjectT:
        """Read a subresource: ``await client.get_subresource(Deployment, key, "scale", returns=Scale)``."""
        kinds = self.pipeline.kinds
        await self.pipeline.reads.admit(kind, key)
        binding = await kinds.bind(kind)
        key = kinds.key(binding, key)
        request = HttpRequest(method="GET", path=binding.path(*key, subresource), headers=(("Accept", JSON),))
        tried = VerbCall(f"get {subresource} of", binding.gvk, key)
        return await self.pipeline.server.sender.fetch(request, lambda raw: decode(returns, raw), tried=tried)

    @overload
    def pages(self, kind: type[ObjectT], **selection: Unpack[ListSelection]) -> AsyncIterator[ListOf[ObjectT]]: ...
    @overload
    def pages(self, kind: Kind, **selection: Unpack[ListSelection]) -> AsyncIterator[ListOf[Unstructured]]: ...

    def pages(self, kind: AnyKind, **selection: Unpack[ListSelection]) -> AsyncIterator[ListOf[Any]]:
        """Read a collection page by page, ``page_size`` objects at a time (0: all in one response).

        All pages show the state of the first. Raises `Expired` if the server drops that state before the last page is
        read: start again. In a manager of several namespaces, each has its own pages and its own state.
        """
        return pages_of(self.pipeline.reads, kind, selection)

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
        return await list_of(self.pipeline.reads, kind, selection)

    @overload
    async def first(self, kind: type[ObjectT], **selection: Unpack[ReadSelection]) -> ObjectT | None: ...
    @overload
    async def first(self, kind: Kind, **selection: Unpack[ReadSelection]) -> Unstructured | None: ...

    async def first(self, kind: AnyKind, **selection: Unpack[ReadSelection]) -> Any:
        """Read the first object of a kind, by namespace and name: ``await client.first(Site, labels={"tier": "front"})``.

        Returns None if no object matches. One request for one object, or none if a cache answers.
        """
        return await first_of(self.pipeline.reads, kind, selection)

    async def exists(self, kind: AnyKind, **selection: Unpack[ReadSelection]) -> bool:
        """Whether an object of a kind matches: ``if await client.exists(Pod, labels={"app": "web"}): ...``.

        One request for one object, or none if a cache answers.
        """
        return await exists_in(self.pipeline.reads, kind, selection)

    @overload
    def iterate(self, kind: type[ObjectT], **selection: Unpack[ListSelection]) -> AsyncIterator[ObjectT]: ...
    @overload
    def iterate(self, kind: Kind, **selection: Unpack[ListSelection]) -> AsyncIterator[Unstructured]: ...

    def iterate(self, kind: AnyKind, **selection: Unpack[ListSelection]) -> AsyncIterator[Any]:
        """Iterate over the objects of a kind, with one page in memory at a time.

        An undecodable object raises its `DecodeError` after the other objects of its page.
        """
        return objects_of(self.pipeline.reads, kind, selection)

    @overload
    def watch(self, kind: type[ObjectT], **selection: Unpack[WatchSelection]) -> Watch[ObjectT]: ...
    @overload
    def watch(self, kind: Kind, **selection: Unpack[WatchSelection]) -> Watch[Unstructured]: ...

    def watch(self, kind: AnyKind, **selection: Unpack[WatchSelection]) -> Watch[Any]:
        """Watch the changes of a kind: ``async with client.watch(Site) as events: async for event in events: ...``.

        The stream ends when the server ends it: after ``timeout_seconds``, or at any time. An error frame raises, most
        often `Expired`. ``initial_events=True`` streams the existing objects first, then a `Bookmark` marks their end.
        """
        return self.pipeline.reads.watch(kind, selection)


class MetadataReader:
    """The reading verbs, for metadata alone: ``await client.metadata.list(Pod)`` transfers a fraction of the bytes.

    In a reconcile, the cache answers them for a kind that it caches as metadata.
    """

    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    async def get(self, kind: AnyKind, key: KeyLike, *, resource_version: str | None = None) -> PartialObjectMetadata:
        """Read the metadata of one object."""
        return await self._reads.get(kind, key, resource_version)

    async def find(self, kind: AnyKind, key: KeyLike) -> PartialObjectMetadata | None:
        """Read the metadata of one object; None if it does not exist."""
        try:
            return await self._reads.get(kind, key, None)
        except NotFound:
            return None

    def pages(self, kind: AnyKind, **selection: Unpack[ListSelection]) -> AsyncIterator[ListOf[PartialObjectMetadata]]:
        """Read a collection page by page; see `Reader.pages`."""
        return pages_of(self._reads, kind, selection)

    async def list(self, kind: AnyKind, **selection: Unpack[ListSelection]) -> ListOf[PartialObjectMetadata]:
        """Read the metadata of all objects of a kind; see `Reader.list`."""
        return await list_of(self._reads, kind, selection)

    async def first(self, kind: AnyKind, **selection: Unpack[ReadSelection]) -> PartialObjectMetadata | None:
        """Read the metadata of the first object of a kind; see `Reader.first`."""
        return await first_of(self._reads, kind, selection)

    async def exists(self, kind: AnyKind, **selection: Unpack[ReadSelection]) -> bool:
        """Whether an object of a kind matches; see `Reader.exists`."""
        return await exists_in(self._reads, kind, selection)

    def iterate(self, kind: AnyKind, **selection: Unpack[ListSelection]) -> AsyncIterator[PartialObjectMetadata]:
        """Iterate over the objects of a kind; see `Reader.iterate`."""
        return objects_of(self._reads, kind, selection)

    def watch(self, kind: AnyKind, **selection: Unpack[WatchSelection]) -> Watch[PartialObjectMetadata]:
        """Watch the changes of a kind; see `Reader.watch`."""
        return self._reads.watch(kind, selection)
