"""Bodies in protobuf: an envelope that declares a kind, with a message of its type. Only built-in kinds have them."""

from __future__ import annotations

from steersman.apiserver import protobuf
from steersman.apiserver.decoding.builtin_object import ACCEPTED
from steersman.apiserver.decoding.json_text import Unrecognized
from steersman.apiserver.decoding.rejections import other_kind, unhandled
from steersman.apiserver.errors import unsupported_media_type
from steersman.apiserver.go_types.shapes import is_registered, shape_of
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.objects import GroupVersionKind
from steersman.wire import JSON, YAML


def read_protobuf(raw: bytes, definition: Definition) -> Tree:
    """The object in a body.

    Raises `Unrecognized` if the body is no envelope, and rejects the request with 415 for a custom resource, and with 400
    for another kind or a message that cannot be read.
    """
    if definition.custom:
        raise unsupported_media_type((JSON, YAML))
    expected = definition.gvk
    try:
        envelope = protobuf.read_envelope(raw)
    except protobuf.Malformed as error:
        raise Unrecognized(str(error)) from None
    group, _, version = envelope.api_version.rpartition("/")
    if not version or "/" in group:
        # As in Go, an apiVersion that cannot be parsed counts as missing.
        group, version = expected.group, expected.version
    given = GroupVersionKind(group, version, envelope.kind or expected.kind)
    # An Eviction of v1beta1 counts as one of v1.
    given = ACCEPTED.get(given, given)
    shape = shape_of(given)
    if shape is None:
        raise other_kind(given, expected, is_registered=is_registered(given))
    try:
        tree = protobuf.read_message(envelope.message, shape)
    except protobuf.Malformed as error:
        raise unhandled(given, expected, str(error)) from None
    # Go decodes a message before it compares the kinds: one that cannot be read is reported first.
    if given != expected:
        raise other_kind(given, expected, is_registered=is_registered(given))
    tree["kind"], tree["apiVersion"] = expected.kind, expected.api_version
    return tree
