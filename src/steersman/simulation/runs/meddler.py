"""Another client that changes or deletes what the operator writes."""

from __future__ import annotations

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
        patch = edited(request.body or b"") if isinstance(fault, ChildEdited) else None
        if patch is None:
            patch = {"metadata": {"annotations": {TOUCHED: str(self._times)}}}
        body = msgspec.json.encode(patch)
        await self._send(HttpRequest("PATCH", target, query=(("fieldManager", "meddler"),), headers=_MERGE, body=body))

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

    async def _send(self, request: HttpRequest) -> None:
        answer = await self._handler(request)
        answer.release()


def edited(body: bytes) -> dict[str, Any] | None:
    """A merge patch that changes one value of what a client sent; None if nothing can be changed."""
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(tree, dict):
        return None
    contents = cast("dict[str, Any]", tree)
    for name in _CONTENTS:
        if (patch := _changed(contents.get(name))) is not None:
            return {name: patch}
    return None


def _changed(value: Any) -> Any:
    """The value with one number or text in it changed, as a merge patch; None if it has none."""
    match value:
        case bool() | None:
            return None
        case int():
            return value + 1
        case str():
            return f"{value}0" if value.isdigit() else f"{value}-edited"
        case dict():
            for name, inner in cast("dict[str, Any]", value).items():
                if (patch := _changed(inner)) is not None:
                    return {name: patch}
        case _:
            return None
    return None
