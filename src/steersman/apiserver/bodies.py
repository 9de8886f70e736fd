"""Bodies of writes: decoded once, into a tree with verified kind, types and metadata.

Guarantees
- The result is an object of the served kind, with normalized metadata. Anything else is rejected with kube-apiserver's
  message. The kind's own rules check what a custom resource declares as its kind.
- The cost of a body is bounded by its size, at any depth.

`steersman.apiserver.decoding` describes how text becomes trees, and the effect of ``fieldValidation``.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from steersman.apiserver import protobuf
from steersman.apiserver.decoding import conform, decode_body, media_type_of
from steersman.apiserver.decoding.body import TYPE_META
from steersman.apiserver.errors import RequestRejected, bad_request, too_large
from steersman.apiserver.go_types.shapes import referred
from steersman.apiserver.json_trees import check_names, check_values, decode_tree
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.metadata import check_shape, tidy
from steersman.apiserver.request import ServerRequest
from steersman.golang import cannot_unmarshal, json_type, readable_json
from steersman.objects import GroupVersionKind
from steersman.patches import MAX_DEPTH, check_depth
from steersman.wire import JSON, YAML

_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


def read_body(request: ServerRequest, limit: int) -> bytes:
    """The body of a request; 413 if it is too long."""
    body = request.wire.body or b""
    if len(body) > limit:
        raise too_large(f"Request entity too large: limit is {limit}")
    return body


def read_delete_options(request: ServerRequest, body: bytes) -> bytes:
    """The options of a deletion in a body, as JSON."""
    media_type = media_type_of(request.wire.header("Content-Type"))
    if media_type == JSON:
        check_values(body)
        return body
    if media_type == YAML:
        return _yaml_as_json(body)
    try:
        _, kind, message = envelope = protobuf.read_envelope(body)
        # For any other kind, only the mismatch is reported.
        tree = protobuf.read_message(message, referred(_DELETE_OPTIONS)) if kind in {"", "DeleteOptions"} else {}
    except (protobuf.Malformed, UnicodeEncodeError) as error:
        raise bad_request(str(error)) from None
    return msgspec.json.encode({"kind": kind, "apiVersion": envelope.api_version, **tree})


def _yaml_as_json(body: bytes) -> bytes:
    from steersman.apiserver.decoding.yaml_text import UnreadableYaml, read_yaml  # noqa: PLC0415 - few clients send YAML

    try:
        return msgspec.json.encode(read_yaml(body)[0])
    except (UnreadableYaml, UnicodeEncodeError) as error:
        raise bad_request(str(error)) from None


def read_object(definition: Definition, request: ServerRequest, body: bytes, directive: str) -> Tree:
    """The object in a body; ``directive`` is "Strict", "Warn" or "Ignore"."""
    decoded = decode_body(body, request.wire.header("Content-Type"), definition, field_validation=directive)
    for text in decoded.warnings:
        request.warn(text)
    tree = decoded.tree
    if not definition.custom:
        tree["kind"], tree["apiVersion"] = definition.gvk.kind, definition.gvk.api_version
    tree["metadata"] = _metadata(definition.gvk, tree.get("metadata"))
    return tree


def read_patched(
    definition: Definition, request: ServerRequest, tree: Any, directive: str, *, twice: list[str] | None = None
) -> Tree:
    """The object that a patch produced; ``twice`` lists the duplicate fields of its text."""
    if not isinstance(tree, dict):
        raise no_object(tree)
    obj = cast("Tree", tree)
    for text in conform(definition, obj, twice or [], directive):
        request.warn(text)
    obj["metadata"] = _metadata(definition.gvk, obj.get("metadata"))
    return obj


def no_object(tree: Any) -> RequestRejected:
    """The error for a patch that makes no object."""
    why = f"couldn't get version/kind; json parse error: {cannot_unmarshal(json_type(tree), TYPE_META)}"
    return bad_request(f"the patch makes no object: {why}")


def parse_json(body: bytes) -> Any:
    """A JSON document of limited depth. As in Go, invalid UTF-8 is read as replacement characters."""
    check_values(body)
    try:
        tree = decode_tree(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = readable_json(body)
        if text == body:
            raise
        tree = decode_tree(text)
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        check_depth(tree)
    check_names(tree, len(body))
    return tree


def _metadata(expected: GroupVersionKind, metadata: Any) -> Tree:
    if metadata is None:
        return {}
    wrong = check_shape(metadata)
    if wrong is not None:
        handled = f'{expected.kind} in version "{expected.version}" cannot be handled as a {expected.kind}'
        raise bad_request(f"{handled}: {wrong}")
    return tidy(cast("Tree", metadata))
