"""OpenAPI v3: an index of documents, one for each group-version.

Guarantees
- A document is made when it is first asked for and kept until a resource of its group-version changes.
- The hash of a document changes with what it is made of, so whoever asks with the hash may keep the answer for ever.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Final

import msgspec

from steersman._version import __version__
from steersman.aio import now
from steersman.apiserver.discovery.catalogue import Catalogue, Snapshot, subresources_of
from steersman.apiserver.discovery.components import Components
from steersman.apiserver.discovery.negotiation import has_newest, not_modified, takes_json
from steersman.apiserver.discovery.operations import paths_of
from steersman.apiserver.registry import Definition, Tree
from steersman.apiserver.request import ServerRequest
from steersman.kinds import index
from steersman.objects import GroupVersion
from steersman.transport import ServerResponse
from steersman.wire import JSON
from steersman.wire.paths import group_version_path

_ROOT: Final = "/openapi/v3"
_PRIVATE: Final = "no-cache, private"
_FOR_EVER: Final = "public, immutable"
_encode = msgspec.json.Encoder().encode


class OpenApi:
    """A route that answers ``/openapi/v3`` and the documents below it."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._documents: dict[GroupVersion, tuple[str, bytes]] = {}

    async def __call__(self, request: ServerRequest) -> ServerResponse | None:
        """Answer a request for the index or a document."""
        path = request.wire.path
        if path == _ROOT:
            headers = (("Cache-Control", _PRIVATE), ("Content-Type", "text/plain; charset=utf-8"))
            return ServerResponse(status=200, headers=headers, body=self._index())
        if not path.startswith(f"{_ROOT}/"):
            return None
        snapshot = self._catalogue.now()
        wanted = path.removeprefix(_ROOT)
        for group_version in snapshot.group_versions():
            if wanted == group_version_path(group_version.group, group_version.version):
                return self._answer(request, snapshot, group_version)
        return ServerResponse(status=404, headers=(("Cache-Control", _PRIVATE),))

    def _index(self) -> bytes:
        snapshot = self._catalogue.now()

        def make() -> bytes:
            paths = {
                group_version_path(each.group, each.version)[1:]: {"serverRelativeURL": _address(snapshot, each)}
                for each in snapshot.group_versions()
            }
            return _encode({"paths": {path: paths[path] for path in sorted(paths)}})

        return snapshot.document(_ROOT, make)

    def _answer(self, request: ServerRequest, snapshot: Snapshot, group_version: GroupVersion) -> ServerResponse:
        if not takes_json(request):
            return ServerResponse(status=406, headers=(("Cache-Control", _PRIVATE), ("Vary", "Accept")))
        digest = _digest(snapshot, group_version)
        etag = f'"{digest}"'
        asked = next((value for name, value in request.wire.query if name == "hash"), "")
        common = (("Content-Type", JSON), ("ETag", etag), ("Vary", "Accept"))
        if asked and asked != digest:
            moved = (("Cache-Control", _PRIVATE), ("Location", _address(snapshot, group_version)), *common)
            return ServerResponse(status=301, headers=moved)
        cache_control = _FOR_EVER if asked else _PRIVATE
        if has_newest(request, etag):
            return not_modified(etag, cache_control)
        expires = ()
        if asked:
            expires = (("Expires", f"{now() + timedelta(days=365):%a, %d %b %Y %H:%M:%S} UTC"),)
        body = self._document(snapshot, group_version, digest)
        return ServerResponse(status=200, headers=(("Cache-Control", cache_control), *common, *expires), body=body)

    def _document(self, snapshot: Snapshot, group_version: GroupVersion, digest: str) -> bytes:
        made, body = self._documents.get(group_version, ("", b""))
        if made != digest:
            body = _encode(document(snapshot.of(group_version) or []))
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
    """A hash of what a document is made of, which is much less than the document."""

    def make() -> bytes:
        sources = [_source(definition) for definition in snapshot.of(group_version) or ()]
        read = _encode([__version__, index.KUBERNETES, group_version.api_version, sources])
        return hashlib.sha512(read).hexdigest().upper().encode()

    return snapshot.document(f"digest {group_version.api_version}", make).decode()


def _source(definition: Definition) -> list[object]:
    schema = definition.schema() if definition.custom else None
    subresources = [(sub.name, sub.gvk.api_version, sub.gvk.kind, sub.verbs) for sub in subresources_of(definition)]
    return [definition.resource, definition.gvk.kind, definition.namespaced, definition.verbs, subresources, schema]
