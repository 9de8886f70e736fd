"""Another client that changes or deletes what the operator writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from steersman.simulation.runs.faults import ChildDeleted, ChildEdited, Fault
from steersman.simulation.runs.places import Place, resource_path
from steersman.transport import Handler
from steersman.wire import HttpRequest, ResourcePath

_MERGE = (("Content-Type", "application/merge-patch+json"), ("User-Agent", "meddler"))
#: The annotation that it sets, which no comparison sees.
TOUCHED = "simulation.steersman.dev/touched"
_OK = 200
#: How many edits are tried until the server accepts one.
_EDITS_MAX = 8
#: Where a person edits an object.
_CONTENTS = ("spec", "data", "stringData", "rules", "subjects")


class _Metadata(msgspec.Struct):
    finalizers: list[str] = []


class _Held(msgspec.Struct):
    metadata: _Metadata


class Meddler:
    """Acts on the objects of other clients' requests."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._times = 0

    async def meddle(self, fault: Fault, place: Place, request: HttpRequest) -> None:
        """Change an annotation or a field of the object of a request, or delete it."""
        path = resource_path(request)
        name = "" if path is None else path.name or place.key.rpartition("/")[2]
        if path is None or not name or name.endswith("*"):
            return
        target = ResourcePath(path.group, path.version, path.resource, path.namespace, name).path
        if isinstance(fault, ChildDeleted):
            await self._delete(target)
            return
        self._times += 1
        patches: list[dict[str, Any]] = list(edits(request.body or b"")) if isinstance(fault, ChildEdited) else []
        # What the server rejects was no edit.
        for patch in (*patches[:_EDITS_MAX], {"metadata": {"annotations": {TOUCHED: str(self._times)}}}):
            body = msgspec.json.encode(patch)
            query = (("fieldManager", "meddler"),)
            if await self._send(HttpRequest("PATCH", target, query=query, headers=_MERGE, body=body)) == _OK:
                return

    async def _delete(self, target: str) -> None:
        """Delete an object, unless a controller of a cluster would have to let it go, which no simulation has."""
        answer = await self._handler(HttpRequest("GET", target))
        answer.release()
        if not isinstance(answer.body, bytes) or answer.status != _OK:
            return
        finalizers = msgspec.json.decode(answer.body, type=_Held).metadata.finalizers
        if any(finalizer.startswith("kubernetes.io/") for finalizer in finalizers):
            return
        await self._send(HttpRequest("DELETE", target, headers=(("User-Agent", "meddler"),)))

    async def _send(self, request: HttpRequest) -> int:
        answer = await self._handler(request)
        answer.release()
        return answer.status


def edits(body: bytes) -> Iterator[dict[str, Any]]:
    """Merge patches that each change one value of what a client sent."""
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    if not isinstance(tree, dict):
        return
    contents = cast("dict[str, Any]", tree)
    if contents.get("kind") == "Secret":
        names: dict[str, Any] = {**(contents.get("data") or {}), **(contents.get("stringData") or {})}
        yield from ({"stringData": {name: "edited"}} for name in names)
    for name in _CONTENTS:
        yield from ({name: patch} for patch in _changes(contents.get(name)))


def _changes(value: Any) -> Iterator[Any]:
    """The value with one number or text in it changed, as merge patches."""
    match value:
        case bool() | None:
            return
        case int():
            yield value + 1
        case str():
            yield f"{value}0" if value.isdigit() else f"{value}-edited"
        case dict():
            for name, inner in cast("dict[str, Any]", value).items():
                yield from ({name: patch} for patch in _changes(inner))
        case _:
            return
