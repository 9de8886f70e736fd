"""Equality and depth of JSON trees, with JSON's semantics (``true`` is not ``1``) and safe on hostile input."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from steersman.patches.errors import MAX_DEPTH, TooDeep

__all__ = ["check_depth", "json_equal", "quickly_equal"]

_encode = msgspec.json.Encoder().encode


def check_depth(value: Any) -> None:
    """Raise `TooDeep` if a value nests too deeply. Does not recurse."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for each in level for inner in _members(each) if isinstance(inner, (dict, list))]
        if not level:
            return
    raise TooDeep


def _members(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []


def json_equal(left: Any, right: Any, depth: int = 0) -> bool:
    """Whether two values are the same JSON: members in any order, numbers by value, booleans equal only to booleans."""
    if left is right:
        return True
    if depth > MAX_DEPTH:
        raise TooDeep
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        ours, theirs = cast("Mapping[str, Any]", left), cast("Mapping[str, Any]", right)
        if ours.keys() != theirs.keys():
            return False
        pairs = [(inner, theirs[name]) for name, inner in ours.items()]
    elif isinstance(left, list) and isinstance(right, list):
        items, others = cast("list[Any]", left), cast("list[Any]", right)
        if len(items) != len(others):
            return False
        pairs = list(zip(items, others, strict=True))
    else:
        return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
    for inner, other in pairs:  # noqa: SIM110 - a generator would double the recursion depth
        if not json_equal(inner, other, depth + 1):
            return False
    return True


def quickly_equal(left: Any, right: Any) -> bool:
    """Like `json_equal`, at the speed of Python's own comparison for equal values. Deep ones raise ``RecursionError``."""
    if left is right:
        return True
    if left != right:
        return False
    # Python-equal values can differ only in booleans where the other has numbers.
    if isinstance(left, (dict, list)):
        return _encode(left) == _encode(right) or json_equal(left, right)
    return isinstance(left, bool) == isinstance(right, bool)
