"""Bounds of bodies beyond their length: the number of values, and the length of field names.

Guarantees
- A body with more values than any object needs is rejected before it is decoded.
- The check costs a few passes in C over the bytes.

A value costs a hundred times its bytes in memory, and a name is part of the path of everything below it: without
bounds, a short body could cause a long computation.
"""

from __future__ import annotations

from typing import Any, Final, cast

from steersman.apiserver.errors import too_large

#: The maximum number of values of a body: more than any object that can be stored needs, and decoded in a second.
VALUES_MAX: Final = 150_000
#: The maximum length of a field name, in characters.
NAME_MAX: Final = 64 * 1024
#: All bytes except quotes and the counted characters.
_OTHERS: Final = bytes(set(range(256)) - set(b',{["'))


def check_values(body: bytes) -> None:
    """413 if a text holds too many values, whether or not it is valid JSON."""
    marks = body.count(b",") + body.count(b"{") + body.count(b"[")
    # Commas and brackets inside strings are not values; strings are parsed only if that changes the outcome.
    if marks > VALUES_MAX and _marks_outside_texts(body) > VALUES_MAX:
        raise too_large(f"Request entity too large: limit is {VALUES_MAX} values")


def _marks_outside_texts(body: bytes) -> int:
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return sum(map(len, unescaped.translate(None, _OTHERS).split(b'"')[::2]))


def check_names(tree: Any, size: int) -> None:
    """413 if a field name of a tree is too long; ``size`` is the size in bytes of the tree's text."""
    if size <= NAME_MAX or not isinstance(tree, (dict, list)):
        return
    level: list[Any] = [cast("Any", tree)]
    while level:
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                members = cast("dict[str, Any]", each)
                if members and len(max(members, key=len)) > NAME_MAX:
                    raise too_large(f"Request entity too large: limit of a field's name is {NAME_MAX} characters")
                below += [inner for inner in members.values() if isinstance(inner, (dict, list))]
            else:
                below += [inner for inner in cast("list[Any]", each) if isinstance(inner, (dict, list))]
        level = below
