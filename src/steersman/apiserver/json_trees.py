"""JSON texts as trees, and the bounds of texts that clients send.

Guarantees
- Decoding a large text holds the interpreter for no longer than building its tree takes.
- A body with more values than any stored object can have, or whose tree would take more than 30 times its size in
  memory, is rejected before it is decoded; one with a very long field name is rejected after that.
- The checks cost a few passes in C over the bytes, and a small multiple of them in memory.

An empty list takes 24 times its text in memory, a list in a list 48 times, and a name is part of the path of
everything below it: without bounds, a short body could cause a long computation. An object that can be stored is
rejected only if hundreds of kilobytes of it are little but brackets: 250 KB of ``[[[[`` or 800 KB of ``[[]],[[]],``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from steersman.aio import collector_paused
from steersman.apiserver.errors import RequestRejected, too_large

#: The maximum size of a stored object, as in etcd.
STORED_MAX: Final = 1_572_864
#: The maximum number of values of a body: a value of a stored object takes two bytes at least.
VALUES_MAX: Final = STORED_MAX // 2
#: How many times its size in bytes the tree of a body may take, and how many bytes more. A request may take 30 times the
#: size of its body, of which texts take the rest.
TIMES: Final = 27
SPARE: Final = 5 * 1024 * 1024
#: The maximum length of a field name, in characters.
NAME_MAX: Final = 64 * 1024
#: Bytes of memory: of a list and an object, by how much less if they are empty, of a text, and of a place in a list.
LIST, OBJECT, EMPTY_LIST, EMPTY_OBJECT, TEXT, ITEM = 96, 192, -32, -128, 64, 8
_STRUCTURE: Final = b',:{}[]"'
#: Bytes without structure as one and the same, and the bytes that are dropped.
_PLAIN: Final = bytes(each if each in _STRUCTURE else ord("x") for each in range(256))
_SPACE: Final = b" \t\r\n"
#: The size in bytes below which no text can hold too much.
_SMALL: Final = SPARE // OBJECT
#: How many bytes are split into texts and the rest at a time.
_PIECE: Final = 64 * 1024
#: The size in bytes of a text whose values are many.
_LARGE: Final = 32 * 1024
_decode = msgspec.json.Decoder().decode
#: The digits of the largest double, and a sign. Python refuses to make integers of thousands of digits.
_DIGITS_OF_A_DOUBLE: Final = 310


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= _DIGITS_OF_A_DOUBLE else float(text)


_large_numbers = json.JSONDecoder(parse_int=_integer)


def decode_tree(text: bytes) -> Any:
    """The tree of a JSON text. Raises `msgspec.DecodeError` and `UnicodeDecodeError`."""
    if len(text) < _LARGE:
        return _decode(text)
    with collector_paused():
        return _decode(text)


def decode_large_numbers(text: bytes) -> Any:
    """The tree of a JSON text in which numbers may be too large for a double; they are infinite. Raises `ValueError`."""
    with collector_paused():
        return _large_numbers.decode(text.decode())


def check_values(body: bytes) -> None:
    """413 if a text holds too many values, whether or not it is valid JSON."""
    if len(body) < _SMALL:
        return
    # Brackets and commas inside texts are not values: texts are parsed only if that changes the outcome.
    if _values(body) <= VALUES_MAX and _memory(body, body.count(b'"') // 2) <= memory_max(len(body)):
        return
    values = memory = 0
    for piece, texts in _without_texts(body):
        values += _values(piece)
        memory += _memory(piece, max(0, texts - piece.count(b":")))
        check_memory(memory, len(body))
    if values > VALUES_MAX:
        raise too_large(f"Request entity too large: limit is {VALUES_MAX} values")


def memory_max(size: int) -> int:
    """How many bytes of memory the tree of a body of this size may take."""
    return TIMES * size + SPARE


def check_memory(memory: int, size: int) -> None:
    """413 if the tree of a body of this size takes too many bytes."""
    if memory > memory_max(size):
        raise too_dense()


def tree_memory(text: bytes) -> int:
    """About how many bytes of memory the tree of a JSON text takes."""
    return sum(_memory(piece, max(0, texts - piece.count(b":"))) for piece, texts in _without_texts(text))


def too_dense() -> RequestRejected:
    """The answer to a body whose tree would take too much memory."""
    return too_large("Request entity too large: as a tree it would take more than 30 times its size in memory")


def _values(text: bytes) -> int:
    """How many values a text holds: one after each comma, and the first one of each list and object."""
    lists, objects = text.count(b"[") - text.count(b"[]"), text.count(b"{") - text.count(b"{}")
    return text.count(b",") + lists + objects


def _memory(text: bytes, texts: int) -> int:
    """About how many bytes the tree of a text takes that holds so many texts."""
    return (
        # What is never closed is invalid, and too deep before it is large.
        LIST * min(text.count(b"["), text.count(b"]"))
        + OBJECT * min(text.count(b"{"), text.count(b"}"))
        + EMPTY_LIST * text.count(b"[]")
        + EMPTY_OBJECT * text.count(b"{}")
        + ITEM * text.count(b",")
        + TEXT * texts
    )


def _without_texts(body: bytes) -> Iterator[tuple[bytes, int]]:
    """A body in pieces without its texts and spaces, each with the number of the texts that were in it."""
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"").translate(_PLAIN, _SPACE)
    inside = False
    for at in range(0, len(plain), _PIECE):
        parts = plain[at : at + _PIECE].split(b'"')
        # A text stands for itself, so that a list that holds only a text is not empty.
        yield b"x".join(parts[inside::2]), len(parts) // 2
        inside ^= len(parts) % 2 == 0


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
