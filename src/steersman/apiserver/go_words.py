"""What Go's JSON decoder says of a text that is no JSON: kube-apiserver passes its words on."""

from __future__ import annotations

from json import JSONDecodeError, JSONDecoder
from typing import Any

_NAMES: dict[Any, str] = {list: "array", str: "string", bool: "bool", dict: "object"}
_decoder = JSONDecoder()


def json_words(body: bytes, error: Exception, into: str) -> str:
    """What is wrong with a text; ``into`` is what Go would have read it into."""
    # Go looks at bytes.
    text = body.decode("latin-1")
    try:
        tree, end = _decoder.raw_decode(text, _skip(text, 0))
    except JSONDecodeError as wrong:
        return _at(text, wrong.pos)
    except RecursionError:
        return "exceeded max depth"
    rest = _skip(text, end)
    if rest < len(text):
        return f"invalid character {_quoted(text[rest])} after top-level value"
    found = kind_of(tree)
    return f"json: cannot unmarshal {found} into Go value of type {into}" if tree is not None else str(error)


def kind_of(value: Any) -> str:
    """What Go calls a JSON value that it did not expect."""
    for type_, name in _NAMES.items():
        if isinstance(value, type_):
            return name
    return "number"


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _at(text: str, position: int) -> str:  # noqa: PLR0911 - one return a place reads best
    """Word the first character that cannot stand where it does."""
    position = _skip(text, position)
    if position >= len(text):
        return "unexpected end of JSON input"
    if text[position] == "\\" and position + 1 < len(text):
        return f"invalid character {_quoted(text[position + 1])} in string escape code"
    before = text[:position].rstrip(" \t\r\n")
    character = _quoted(text[position])
    if not before or before[-1] in ":[":
        return f"invalid character {character} looking for beginning of value"
    if before[-1] == "{":
        return f"invalid character {character} looking for beginning of object key string"
    if before[-1] == ",":
        place = "object key string" if _in_object(before) else "value"
        return f"invalid character {character} looking for beginning of {place}"
    if _in_object(before):
        return f"invalid character {character} after object key:value pair"
    return f"invalid character {character} after array element"


def _in_object(before: str) -> bool:
    """Whether the innermost bracket that is open is that of an object; texts within are not looked into."""
    depth = 0
    for character in reversed(before):
        if character in "]}":
            depth += 1
        elif character in "[{":
            if depth == 0:
                return character == "{"
            depth -= 1
    return False


def _quoted(character: str) -> str:
    if character == "'":
        return "'\\''"
    return f"'{character}'" if character.isprintable() else repr(character)
