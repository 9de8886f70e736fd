"""What Go's JSON decoder says of a text that is no JSON, or none of the type that it expects."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.apiserver.decoding.syntax import syntax_problem

_NAMES: dict[Any, str] = {list: "array", str: "string", bool: "bool", dict: "object"}


def json_words(body: bytes, error: Exception, into: str) -> str:
    """What is wrong with a text; ``into`` is what Go would have read it into."""
    wrong = syntax_problem(body)
    if wrong is not None:
        return wrong
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return str(error)
    return f"json: cannot unmarshal {kind_of(tree)} into Go value of type {into}" if tree is not None else str(error)


def kind_of(value: Any) -> str:
    """What Go calls a JSON value that it did not expect."""
    for type_, name in _NAMES.items():
        if isinstance(value, type_):
            return name
    return "number"
