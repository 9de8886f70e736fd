"""Reading with care: a body as Go's decoder reads it into the types of its kind, field by field in the order of the text.

Guarantees
- The tree is what the server would make of the text, also where fields come twice: structs and maps merge, items of lists
  lie over those that were there before.
- What is wrong is told as Go tells it: a value that its own type cannot read ends the reading; of other mismatches the
  first is told; fields that are unknown or came before are told in the order of the text, each once and at most 100.
"""

from __future__ import annotations

import base64
import json
from typing import Any, NoReturn, cast

from steersman.apiserver.decoding import scalars
from steersman.apiserver.decoding.shapes import Shape
from steersman.apiserver.decoding.unstructured import tree_words

#: How many findings are kept.
FINDINGS_MAX = 100
_ABSENT: Any = object()
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


_DEL, _BMP_MAX = 0x7F, 0xFFFF
_SHOWN = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


class Pairs(list[tuple[str, Any]]):
    """An object as it was written: every field, also those that come twice."""


class Number(str):
    """A number as it was written."""

    __slots__ = ()


class Unreadable(Exception):
    """The text is not an object of its kind; the message is Go's.

    ``of_tree`` is what Go says where it reads a tree instead of a text, if that is something else.
    """

    def __init__(self, message: str, of_tree: str = "") -> None:
        super().__init__(message)
        self.of_tree = of_tree or message


_decoder = json.JSONDecoder(object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=Number)


def parse_pairs(text: str) -> Any:
    """A JSON text with all its fields and with numbers as written; the text was found to be JSON."""
    return _decoder.decode(text)


def as_pairs(tree: Any) -> Any:
    """A tree as if it had been written with its fields in order."""
    if isinstance(tree, dict):
        members = cast("dict[str, Any]", tree)
        return Pairs((name, as_pairs(members[name])) for name in sorted(members))
    if isinstance(tree, list):
        return [as_pairs(item) for item in cast("list[Any]", tree)]
    if isinstance(tree, (int, float)) and not isinstance(tree, bool):
        return Number(repr(tree).removesuffix(".0"))
    return tree


def plain(raw: Any) -> Any:
    """A tree as Go reads it where no type is told: of fields that come twice the last counts."""
    if isinstance(raw, Pairs):
        return {name: plain(inner) for name, inner in raw}
    if isinstance(raw, list):
        return [plain(item) for item in cast("list[Any]", raw)]
    return _number(raw) if isinstance(raw, Number) else raw


def _number(raw: Number) -> int | float:
    if raw.lstrip("-").isdigit() and -_INT64 <= (whole := int(raw)) < _INT64:
        return whole
    value = float(raw)
    return int(value) if value.is_integer() and abs(value) < _INT64 else value


def quote(text: str) -> str:
    """A text in quotes as Go prints it."""
    return f'"{"".join(_SHOWN.get(each) or (each if each.isprintable() else _escaped(each)) for each in text)}"'


def _escaped(character: str) -> str:
    code = ord(character)
    if code <= _DEL:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _BMP_MAX else f"\\U{code:08x}"


def duplicates(raw: Any) -> list[str]:
    """Fields that come twice where no type is told."""
    found: dict[str, None] = {}
    _find_duplicates(raw, "", found)
    return list(found)[:FINDINGS_MAX]


def _find_duplicates(raw: Any, path: str, found: dict[str, None]) -> None:
    if isinstance(raw, Pairs):
        seen: set[str] = set()
        for name, inner in raw:
            here = f"{path}.{name}" if path else name
            if name in seen:
                found[f"duplicate field {quote(here)}"] = None
            seen.add(name)
            _find_duplicates(inner, here, found)
    elif isinstance(raw, list):
        for at, item in enumerate(cast("list[Any]", raw)):
            _find_duplicates(item, f"{path}[{at}]", found)


class CarefulReader:
    """Reads one text; `findings` are what a strict reader refuses."""

    def __init__(self) -> None:
        self._findings: dict[str, None] = {}
        self._mismatch: Unreadable | None = None
        self._path: list[str] = []
        self._fields: list[str] = []
        self._struct = ""

    @property
    def findings(self) -> list[str]:
        """Unknown fields and such as come twice, in order."""
        return list(self._findings)[:FINDINGS_MAX]

    def read(self, raw: Any, shape: Shape) -> Any:
        """The tree of a text; `Unreadable` if it is none of this shape."""
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
        for name, inner in raw:
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
        for name, inner in raw:
            if name in seen:
                self._find("duplicate", name)
            seen.add(name)
            self._path.append(f".{name}" if self._path else name)
            result[name] = self._inner(inner, shape.inner, _ABSENT)
            self._path.pop()
        return result

    def _items(self, raw: list[Any], shape: Shape, current: Any) -> list[Any]:
        before = cast("list[Any]", current) if isinstance(current, list) else []
        result: list[Any] = []
        for at, item in enumerate(raw):
            self._path.append(f"[{at}]")
            result.append(self._inner(item, shape.inner, before[at] if at < len(before) else _ABSENT))
            self._path.pop()
        return result

    def _inner(self, raw: Any, shape: Shape, current: Any) -> Any:
        """A value that is there, even as null: the zero of its type."""
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
                return _number(raw)
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
        """What may be a text, and is none."""
        if isinstance(raw, Number) and raw.lstrip("-").isdigit() and -_INT32 <= (value := int(raw)) < _INT32:
            return value
        return self._end(f"number {raw}" if isinstance(raw, Number) else _word(raw), "int32")

    def _bytes(self, text: str) -> Any:
        try:
            scalars.check_base64(text)
        except ValueError as error:
            self._mismatch = self._mismatch or Unreadable(str(error), f"error decoding from json: {error}")
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
        raise Unreadable(self._words(word, go), f"json: cannot unmarshal {word} into Go value of type {go}")

    def _words(self, word: str, go: str) -> str:
        place = f"struct field {self._struct}.{'.'.join(self._fields)}" if self._fields else "value"
        return f"json: cannot unmarshal {word} into Go {place} of type {go}"

    def _find(self, what: str, name: str) -> None:
        path = "".join(self._path)
        self._findings[f"{what} field {quote(f'{path}.{name}' if path else name)}"] = None


def _word(raw: Any) -> str:
    if isinstance(raw, Pairs):
        return "object"
    if isinstance(raw, list):
        return "array"
    if isinstance(raw, bool):
        return "bool"
    return "number" if isinstance(raw, Number) else "string"


def _go_kind(raw: Any) -> str:
    """What Go makes of a value that it reads into no type."""
    word = _word(raw)
    if word == "number":
        return "int64" if isinstance(_number(raw), int) else "float64"
    return {"object": "map", "array": "slice"}.get(word, word)
