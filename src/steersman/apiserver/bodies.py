"""Bodies of writes: read once, into a tree whose kind, types and metadata can be relied on.

Guarantees
- What is returned is an object of the kind that is served here, with tidy metadata; whatever else was sent is refused
  with what kube-apiserver says of it.
- No body, however deep or long, costs more than its size allows.

How texts become trees, and what ``fieldValidation`` does about them, is told in `steersman.apiserver.decoding`.
"""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

from steersman.apiserver.decoding import conform, decode_body
from steersman.apiserver.errors import bad_request, too_large, unsupported_media_type
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.metadata import check_shape, tidy
from steersman.apiserver.request import ServerRequest
from steersman.objects import GroupVersionKind
from steersman.patches.trees import check_depth
from steersman.wire import JSON, PROTOBUF, YAML

_decode = msgspec.json.Decoder().decode
#: An escape of half a surrogate pair.
_LONE_SURROGATE = re.compile(
    r"(?<!\\)(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)


def read_body(request: ServerRequest, limit: int) -> bytes:
    """The body of a request; 413 if it is too long."""
    body = request.wire.body or b""
    if len(body) > limit:
        raise too_large(f"Request entity too large: limit is {limit}")
    return body


def require_json(request: ServerRequest) -> None:
    """415 unless the body is JSON: for bodies that are no objects."""
    kind = (request.wire.header("Content-Type") or JSON).partition(";")[0].strip().lower()
    if kind != JSON:
        raise unsupported_media_type((JSON, YAML, PROTOBUF))


def read_object(definition: Definition, request: ServerRequest, body: bytes, directive: str) -> Tree:
    """The object in a body; ``directive`` is "Strict", "Warn" or "Ignore"."""
    decoded = decode_body(body, request.wire.header("Content-Type"), definition, field_validation=directive)
    for text in decoded.warnings:
        request.warn(text)
    tree = decoded.tree
    tree["kind"], tree["apiVersion"] = definition.gvk.kind, definition.gvk.api_version
    tree["metadata"] = _metadata(definition.gvk, tree.get("metadata"))
    return tree


def read_patched(
    definition: Definition, request: ServerRequest, tree: Any, directive: str, *, twice: list[str] | None = None
) -> Tree:
    """The object that a patch has made; ``twice`` is what its text says twice."""
    if not isinstance(tree, dict):
        raise bad_request("the patch makes something else than an object")
    obj = cast("Tree", tree)
    for text in conform(definition, obj, twice or [], directive):
        request.warn(text)
    obj["metadata"] = _metadata(definition.gvk, obj.get("metadata"))
    return obj


def parse_json(body: bytes) -> Any:
    """A JSON document, not too deep. As in Go, what is no UTF-8 is read as replacement characters."""
    try:
        tree = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = _LONE_SURROGATE.sub(r"\\ufffd", body.decode("utf-8", "replace")).encode()
        if text == body:
            raise
        tree = _decode(text)
    check_depth(tree)
    return tree


def _metadata(expected: GroupVersionKind, metadata: Any) -> Tree:
    if metadata is None:
        return {}
    wrong = check_shape(metadata)
    if wrong is not None:
        handled = f'{expected.kind} in version "{expected.version}" cannot be handled as a {expected.kind}'
        raise bad_request(f"{handled}: {wrong}")
    return tidy(cast("Tree", metadata))
