"""A stage of reading that keeps the scope of a manager.

Guarantees
- Every read passes this stage unless a cache of the same scope answers it. No option of a read widens the scope.
- A key or a namespace outside the scope is an error that says so. An object that the selectors leave out is missing.
- A live read of a key or namespace that the caller names ignores the scope; other live reads keep it.
- A scope of several namespaces is read one by one, in alphabetical order, and an error names the namespace. Each has its
  own pages and state.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from copy import copy
from typing import Any, TypeAlias, TypeVar

import msgspec

from steersman.client.bindings import Binding
from steersman.client.results import ListOf
from steersman.client.selections import (
    AnyKind,
    Fields,
    KeyLike,
    Labels,
    ListSelection,
    ReadSelection,
    Selection,
    WatchSelection,
    selector_text,
)
from steersman.client.stages.server_reads import ServerReads, count_pages, joined_lists
from steersman.client.watches import Watch
from steersman.errors import ApiStatus, NotCached, NotFound, StatusDetails
from steersman.objects import FieldSelector, GroupVersionKind, Key, Selector, Unstructured
from steersman.wire import HttpRequest

SelectionT = TypeVar("SelectionT", bound=Selection)


class KindScope(msgspec.Struct, frozen=True, kw_only=True):
    """What a client reads of a kind; everything by default."""

    #: Empty means all.
    namespaces: tuple[str, ...] = ()
    labels: Selector = Selector()
    fields: FieldSelector = FieldSelector()

    def check(self, kind: GroupVersionKind, namespace: str) -> None:
        """Raise `NotCached` for a namespace outside the scope."""
        if self.namespaces and namespace not in self.namespaces:
            raise NotCached(
                f"{kind.kind} in namespace {namespace} is out of scope: this client reads {', '.join(self.namespaces)};"
                " read it with client.live, or add the namespace to Manager(namespaces=...) or to the kind's KindOptions"
            )


#: The scope of a kind, which may be namespaced.
Scopes: TypeAlias = Callable[[AnyKind, bool], KindScope]


class ScopedReads:
    """Reads from the server what is in scope."""

    def __init__(self, server: ServerReads, scopes: Scopes, *, live: bool = False) -> None:
        self._server = server
        self.kinds = server.kinds
        self._scopes = scopes
        self._live = live

    def live(self) -> ScopedReads:
        """The same, which reads every key and namespace that the caller names."""
        return ScopedReads(self._server, self._scopes, live=True)

    async def get(self, kind: AnyKind, key: KeyLike, resource_version: str | None) -> Any:
        """Read one object; `NotFound` if the selectors of the scope leave it out."""
        if self._live:
            return await self._server.get(kind, key, resource_version)
        binding = self.kinds.get(kind) or await self.kinds.bind(kind)
        named = self.kinds.key(binding, key)
        scope = self._scopes(kind, binding.namespaced)
        scope.check(binding.gvk, named.namespace)
        if scope.fields:
            return await self._selected(kind, binding, named, scope, resource_version)
        obj = await self._server.get(kind, named, resource_version)
        labels = obj.get("metadata", "labels") if isinstance(obj, Unstructured) else obj.metadata.labels
        if not scope.labels.matches(labels):
            raise _left_out(binding.gvk, named, scope)
        return obj

    async def _selected(
        self, kind: AnyKind, binding: Binding[Any], key: Key, scope: KindScope, resource_version: str | None
    ) -> Any:
        """Read one object by a list: only the server can evaluate a field selector."""
        fields = FieldSelector.of({"metadata.name": key.name}) & scope.fields
        selection: ListSelection = {"namespace": key.namespace, "labels": scope.labels, "fields": fields}
        found = await self._server.list(kind, {**selection, "resource_version": resource_version, "page_size": 0})
        for failure in found.undecodable:
            raise failure.error
        if not found.items:
            raise _left_out(binding.gvk, key, scope)
        return found.items[0]

    async def admit(self, kind: AnyKind, key: KeyLike) -> None:
        """Raise unless the object is in scope."""
        if self._live:
            return
        binding = await self.kinds.bind(kind)
        scope = self._scopes(kind, binding.namespaced)
        scope.check(binding.gvk, self.kinds.key(binding, key).namespace)
        if scope.labels or scope.fields:
            await self.get(kind, key, None)

    async def list(self, kind: AnyKind, selection: ListSelection) -> ListOf[Any]:
        """Read a collection whole, one namespace after the other."""
        count = count_pages(selection)
        parts = await self._parts(kind, selection)
        return joined_lists([await self._server.list(kind, part, count=count) for part in parts])

    async def head(self, kind: AnyKind, selection: ReadSelection) -> ListOf[Any]:
        """Read the first object of a collection."""
        for part in await self._parts(kind, selection):
            page = await self._server.head(kind, part)
            if page.items or page.undecodable:
                return page
        return ListOf(items=[], resource_version="")

    async def pages(self, kind: AnyKind, selection: ListSelection) -> AsyncGenerator[ListOf[Any]]:
        """Read a collection page by page, one namespace after the other."""
        for part in await self._parts(kind, selection):
            async for page in self._server.pages(kind, part):
                yield page

    def watch(self, kind: AnyKind, selection: WatchSelection) -> Watch[Any]:
        """Watch the changes of a kind in one namespace."""

        async def start() -> tuple[Binding[Any], HttpRequest]:
            part, *others = await self._parts(kind, selection)
            if others:
                names = ", ".join(each.get("namespace") or "" for each in (part, *others))
                raise ValueError(f"watch {kind.gvk().kind}: pass namespace=, because the scope has several: {names}")
            return await self._server.watch_request(kind, part)

        return Watch(self._server.sender, start, idle_timeout=selection.get("idle_timeout"))

    # Not list: inside the class, that name is the verb.
    async def _parts(self, kind: AnyKind, selection: SelectionT) -> tuple[SelectionT, ...]:
        """The selection within the scope, for each namespace to read."""
        binding = await self.kinds.bind(kind)
        namespace = selection.get("namespace") if binding.namespaced else None
        if self._live and namespace:
            return (selection,)
        scope = self._scopes(kind, binding.namespaced)
        if namespace:
            scope.check(binding.gvk, namespace)
        narrowed = copy(selection)
        narrowed["labels"] = _both(selection.get("labels"), scope.labels)
        narrowed["fields"] = _both(selection.get("fields"), scope.fields)
        if namespace or not scope.namespaces:
            return (narrowed,)
        parts = tuple(copy(narrowed) for _ in scope.namespaces)
        for part, each in zip(parts, sorted(scope.namespaces), strict=True):
            part["namespace"] = each
        return parts


def _both(given: Labels | Fields | None, scope: Selector | FieldSelector) -> str:
    """A selector that requires both."""
    return ",".join(text for text in (selector_text(given), str(scope)) if text)


def _left_out(kind: GroupVersionKind, key: Key, scope: KindScope) -> NotFound:
    selectors = " and ".join(str(each) for each in (scope.labels, scope.fields) if each)
    status = ApiStatus(
        message=f'{kind.kind} "{key}" not found in the scope {selectors}; client.live.get reads it in any case',
        reason="NotFound",
        code=404,
        details=StatusDetails(name=key.name, kind=kind.kind, group=kind.group),
    )
    return NotFound(status, tried=f"get {kind.kind} {key}")
