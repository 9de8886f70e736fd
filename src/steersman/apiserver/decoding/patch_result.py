"""Results of patches: a tree that was never a text becomes an object of the served kind, as the tree of a body does.

Guarantee: a rejected tree is as before, or empty if it is too large to be shown in a message.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from steersman.apiserver.decoding.builtin_object import builtin_object
from steersman.apiserver.decoding.custom_object import custom_object
from steersman.apiserver.decoding.declared_kind import TYPE_META, declared_kind
from steersman.apiserver.decoding.json_text import Unrecognized
from steersman.apiserver.decoding.object_metadata import read_metadata
from steersman.apiserver.decoding.rejections import unrecognized
from steersman.apiserver.errors import RequestRejected, bad_request
from steersman.apiserver.go_types.findings import duplicates
from steersman.apiserver.go_types.fit import count_fields, field_count
from steersman.apiserver.go_types.text import Text
from steersman.apiserver.go_types.written_values import parse_pairs
from steersman.apiserver.json_trees import decode_tree
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.request import ServerRequest
from steersman.golang import cannot_unmarshal, json_type, readable_json


def read_patched(
    definition: Definition, request: ServerRequest, tree: Any, directive: str, *, twice: list[str] | None = None
) -> Tree:
    """The object that a patch produced; ``twice`` lists the duplicate fields of its text."""
    if not isinstance(tree, dict):
        raise no_object(tree)
    obj = cast("Tree", tree)
    for text in conform(definition, obj, twice or [], directive):
        request.warn(text)
    read_metadata(definition, obj)
    return obj


def no_object(tree: Any) -> RequestRejected:
    """The error for a patch that makes no object."""
    why = f"couldn't get version/kind; json parse error: {cannot_unmarshal(json_type(tree), TYPE_META)}"
    return bad_request(f"the patch makes no object: {why}")


def conform(definition: Definition, tree: Tree, twice: list[str], directive: str) -> list[str]:
    """Make a patched tree conform to its kind, in place, and return warnings. Raises `RequestRejected` if it cannot.

    ``twice`` are the duplicate fields of the patch's text: see `said_twice`.
    """
    text = Text(tree)
    try:
        given = declared_kind(text)
        read = custom_object if definition.custom else builtin_object
        decoded = read(definition, text, given, directive, twice)
    except Unrecognized as error:
        raise unrecognized(definition.gvk.kind, str(error), None) from error
    except RequestRejected:
        if text.shown:
            tree.update(decode_tree(text.shown))
        raise
    if decoded.tree is not tree:
        tree.clear()
        tree.update(decoded.tree)
    return decoded.warnings


def said_twice(body: bytes) -> list[str]:
    """The messages about duplicate fields of a JSON text."""
    try:
        try:
            count = count_fields(decode_tree(body))
        except (msgspec.DecodeError, UnicodeDecodeError):
            body = readable_json(body)
            count = count_fields(decode_tree(body))
        return [] if field_count(body, count) else duplicates(parse_pairs(body))
    except (msgspec.DecodeError, RecursionError):
        return []
