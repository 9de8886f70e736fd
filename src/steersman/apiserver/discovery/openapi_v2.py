"""OpenAPI v2: the schemas of all kinds in one document, as JSON and as kubectl's protobuf.

Guarantees
- The document holds the same schemas as OpenAPI v3, in v2's form; only v3 has operations.
- It is made on first use, and cached until a resource changes.
"""

from __future__ import annotations

import asyncio
import hashlib
import struct
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

import msgspec

from steersman.apiserver.discovery.catalog import Catalog, Snapshot, subresources_of
from steersman.apiserver.discovery.components import Components
from steersman.apiserver.discovery.custom_schemas import published_v2
from steersman.apiserver.discovery.negotiation import has_newest, not_modified
from steersman.apiserver.registry import Tree
from steersman.apiserver.request import ServerRequest
from steersman.kinds import index
from steersman.transport import ServerResponse
from steersman.wire import JSON, parse_accept

PATH: Final = "/openapi/v2"
_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_MEDIA_TYPES: Final = {JSON: JSON, "application/*": JSON, "*/*": JSON, _PROTOBUF: _PROTOBUF}
#: The keywords of a v2 schema, beside extensions, with their protobuf numbers: strings and numbers.
_TEXTS: Final = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_COUNTS: Final = {
    "maxLength": 11,
    "minLength": 12,
    "maxItems": 14,
    "minItems": 15,
    "maxProperties": 17,
    "minProperties": 18,
}
_NUMBERS: Final = {"maximum": 7, "minimum": 9}
_EXTENSION: Final = "x-"
_PLAIN: Final = frozenset({*_TEXTS, *_COUNTS, *_NUMBERS, "type", "required", "enum"})
_PLAIN_CUSTOM: Final = _PLAIN | {
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "multipleOf",
    "uniqueItems",
}
_KIND: Final = "x-kubernetes-group-version-kind"
_encode = msgspec.json.Encoder().encode


class OpenApiV2:
    """The route of ``/openapi/v2``."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def __call__(self, request: ServerRequest) -> ServerResponse | None:
        """Answer a request for the document."""
        if request.wire.path != PATH:
            return None
        # kubectl requests a name with a character that media types cannot contain.
        wanted = (request.wire.header("Accept") or "*/*").replace("@", ".")
        names = (clause.name for clause in parse_accept(wanted))
        media_type = next((_MEDIA_TYPES[name] for name in names if name in _MEDIA_TYPES), None)
        if media_type is None:
            return ServerResponse(status=406, headers=(("Cache-Control", "no-cache, private"), ("Vary", "Accept")))
        snapshot = self._catalog.now()
        # It takes long enough to delay other requests.
        text = await asyncio.to_thread(snapshot.document, PATH, lambda: _encode(document(snapshot)))
        digest = snapshot.document(f"{PATH} digest", lambda: hashlib.sha512(text).hexdigest().upper().encode())
        etag = f'"{digest.decode()}"'
        if has_newest(request, etag):
            return not_modified(etag, "no-cache, private")
        if media_type == _PROTOBUF:
            schemas = text
            text = await asyncio.to_thread(snapshot.document, _PROTOBUF, lambda: printed(msgspec.json.decode(schemas)))
        headers = (
            ("Cache-Control", "no-cache, private"),
            ("Content-Type", media_type),
            ("ETag", etag),
            ("Vary", "Accept"),
        )
        return ServerResponse(status=200, headers=headers, body=text)


def document(snapshot: Snapshot) -> Tree:
    """The document of everything that is served."""
    components = Components()
    custom: dict[str, Tree] = {}
    for group_version in snapshot.group_versions():
        for definition in snapshot.of(group_version) or ():
            name = components.add(definition)
            if definition.custom:
                gvk = definition.gvk
                kind = {"group": gvk.group, "kind": gvk.kind, "version": gvk.version}
                custom[name] = _as_v2({**published_v2(definition), _KIND: [kind]}, _PLAIN_CUSTOM)
            for subresource in subresources_of(definition):
                components.add_kind(subresource.gvk, name)
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": index.KUBERNETES.removeprefix("v")},
        "paths": {},
        "definitions": {name: custom.get(name) or _as_v2(schema) for name, schema in components.tree().items()},
    }


def _as_v2(schema: Tree, plain: frozenset[str] = _PLAIN) -> Tree:
    """A schema without keywords that v2 lacks."""
    found: Tree = {key: value for key, value in schema.items() if key in plain or key.startswith(_EXTENSION)}
    parts: list[Tree] = [schema, *(schema.get("allOf") or ())]
    referred = next((part for part in parts if "$ref" in part), schema)
    if "$ref" in referred:
        found["$ref"] = referred["$ref"].replace("#/components/schemas/", "#/definitions/")
    elif (
        plain is _PLAIN
        and "type" not in found
        and (schema.get("oneOf") or schema.get("anyOf") or schema.get("x-kubernetes-int-or-string"))
    ):
        # Numbers or strings: v2 supports only one type at a time.
        found["type"] = "string"
    if "properties" in schema:
        found["properties"] = {name: _as_v2(each, plain) for name, each in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            found[key] = _as_v2(schema[key], plain)
    return found


# the protobuf of a document


def printed(tree: Tree) -> bytes:
    """A document as protobuf, in the form of gnostic's ``openapi.v2.Document``."""
    info = _text(1, tree["info"]["title"]) + _text(2, tree["info"]["version"])
    definitions = _named(1, tree["definitions"], _schema)
    return _text(1, tree["swagger"]) + _field(2, info) + _field(8, b"") + _field(9, definitions)


def _schema(schema: Tree) -> bytes:
    parts: list[bytes] = []
    for key, value in schema.items():
        if key in _TEXTS:
            parts.append(_text(_TEXTS[key], value))
        elif key in _COUNTS:
            parts.append(_varint(_COUNTS[key] << 3) + _varint(value))
        elif key in _NUMBERS:
            parts.append(_varint(_NUMBERS[key] << 3 | 1) + struct.pack("<d", value))
        elif key.startswith(_EXTENSION):
            parts.append(_field(31, _text(1, key) + _field(2, _any(value))))
    parts += [_text(19, name) for name in schema.get("required", ())]
    parts += [_field(20, _any(value)) for value in schema.get("enum", ())]
    if "additionalProperties" in schema:
        parts.append(_field(21, _field(1, _schema(schema["additionalProperties"]))))
    if "type" in schema:
        parts.append(_field(22, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_field(23, _field(1, _schema(schema["items"]))))
    if "properties" in schema:
        parts.append(_field(25, _named(1, schema["properties"], _schema)))
    return b"".join(parts)


def _any(value: Any) -> bytes:
    """A value of any type, as YAML; JSON is YAML."""
    return _text(2, f"{_encode(value).decode()}\n")


def _named(number: int, trees: Tree, print_one: Callable[[Tree], bytes]) -> bytes:
    pairs = cast("Iterable[tuple[str, Tree]]", trees.items())
    return b"".join(_field(number, _text(1, name) + _field(2, print_one(tree))) for name, tree in pairs)


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
