"""Equality and depth of JSON trees, with JSON's semantics (``true`` is not ``1``) and safe on hostile input."""

from typing import Any, cast

import msgspec

from steersman.objects import same_json
from steersman.patches.errors import MAX_DEPTH, TooDeep

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


def json_equal(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON: members in any order, numbers by value, booleans equal only to booleans."""
    try:
        return same_json(left, right)
    except RecursionError:
        raise TooDeep from None


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
