"""Bodies of writes: read once, into a tree whose kind, types and metadata can be relied on.

Guarantees
- What is returned is an object of the kind that is served here, with tidy metadata; whatever else was sent is refused
  with what kube-apiserver says of it.
- No body, however deep or long, costs more than its size allows.

How texts become trees, and what ``fieldValidation`` does about them, is told in `steersman.apiserver.decoding`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, cast

import msgspec

from steersman.apiserver.decoding import conform, decode_body
from steersman.apiserver.errors import bad_request, too_large, unsupported_media_type
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.metadata import check_shape, tidy
from steersman.apiserver.request import ServerRequest
from steersman.kinds import all_kinds
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


def read_patched(definition: Definition, request: ServerRequest, tree: Any, directive: str) -> Tree:
    """The object that a patch has made."""
    if not isinstance(tree, dict):
        raise bad_request("the patch makes something else than an object")
    obj = cast("Tree", tree)
    _check_kind(definition.gvk, obj)
    for text in conform(definition, obj, None, directive):
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


def _check_kind(expected: GroupVersionKind, tree: Tree) -> None:
    """An object that does not name its kind is of the kind that is expected."""
    kind, api_version = tree.get("kind") or expected.kind, tree.get("apiVersion") or expected.api_version
    if not isinstance(kind, str) or not isinstance(api_version, str):
        raise bad_request("json: cannot unmarshal into Go struct field .kind of type string")
    if kind != expected.kind or api_version != expected.api_version:
        _refuse_kind(expected, kind, api_version)
    tree["kind"], tree["apiVersion"] = kind, api_version


def _refuse_kind(expected: GroupVersionKind, kind: str, api_version: str) -> None:
    version = api_version.rpartition("/")[2]
    handled = f'{kind} in version "{version}" cannot be handled as a {expected.kind}'
    if kind == expected.kind or (api_version, kind) not in _known_kinds():
        words = f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
        raise bad_request(f"{handled}: {words}")
    package = expected.group.partition(".")[0] or "core"
    raise bad_request(f"{handled}: converting ({version}.{kind}) to ({package}.{expected.kind}): unknown conversion")


@cache
def _known_kinds() -> frozenset[tuple[str, str]]:
    return frozenset((gvk.api_version, gvk.kind) for gvk in all_kinds())


def _metadata(expected: GroupVersionKind, metadata: Any) -> Tree:
    if metadata is None:
        return {}
    wrong = check_shape(metadata)
    if wrong is not None:
        handled = f'{expected.kind} in version "{expected.version}" cannot be handled as a {expected.kind}'
        raise bad_request(f"{handled}: {wrong}")
    return tidy(cast("Tree", metadata))
