"""Bodies of writes: bytes in, an object of the served kind out.

A body takes these steps, each in a file of its own:

1. `media_types`: the format of the bytes.
2. `yaml_text`, `json_text`: the bytes as a bounded tree. YAML becomes JSON first; `protobuf_body` takes its own way.
3. `declared_kind`: the kind that the tree declares.
4. `stored_size`: whether an object of so many parts could be stored.
5. `builtin_object`, `custom_object`: the tree as an object of its kind, with Go's words for what does not fit.
6. `object_metadata`: the metadata that all objects share.

`rejections` has the messages about bodies of wrong kinds, and about unknown and duplicate fields.

Guarantees
- The object has the definition's kind and types, and normalized metadata. The kind's own rules check what a custom
  resource declares as its kind; its unknown fields are kept, for pruning.
- Rejections have kube-apiserver's code and message. ``fieldValidation`` decides whether unknown and duplicate fields
  are rejected, reported as warnings or ignored.
- The cost of a body is bounded by its size: nothing nests deeper than `steersman.patches.MAX_DEPTH`, and aliases do not
  multiply.
"""

from __future__ import annotations

from steersman.apiserver.decoding.builtin_object import builtin_object
from steersman.apiserver.decoding.custom_object import custom_object
from steersman.apiserver.decoding.declared_kind import declared_kind
from steersman.apiserver.decoding.json_text import Unrecognized, read_json
from steersman.apiserver.decoding.media_types import media_type_of
from steersman.apiserver.decoding.object_metadata import read_metadata
from steersman.apiserver.decoding.protobuf_body import read_protobuf
from steersman.apiserver.decoding.rejections import Decoded, unrecognized
from steersman.apiserver.decoding.stored_size import check_storable
from steersman.apiserver.errors import too_large
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.request import ServerRequest
from steersman.wire import PROTOBUF, YAML

#: The maximum length of a body, as in kube-apiserver.
BODY_MAX = 3 * 1024 * 1024
#: How many objects in a body could become an object too large to be stored.
_MANY_OBJECTS = 10_000


def read_object(definition: Definition, request: ServerRequest, body: bytes, directive: str) -> Tree:
    """The object in the body of a request; ``directive`` is "Strict", "Warn" or "Ignore"."""
    content_type = request.wire.header("Content-Type")
    tree, warnings = decode_body(body, content_type, definition, field_validation=directive)
    for text in warnings:
        request.warn(text)
    read_metadata(definition, tree)
    return tree


def decode_body(
    raw: bytes, content_type: str | None, definition: Definition, *, field_validation: str, limit: int = BODY_MAX
) -> Decoded:
    """Decode the object in a body. Raises `RequestRejected` if it is not of the definition's kind.

    ``field_validation`` is "Strict", "Warn" or "Ignore"; the limit is in bytes.
    """
    media_type = media_type_of(content_type)
    if len(raw) > limit:
        raise too_large(f"Request entity too large: limit is {limit}")
    try:
        if media_type == PROTOBUF:
            tree = read_protobuf(raw, definition)
            check_storable(definition, tree, raw)
            return Decoded(tree, [])
        json, twice = raw, []
        if media_type == YAML:
            from steersman.apiserver.decoding.yaml_text import yaml_as_json  # noqa: PLC0415 - few clients send YAML

            json, twice = yaml_as_json(raw)
        text = read_json(json, raw, twice)
        given = declared_kind(text)
        if raw.count(b"{") + raw.count(b"null") > _MANY_OBJECTS:
            check_storable(definition, text.tree, raw)
        if not definition.custom:
            return builtin_object(definition, text, given, field_validation)
        return custom_object(definition, text, given, field_validation)
    except Unrecognized as error:
        raise unrecognized(definition.gvk.kind, str(error), raw) from error
