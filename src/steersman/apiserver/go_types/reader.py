"""Decoding into Go types: a body as Go decodes it into the types of its kind, field by field in the order of the text.

Guarantees
- The tree is the server's, also with duplicate fields: structs and maps merge, and list items are decoded over earlier
  ones.
- Errors are Go's: a value that its own type cannot decode ends the decoding; of other mismatches the first is reported;
  unknown and duplicate fields are reported in the order of the text, each once and at most 100.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NoReturn, TypeVar, cast

import msgspec

from steersman.aio import collector_paused
from steersman.apiserver.go_types import scalars
from steersman.apiserver.go_types.shapes import Shape
from steersman.apiserver.go_types.tree_errors import tree_words
from steersman.golang import base64_problem, cannot_unmarshal, quoted_in_full

#: The maximum number of findings, and their total length except the last one.
FINDINGS_MAX, FINDINGS_LENGTH = 100, 64 * 1024
#: The longest object that a message shows, in bytes; kube-apiserver shows all.
SHOWN_MAX = 64 * 1024
_ABSENT: Any = object()
_Item = TypeVar("_Item")
_INT32 = 2**31
_INT64 = 2**63
_ZEROES: dict[str, Any] = {
    "string": "",
    "int": 0,
    "float": 0,
    "bool": False,
    "bytes": "",
    "quantity": "0",
    "int-or-string": 0,
}


class Pairs(list[tuple[str, Any]]):
    """An object as written: every field, including duplicates."""

    __slots__ = ()


class Number(str):
    """A number as written."""

    __slots__ = ()


class Unreadable(Exception):
    """The text is not an object of its kind; the message is Go's.

    ``of_tree`` is Go's message when it decodes a tree instead of a text, if that differs.
    """

    def __init__(self, message: str, of_tree: str = "") -> None:
        super().__init__(message)
        self.of_tree = of_tree or message


def _written(text: str) -> Number:
    # Many numbers are short and equal; each one of its own would take a hundred times its text in memory.
    return _short(text) if len(text) <= _SHORT else Number(text)


def _reprinted(text: str) -> Number:
    return _written(repr(float(text)).removesuffix(".0"))


_SHORT = 8
_short = lru_cache(maxsize=1024)(Number)
_decoder = json.JSONDecoder(object_pairs_hook=Pairs, parse_int=_written, parse_float=_written, parse_constant=_written)
_printed_decoder = json.JSONDecoder(object_pairs_hook=Pairs, parse_int=_written, parse_float=_reprinted)


def parse_pairs(text: str) -> Any:
    """A valid JSON text with all its fields and with numbers as written."""
    with collector_paused():
        return _decoder.decode(text)


def read_tree(reader: TypedReader, tree: Any, shape: Shape) -> Any:
    """The tree of a tree, as if written with its fields in order.

    The given one is emptied, because two trees of a dense body would take too much memory. An `Unreadable` one is
    restored if it is small enough to be shown in a message.
    """
    try:
        text = msgspec.json.encode(tree, order="sorted")
    except UnicodeEncodeError:
        return reader.read(as_pairs(tree), shape)
    if isinstance(tree, dict):
        cast("dict[str, Any]", tree).clear()
    with collector_paused():
        pairs = _printed_decoder.decode(text.decode())
    try:
        return reader.read(pairs, shape)
    except Unreadable as error:
        # Its frames would hold what was read so far.
        unreadable = error.with_traceback(None)
    if isinstance(tree, dict) and len(text) <= SHOWN_MAX:
        cast("dict[str, Any]", tree).update(msgspec.json.decode(text))
    raise unreadable


def as_pairs(tree: Any) -> Any:
    """A tree as if written with its fields in order."""
    if isinstance(tree, dict):
        members = cast("dict[str, Any]", tree)
        return Pairs((name, as_pairs(members[name])) for name in sorted(members))
    if isinstance(tree, list):
        return [as_pairs(item) for item in cast("list[Any]", tree)]
    if isinstance(tree, (int, float)) and not isinstance(tree, bool):
        return Number(repr(tree).removesuffix(".0"))
    return tree


def taken(raw: list[_Item]) -> Iterator[_Item]:
    """The items of a list, which is used up: what was read and what is made of it are not in memory at once."""
    for at, item in enumerate(raw):
        raw[at] = cast("_Item", None)
        yield item


def plain(raw: Any) -> Any:
    """A tree as Go decodes it without a type: of duplicate fields the last counts."""
    if isinstance(raw, Pairs):
        return {name: plain(inner) for name, inner in taken(raw)}
    if isinstance(raw, list):
        return [plain(item) for item in taken(cast("list[Any]", raw))]
    return _number(raw) if isinstance(raw, Number) else raw


def _number(raw: Number) -> int | float:
    if raw.lstrip("-").isdigit() and -_INT64 <= (whole := int(raw)) < _INT64:
        return whole
    value = float(raw)
    return int(value) if value.is_integer() and abs(value) < _INT64 else value


def duplicates(raw: Any) -> list[str]:
    """Duplicate fields in a value without a type."""
    found = Findings()
    _find_duplicates(raw, [], found)
    return found.texts


def _find_duplicates(raw: Any, path: list[str], found: Findings) -> None:
    if isinstance(raw, Pairs):
        seen: set[str] = set()
        for name, inner in raw:
            if name in seen:
                found.add("duplicate", path, name)
            seen.add(name)
            if isinstance(inner, list):
                path.append(f".{name}" if path else name)
                _find_duplicates(inner, path, found)
                path.pop()
    elif isinstance(raw, list):
        for at, item in enumerate(cast("list[Any]", raw)):
            if isinstance(item, list):
                path.append(f"[{at}]")
                _find_duplicates(item, path, found)
                path.pop()


class Findings:
    """What strict decoding rejects, each once. Only the first findings are kept, if there are very many."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._length = 0

    @property
    def texts(self) -> list[str]:
        """The messages, in the order of the text."""
        return list(self._texts)

    def add(self, what: str, path: list[str], name: str) -> None:
        """Add an unknown or duplicate field."""
        if len(self._texts) >= FINDINGS_MAX or self._length > FINDINGS_LENGTH:
            return
        place = "".join(path)
        text = f"{what} field {quoted_in_full(f'{place}.{name}' if place else name)}"
        if text not in self._texts:
            self._texts[text] = None
            self._length += len(text)


class TypedReader:
    """Decodes one text; `findings` are what strict decoding rejects."""

    def __init__(self) -> None:
        self._findings = Findings()
        self._mismatch: Unreadable | None = None
        self._path: list[str] = []
        self._fields: list[str] = []
        self._struct = ""

    @property
    def findings(self) -> list[str]:
        """Unknown and duplicate fields, in order."""
        return self._findings.texts

    def read(self, raw: Any, shape: Shape) -> Any:
        """The tree of a text. Raises `Unreadable` if it does not have this shape."""
        tree = self._value(raw, shape, _ABSENT)
        if self._mismatch is not None:
            raise self._mismatch
        return {} if tree is _ABSENT else tree

    def _value(self, raw: Any, shape: Shape, current: Any) -> Any:  # noqa: PLR0911 - one return a kind
        if raw is None:
            return _ABSENT
        match shape.kind:
            case "struct":
                if isinstance(raw, Pairs):
                    return self._members(raw, shape, current)
            case "map":
                if isinstance(raw, Pairs):
                    return self._entries(raw, shape, current)
            case "list":
                if isinstance(raw, list) and not isinstance(raw, Pairs):
                    return self._items(cast("list[Any]", raw), shape, current)
            case "any":
                return plain(raw)
            case _:
                return self._scalar(raw, shape)
        return self._wrong(raw, shape)

    def _members(self, raw: Pairs, shape: Shape, current: Any) -> dict[str, Any]:
        result = cast("dict[str, Any]", current) if isinstance(current, dict) else {}
        seen: set[str] = set()
        fields, struct, depth, steps = shape.fields, self._struct, len(self._fields), len(self._path)
        for name, inner in taken(raw):
            place = fields.get(name)
            if place is None:
                self._find("unknown", name)
                continue
            if name in seen:
                self._find("duplicate", name)
            seen.add(name)
            self._struct = shape.name
            self._fields += (*place.embedded, name)
            self._path.append(f".{name}" if self._path else name)
            value = self._value(inner, place.shape, result.get(name, _ABSENT))
            if value is _ABSENT:
                if inner is None and place.shape.kind in {"map", "list"}:
                    result.pop(name, None)
            elif place.omitted and not value:
                result.pop(name, None)
            else:
                result[name] = value
            self._struct = struct
            del self._fields[depth:], self._path[steps:]
        return result

    def _entries(self, raw: Pairs, shape: Shape, current: Any) -> dict[str, Any]:
        result = cast("dict[str, Any]", current) if isinstance(current, dict) else {}
        seen: set[str] = set()
        for name, inner in taken(raw):
            if name in seen:
                self._find("duplicate", name)
            seen.add(name)
            self._path.append(f".{name}" if self._path else name)
            value = self._inner(inner, shape.inner, _ABSENT)
            if self._mismatch is None:
                result[name] = value
            self._path.pop()
        return result

    def _items(self, raw: list[Any], shape: Shape, current: Any) -> list[Any]:
        before = cast("list[Any]", current) if isinstance(current, list) else []
        result: list[Any] = []
        for at, item in enumerate(taken(raw)):
            self._path.append(f"[{at}]")
            value = self._inner(item, shape.inner, before[at] if at < len(before) else _ABSENT)
            if self._mismatch is None:
                result.append(value)
            self._path.pop()
        return result

    def _inner(self, raw: Any, shape: Shape, current: Any) -> Any:
        """A present value; null is the zero of its type."""
        value = self._value(raw, shape, current)
        if value is not _ABSENT:
            return value
        if current is not _ABSENT and shape.kind == "struct":
            return current
        return {} if shape.kind in {"struct", "map"} else [] if shape.kind == "list" else _ZEROES.get(shape.kind)

    def _scalar(self, raw: Any, shape: Shape) -> Any:  # noqa: C901, PLR0911 - one case a kind
        kind = shape.kind
        is_text = isinstance(raw, str) and not isinstance(raw, Number)
        match kind:
            case "string" if is_text:
                return raw
            case "bool" if isinstance(raw, bool):
                return raw
            case "int" if isinstance(raw, Number):
                return self._integer(raw, shape)
            case "float" if isinstance(raw, Number):
                value = _number(raw)
                return value if math.isfinite(value) else self._wrong(raw, shape, f"number {raw}")
            case "bytes" if is_text:
                return self._bytes(raw)
            case "int-or-string":
                if is_text:
                    return raw
                return self._small_integer(raw)
            case "time" | "micro":
                if not is_text:
                    self._end(_word(raw), "string")
                return self._own(scalars.time, raw, micro=kind == "micro")
            case "quantity":
                text = str(raw) if isinstance(raw, str) else "" if isinstance(raw, list) else str(raw)
                return self._own(scalars.quantity, text)
            case _:
                return self._wrong(raw, shape)

    def _integer(self, raw: Number, shape: Shape) -> Any:
        limit = _INT32 if shape.go == "int32" else _INT64
        if raw.lstrip("-").isdigit() and -limit <= (value := int(raw)) < limit:
            return value
        return self._wrong(raw, shape, f"number {raw}")

    def _small_integer(self, raw: Any) -> Any:
        """An int-or-string that is not a string."""
        if isinstance(raw, Number) and raw.lstrip("-").isdigit() and -_INT32 <= (value := int(raw)) < _INT32:
            return value
        return self._end(f"number {raw}" if isinstance(raw, Number) else _word(raw), "int32")

    def _bytes(self, text: str) -> Any:
        if problem := base64_problem(text):
            self._mismatch = self._mismatch or Unreadable(problem, f"error decoding from json: {problem}")
            return _ABSENT
        return base64.b64encode(base64.b64decode(text)).decode()

    def _own(self, read: Any, text: str, **options: Any) -> Any:
        try:
            return read(text, **options)
        except ValueError as error:
            raise Unreadable(str(error)) from None

    def _wrong(self, raw: Any, shape: Shape, word: str = "") -> Any:
        words = self._words(word or _word(raw), shape.go)
        self._mismatch = self._mismatch or Unreadable(words, tree_words(_go_kind(raw), shape.kind, shape.go))
        return _ABSENT

    def _end(self, word: str, go: str) -> NoReturn:
        raise Unreadable(self._words(word, go), cannot_unmarshal(word, go))

    def _words(self, word: str, go: str) -> str:
        return cannot_unmarshal(word, go, f"{self._struct}.{'.'.join(self._fields)}" if self._fields else "")

    def _find(self, what: str, name: str) -> None:
        self._findings.add(what, self._path, name)


def _word(raw: Any) -> str:
    if isinstance(raw, Pairs):
        return "object"
    if isinstance(raw, list):
        return "array"
    if isinstance(raw, bool):
        return "bool"
    return "number" if isinstance(raw, Number) else "string"


def _go_kind(raw: Any) -> str:
    """The Go type of a value decoded without a type."""
    word = _word(raw)
    if word == "number":
        return "int64" if isinstance(_number(raw), int) else "float64"
    return {"object": "map", "array": "slice"}.get(word, word)
