"""The interface of a stage that reads.

All stages of a client have it: `CachedReads` on `ScopedReads` on `ServerReads`, or the last one alone.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Protocol

from steersman.client.results import ListOf
from steersman.client.selections import (
    AnyKind,
    KeyLike,
    ListSelection,
    ReadSelection,
    WatchSelection,
    check_options,
)
from steersman.client.watches import Watch


class Reads(Protocol):
    """Reads objects of any kind, whole or as metadata."""

    async def get(self, kind: AnyKind, key: KeyLike, resource_version: str | None) -> Any:
        """Read one object, perhaps in a certain version."""
        ...

    async def list(self, kind: AnyKind, selection: ListSelection) -> ListOf[Any]:
        """Read a collection whole."""
        ...

    async def head(self, kind: AnyKind, selection: ReadSelection) -> ListOf[Any]:
        """Read the first object of a collection, decodable or not; an empty list if there is none."""
        ...

    def pages(self, kind: AnyKind, selection: ListSelection) -> AsyncGenerator[ListOf[Any]]:
        """Read a collection page by page."""
        ...

    def watch(self, kind: AnyKind, selection: WatchSelection) -> Watch[Any]:
        """Watch the changes of a kind."""
        ...

    async def admit(self, kind: AnyKind, key: KeyLike) -> None:
        """Raise unless this stage would read the object: for subresources, which have no stage."""
        ...

    def live(self) -> Reads:
        """The same without a cache. A key or a namespace that the caller names is read, whatever the scope."""
        ...


async def list_of(reads: Reads, kind: AnyKind, selection: ListSelection) -> ListOf[Any]:
    """A collection, whole."""
    check_options("list", selection, ListSelection)
    return await reads.list(kind, selection)


def pages_of(reads: Reads, kind: AnyKind, selection: ListSelection) -> AsyncGenerator[ListOf[Any]]:
    """A collection, page by page."""
    check_options("pages", selection, ListSelection)
    return reads.pages(kind, selection)


def objects_of(reads: Reads, kind: AnyKind, selection: ListSelection) -> AsyncGenerator[Any]:
    """A collection, object by object; an undecodable one raises after the others of its page."""
    check_options("iterate", selection, ListSelection)
    return _objects(reads.pages(kind, selection))


async def _objects(pages: AsyncGenerator[ListOf[Any]]) -> AsyncGenerator[Any]:
    async for page in pages:
        for item in page.items:
            yield item
        for failure in page.undecodable:
            raise failure.error


async def first_of(reads: Reads, kind: AnyKind, selection: ReadSelection) -> Any:
    """The first object of a collection; None if there is none. An undecodable one raises."""
    check_options("first", selection, ReadSelection)
    page = await reads.head(kind, selection)
    if page.items:
        return page.items[0]
    for failure in page.undecodable:
        raise failure.error
    return None


async def exists_in(reads: Reads, kind: AnyKind, selection: ReadSelection) -> bool:
    """Whether a collection has an object, decodable or not."""
    check_options("exists", selection, ReadSelection)
    page = await reads.head(kind, selection)
    return bool(page.items or page.undecodable)
