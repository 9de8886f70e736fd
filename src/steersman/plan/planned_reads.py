"""Reads of a program that sees its own plan.

Guarantees
- Reading an object by name returns its planned state, and so does every list that selects it: planned objects are in
  it, objects planned to be deleted are not.
- What is not planned comes from the server, unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from multidict import CIMultiDict, CIMultiDictProxy

from steersman.objects import FieldSelector, Selector
from steersman.plan.planned_objects import Location, PlannedObject, PlannedObjects
from steersman.plan.trees import Tree, part
from steersman.transport import BufferedResponse, Response, Transport
from steersman.wire import JSON, HttpRequest, ListOptions, ResourcePath, is_watch, parse_path


class PlannedReads:
    """Answers reads of objects that the plan changes."""

    def __init__(self, inner: Transport, planned: PlannedObjects) -> None:
        self._inner = inner
        self._planned = planned

    async def read(self, request: HttpRequest) -> Response | None:
        """The answer to a read; None if the plan changes nothing that it would show."""
        path = parse_path(request.path)
        if path is None or (path.subresource is not None and path.subresource != "status"):
            return None
        if path.name is not None:
            known = self._planned.get(Location.of(path))
            if known is None:
                return None
            return missing(path) if known.after is None else answer(200, _as_asked(request, known.after))
        if not any(_in(path, each) for each in self._planned):
            return None
        if is_watch(request.query):
            return self._watch(request)
        return await self._list(request, path)

    @staticmethod
    def _watch(request: HttpRequest) -> Response | None:
        """Refuse a stream of existing objects, so that the cache lists them instead."""
        if ("sendInitialEvents", "true") not in request.query:
            return None
        return answer(400, failure(400, "BadRequest", "a plan answers lists, not streams of existing objects"))

    async def _list(self, request: HttpRequest, path: ResourcePath) -> Response:
        async with await self._inner.send(request) as response:
            body = await response.read()
        listed = tree_in(body) if response.status == 200 else None
        if listed is None:
            return BufferedResponse(response.status, response.headers, body)
        options = ListOptions.from_query(request.query)
        shown = [*self._listed(request, path, options, cast("list[Tree]", listed.get("items") or []))]
        if not part(listed, "metadata").get("continue"):
            shown += self._added(request, path, options)
            if not options.continue_:
                shown.sort(key=_key)
        metadata = part(listed, "metadata")
        one = FieldSelector.parse(options.field_selector).required_value("metadata.name")
        if one is not None and options.limit is None:
            # A cache reads one object like this. No watch follows, so the version can be that of the plan.
            metadata = {**metadata, "resourceVersion": self._planned.version}
        return answer(200, {**listed, "metadata": metadata, "items": shown})

    def _listed(
        self, request: HttpRequest, path: ResourcePath, options: ListOptions, items: list[Tree]
    ) -> Iterator[Tree]:
        for item in items:
            known = self._planned.get(Location(path.group, path.resource, *_key(item)))
            if known is None:
                yield item
            elif known.after is not None and _selects(options, known.after):
                yield _as_asked(request, known.after)

    def _added(self, request: HttpRequest, path: ResourcePath, options: ListOptions) -> Iterator[Tree]:
        """The objects that the server does not list, because only the plan creates them or makes them match."""
        for each in self._planned:
            if not _in(path, each) or each.after is None or not _selects(options, each.after):
                continue
            if each.before is None or not _selects(options, each.before):
                yield _as_asked(request, each.after)


def _in(path: ResourcePath, planned: PlannedObject) -> bool:
    """Whether a planned object is in a collection."""
    at = planned.place
    return (at.group, at.resource) == (path.group, path.resource) and (path.namespace or at.namespace) == at.namespace


def _selects(options: ListOptions, tree: Tree) -> bool:
    labels = part(part(tree, "metadata"), "labels")
    if not Selector.parse(options.label_selector).matches(labels):
        return False
    return FieldSelector.parse(options.field_selector).matches(lambda field: _field(tree, field))


def _field(tree: Any, field: str) -> str:
    for name in field.split("."):
        tree = cast("Tree", tree).get(name) if isinstance(tree, dict) else None
    return "" if tree is None else str(tree)


def _key(tree: Tree) -> tuple[str, str]:
    metadata = part(tree, "metadata")
    return metadata.get("namespace") or "", metadata.get("name") or ""


def _as_asked(request: HttpRequest, tree: Tree) -> Tree:
    """An object in the form that a read requests."""
    if "as=PartialObjectMetadata" not in (request.header("Accept") or "").replace(" ", ""):
        return tree
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": tree.get("metadata") or {}}


def answer(status: int, tree: Any) -> BufferedResponse:
    """A response with a JSON body."""
    return BufferedResponse(status, CIMultiDictProxy(CIMultiDict({"Content-Type": JSON})), msgspec.json.encode(tree))


def failure(code: int, reason: str, message: str) -> Tree:
    """A Status that reports a failure."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
        "details": {},
    }


def missing(path: ResourcePath) -> BufferedResponse:
    """The response for an object that does not exist."""
    resource = f"{path.resource}.{path.group}" if path.group else path.resource
    status = failure(404, "NotFound", f'{resource} "{path.name}" not found')
    return answer(404, {**status, "details": {"name": path.name, "group": path.group, "kind": path.resource}})


def tree_in(body: bytes) -> Tree | None:
    """The JSON object of a body; None if it is something else."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return cast("Tree", found) if isinstance(found, dict) else None
