"""A JSON text with its tree: decoded into a Go type, or without one.

Guarantees
- The text is parsed a second time only if its tree does not fit its type, or it holds a field twice.
- The tree is dropped before that: two trees of a dense body would take too much memory.
"""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.apiserver.go_types.findings import duplicates
from steersman.apiserver.go_types.fit import count_fields, field_count, fits
from steersman.apiserver.go_types.reader import SHOWN_MAX, TypedTree, read_tree, read_written
from steersman.apiserver.go_types.shapes import Shape
from steersman.apiserver.go_types.written_values import as_pairs, parse_pairs
from steersman.apiserver.json_trees import decode_tree
from steersman.apiserver.workers import LARGE


class Text(msgspec.Struct):
    """A JSON text and its tree; or a tree that was never a text, such as the result of a patch."""

    tree: Any
    #: The text that shows duplicate fields; empty if there is none.
    json: bytes = b""
    #: The bytes that the client sent, perhaps as YAML; None if it sent no such text.
    sent: bytes | None = None
    #: The messages about duplicate fields of a YAML text, which its JSON does not show.
    twice: list[str] = []
    #: Go's message about a number that does not fit a double.
    too_large: str = ""
    #: A tree without a text that is used up, as JSON; empty if it is too large to be shown in a message.
    shown: bytes = b""


def read_typed(text: Text, shape: Shape, *, keeps_tree: bool = False) -> TypedTree:
    """Decode a text into a type. Its tree becomes the result, or is used up. Raises `Unreadable`.

    With ``keeps_tree``, a tree that was never a text stays as it is.
    """
    count = fits(shape, text.tree)
    json = text.json
    if count >= 0 and not text.too_large and (not json or field_count(json, count)):
        return TypedTree(text.tree, [])
    if json:
        text.tree = None
        written = parse_pairs(json)
    elif keeps_tree:
        written = as_pairs(text.tree)
    else:
        text.shown = msgspec.json.encode(text.tree)
        if len(text.shown) > SHOWN_MAX:
            text.shown = b""
        return read_tree(text.tree, shape)
    return read_written(written, shape)


def read_part(tree: Any, shape: Shape) -> TypedTree:
    """Decode a part of a tree into a type. It becomes the result, or is used up. Raises `Unreadable`."""
    return TypedTree(tree, []) if fits(shape, tree) >= 0 else read_tree(tree, shape)


def find_duplicates(text: Text) -> list[str]:
    """The messages about duplicate fields of a text without a type. If there are any, its tree is made anew."""
    json = text.json
    if not json or (len(json) < LARGE and msgspec.json.encode(text.tree) == json):
        # A text that is as short as its tree can be printed holds no field twice.
        return []
    if field_count(json, count_fields(text.tree)):
        return []
    text.tree = None
    findings = duplicates(parse_pairs(json))
    text.tree = decode_tree(json)
    return findings
