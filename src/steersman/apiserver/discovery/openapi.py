"""OpenAPI v3: an index of documents, one for each group-version.

Guarantees
- A document is made on first use and cached until a resource of its group-version changes.
- Documents and their hashes are made in a thread, so that other clients do not wait for large groups.
- The hash of a document changes with its inputs, so an answer requested with the hash can be cached forever.
"""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta
from typing import Final

import msgspec

from steersman._version import __version__
from steersman.aio import utc_now
from steersman.apiserver.discovery.catalog import Catalog, Snapshot, subresources_of
from steersman.apiserver.discovery.components import Components
from steersman.apiserver.discovery.negotiation import has_newest, not_modified, takes_json
from steersman.apiserver.discovery.operations import paths_of
from steersman.apiserver.registry import Definition, Tree
from steersman.apiserver.request import ServerRequest
from steersman.kinds import index
from steersman.objects import GroupVersion
from steersman.transport import ServerResponse
from steersman.wire import JSON, first_values, group_version_path

_ROOT: Final = "/openapi/v3"
_PRIVATE: Final = "no-cache, private"
_FOR_EVER: Final = "public, immutable"
_encode = msgspec.json.Encoder().encode


class OpenApi:
    """The route of ``/openapi/v3`` and the documents below it."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._documents: dict[GroupVersion, tuple[str, bytes]] = {}
        self._making = asyncio.Lock()

    async def __call__(self, request: ServerRequest) -> ServerResponse | None:
        """Answer a request for the index or a document."""
        path = request.wire.path
        if path == _ROOT:
            headers = (("Cache-Control", _PRIVATE), ("Content-Type", "text/plain; charset=utf-8"))
            return ServerResponse(status=200, headers=headers, body=await asyncio.to_thread(self._index))
        if not path.startswith(f"{_ROOT}/"):
            return None
        snapshot = self._catalog.now()
        wanted = path.removeprefix(_ROOT)
        for group_version in snapshot.group_versions():
            if wanted == group_version_path(group_version.group, group_version.version):
                return await self._answer(request, snapshot, group_version)
        return ServerResponse(status=404, headers=(("Cache-Control", _PRIVATE),))

    def _index(self) -> bytes:
        snapshot = self._catalog.now()

        def make() -> bytes:
            paths = {
                group_version_path(version.group, version.version)[1:]: {
                    "serverRelativeURL": _address(snapshot, version)
                }
                for version in snapshot.group_versions()
            }
            return _encode({"paths": {path: paths[path] for path in sorted(paths)}})

        return snapshot.document(_ROOT, make)

    async def _answer(self, request: ServerRequest, snapshot: Snapshot, group_version: GroupVersion) -> ServerResponse:
        if not takes_json(request):
            return ServerResponse(status=406, headers=(("Cache-Control", _PRIVATE), ("Vary", "Accept")))
        digest = await asyncio.to_thread(_digest, snapshot, group_version)
        etag = f'"{digest}"'
        asked = first_values(request.wire.query).get("hash", "")
        common = (("Content-Type", JSON), ("ETag", etag), ("Vary", "Accept"))
        if asked and asked != digest:
            moved = (("Cache-Control", _PRIVATE), ("Location", _address(snapshot, group_version)), *common)
            return ServerResponse(status=301, headers=moved)
        cache_control = _FOR_EVER if asked else _PRIVATE
        if has_newest(request, etag):
            return not_modified(etag, cache_control)
        expires = ()
        if asked:
            expires = (("Expires", f"{utc_now() + timedelta(days=365):%a, %d %b %Y %H:%M:%S} UTC"),)
        body = await self._document(snapshot, group_version, digest)
        return ServerResponse(status=200, headers=(("Cache-Control", cache_control), *common, *expires), body=body)

    async def _document(self, snapshot: Snapshot, group_version: GroupVersion, digest: str) -> bytes:
        # One at a time: concurrent requests for the same document share the result and its memory.
        async with self._making:
            made, body = self._documents.get(group_version, ("", b""))
            if made != digest:
                body = await asyncio.to_thread(lambda: _encode(document(snapshot.of(group_version) or [])))
                self._documents[group_version] = (digest, body)
            return body


def document(definitions: list[Definition]) -> Tree:
    """The OpenAPI document of the resources of a group-version."""
    components = Components()
    paths: dict[str, Tree] = {}
    for definition in definitions:
        paths |= paths_of(definition, components)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": index.KUBERNETES.removeprefix("v")},
        "paths": {path: paths[path] for path in sorted(paths)},
        "components": {"schemas": components.tree()},
    }


def _address(snapshot: Snapshot, group_version: GroupVersion) -> str:
    path = group_version_path(group_version.group, group_version.version)
    return f"{_ROOT}{path}?hash={_digest(snapshot, group_version)}"


def _digest(snapshot: Snapshot, group_version: GroupVersion) -> str:
    """A hash of a document's inputs, which are much smaller than the document."""

    def make() -> bytes:
        sources = [_source(definition) for definition in snapshot.of(group_version) or ()]
        read = _encode([__version__, index.KUBERNETES, group_version.api_version, sources])
        return hashlib.sha512(read).hexdigest().upper().encode()

    return snapshot.document(f"digest {group_version.api_version}", make).decode()


def _source(definition: Definition) -> list[object]:
    schema = definition.published_schema if definition.custom else None
    subresources = [(sub.name, sub.gvk.api_version, sub.gvk.kind, sub.verbs) for sub in subresources_of(definition)]
    return [definition.resource, definition.gvk.kind, definition.namespaced, definition.verbs, subresources, schema]
