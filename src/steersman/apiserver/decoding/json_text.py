"""Bodies in JSON: bytes in, a bounded tree out.

Guarantees
- The cost of a text is bounded by its size: the number of its values, the length of its field names and its depth
  (`steersman.patches.MAX_DEPTH`) are limited.
- Messages about invalid texts are Go's. As in Go, every byte of invalid UTF-8 is read as a replacement character.
"""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.apiserver.go_types.reader import Unreadable
from steersman.apiserver.go_types.text import Text
from steersman.apiserver.json_trees import check_names, check_values, decode_large_numbers, decode_tree
from steersman.errors import UNREADABLE
from steersman.golang import json_syntax_problem, readable_json, too_large_number
from steersman.patches import MAX_DEPTH, TooDeep, check_depth

_NOT_PARSED = "couldn't get version/kind; json parse error: {}"


class Unrecognized(Unreadable):
    """The body is no object, or does not say of which kind; the message is kube-apiserver's."""


def read_json(json: bytes, sent: bytes, twice: list[str]) -> Text:
    """The text of a body with its tree. Raises `Unrecognized` if it is invalid; 413 if it exceeds a bound.

    ``sent`` is the body itself, or the YAML from which it was made, and ``twice`` lists the duplicate fields of that.
    """
    if json is sent:
        # The values of a YAML text are counted while it is parsed.
        check_values(json)
    too_large = ""
    try:
        tree = decode_tree(json)
        if json.count(b"{") + json.count(b"[") > MAX_DEPTH:
            check_depth(tree)
    except (*UNREADABLE, TooDeep):
        problem = json_syntax_problem(json, depth=MAX_DEPTH)
        if problem is not None:
            raise Unrecognized(_NOT_PARSED.format(problem)) from None
        json = readable_json(json)
        # A number that does not fit a double would become null: the text is kept, and its decoder rejects it.
        too_large = too_large_number(json)
        try:
            tree = decode_large_numbers(json) if too_large else decode_tree(json)
        except (msgspec.DecodeError, RecursionError, ValueError):
            raise Unrecognized(_NOT_PARSED.format("unexpected end of JSON input")) from None
    check_names(tree, len(sent))
    return Text(tree, json, sent, twice, too_large)


def parse_json(body: bytes) -> Any:
    """The tree of a JSON document within the same bounds, such as a patch. Raises the errors of its decoder."""
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
