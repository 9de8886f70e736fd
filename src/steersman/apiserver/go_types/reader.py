"""Decoding as Go does it: a JSON value becomes a tree of its Go type, field by field in the order of the text.

Most bodies need none of this: `steersman.apiserver.go_types.fit` finds that their trees already have the right form.
For the others, a value goes through two forms:

1. As written: `steersman.apiserver.go_types.written_values` makes `Pairs` and `Number` of a text or a tree.
2. As a tree: `read_written` decodes that into a `Shape`.

Guarantees
- The tree is the server's, also with duplicate fields: structs and maps merge, and list items are decoded over earlier
  ones.
- Errors are Go's: a value that its own type cannot decode ends the decoding; of other mismatches the first is reported.
- What is decoded is used up: what was written and what is made of it are not in memory at once.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

import msgspec

from steersman.apiserver.go_types import scalars
from steersman.apiserver.go_types.findings import Findings
from steersman.apiserver.go_types.shapes import NULLABLE, Shape
from steersman.apiserver.go_types.written_values import Number, Pairs, as_pairs, parse_printed
from steersman.golang import base64_problem, cannot_unmarshal

#: The longest object that a message shows, in bytes; kube-apiserver shows all.
SHOWN_MAX = 64 * 1024
#: No value: from null, or of a wrong type, which _mismatch tells apart.
_ABSENT: Any = object()
_INT32, _INT64 = 2**31, 2**63
#: The digits of an int64 and a sign. Python refuses to make integers of thousands of digits.
_INT64_DIGITS = 20
_Item = TypeVar("_Item")
#: Pairs of given and expected types that Go could convert, which is an error here.
_CONVERTIBLE = {("int64", "string"), ("float64", "int")}
#: What null becomes in a list or a map, by the kind of its items.
_ZEROES: dict[str, Any] = {
    "string": "",
    "int": 0,
    "float": 0,
    "bool": False,
    "bytes": "",
    "quantity": "0",
    "int-or-string": 0,
}


class Unreadable(Exception):
    """The text is not an object of its kind; the message is Go's.

    ``of_tree`` is Go's message when it decodes a tree instead of a text, if that differs.
    """

    def __init__(self, message: str, of_tree: str = "") -> None:
        super().__init__(message)
        self.of_tree = of_tree or message


def tree_words(given: str, kind: str, go: str) -> str:
    """The message for a value of one Go kind where a shape of another kind, with the type ``go``, is expected."""
    if kind in {"list", "bytes"}:
        return f"cannot restore slice from {given}"
    if kind == "map":
        return f"cannot restore map from {given}"
    if kind == "struct":
        return f"cannot restore struct from: {given}"
    if (given, kind) in _CONVERTIBLE:
        return f"cannot convert {given} to {go}"
    # Named types are reported by their underlying type.
    return f"unrecognized type: {'string' if kind == 'string' else go}"


class TypedTree(NamedTuple):
    """A tree in the form of its type, and what strict decoding rejects: unknown and duplicate fields, in order."""

    tree: Any
    findings: list[str]


def read_written(written: Any, shape: Shape) -> TypedTree:
    """Decode a value as written into a type. It is used up. Raises `Unreadable` if it does not have this shape."""
    reader = _TypedReader()
    return TypedTree(reader.read(written, shape), reader.findings.texts)


def read_tree(tree: Any, shape: Shape) -> TypedTree:
    """Decode a tree into a type, as if written with its fields in order.

    The given one is emptied, because two trees of a dense body would take too much memory. An `Unreadable` one is
    restored if it is small enough to be shown in a message.
    """
    try:
        text = msgspec.json.encode(tree, order="sorted")
    except UnicodeEncodeError:
        return read_written(as_pairs(tree), shape)
    if isinstance(tree, dict):
        cast("dict[str, Any]", tree).clear()
    pairs = parse_printed(text)
    try:
        return read_written(pairs, shape)
    except Unreadable as error:
        # Its frames would hold what was read so far.
        unreadable = error.with_traceback(None)
    if isinstance(tree, dict) and len(text) <= SHOWN_MAX:
        cast("dict[str, Any]", tree).update(msgspec.json.decode(text))
    raise unreadable


class _TypedReader:
    """Decodes one value as written into its type, and empties it meanwhile.

    Each method takes the value as written, its shape and, for a duplicate field, the tree of the earlier value.
    """

    def __init__(self) -> None:
        self.findings = Findings()
        #: The first value of a wrong type. Decoding goes on, because a later value may be one that ends it, but the tree
        #: will not be used: maps and lists no longer grow.
        self._mismatch: Unreadable | None = None
        #: Where the reader is, as findings name it: the steps from the root, with keys of maps and indexes of lists.
        self._path: list[str] = []
        #: Where the reader is, as Go names it in mismatches: the innermost struct, and the fields from the root.
        self._struct = ""
        self._fields: list[str] = []

    def read(self, written: Any, shape: Shape) -> Any:
        """The tree of a value. Raises `Unreadable` if it does not have this shape."""
        tree = self._read(written, shape, _ABSENT)
        if self._mismatch is not None:
            raise self._mismatch
        return {} if tree is _ABSENT else tree

    def _read(self, written: Any, shape: Shape, earlier: Any) -> Any:  # noqa: PLR0911 - one return a kind
        if written is None:
            return _ABSENT
        match shape.kind:
            case "struct":
                if isinstance(written, Pairs):
                    return self._read_struct(written, shape, earlier)
            case "map":
                if isinstance(written, Pairs):
                    return self._read_map(written, shape, earlier)
            case "list":
                if isinstance(written, list) and not isinstance(written, Pairs):
                    return self._read_list(cast("list[Any]", written), shape, earlier)
            case "any":
                return _plain(written)
            case _:
                return self._read_scalar(written, shape)
        return self._mismatched(written, shape)

    def _read_struct(self, written: Pairs, shape: Shape, earlier: Any) -> dict[str, Any]:
        tree = cast("dict[str, Any]", earlier) if isinstance(earlier, dict) else {}
        seen: set[str] = set()
        fields, struct, depth, steps = shape.fields, self._struct, len(self._fields), len(self._path)
        for name, inner in _drained(written):
            place = fields.get(name)
            if place is None:
                self.findings.add("unknown", self._path, name)
                continue
            if name in seen:
                self.findings.add("duplicate", self._path, name)
            seen.add(name)
            self._struct = shape.name
            self._fields += (*place.embedded, name)
            self._path.append(f".{name}" if self._path else name)
            value = self._read(inner, place.shape, tree.get(name, _ABSENT))
            if value is _ABSENT:
                if inner is None and place.nullable:
                    tree.pop(name, None)
            elif place.omitted and not value:
                tree.pop(name, None)
            else:
                tree[name] = value
            self._struct = struct
            del self._fields[depth:], self._path[steps:]
        return tree

    def _read_map(self, written: Pairs, shape: Shape, earlier: Any) -> dict[str, Any]:
        tree = cast("dict[str, Any]", earlier) if isinstance(earlier, dict) else {}
        seen: set[str] = set()
        for name, inner in _drained(written):
            if name in seen:
                self.findings.add("duplicate", self._path, name)
            seen.add(name)
            self._path.append(f".{name}" if self._path else name)
            value = self._read_element(inner, shape.inner, _ABSENT)
            if self._mismatch is None:
                tree[name] = value
            self._path.pop()
        return tree

    def _read_list(self, written: list[Any], shape: Shape, earlier: Any) -> list[Any]:
        before = cast("list[Any]", earlier) if isinstance(earlier, list) else []
        items: list[Any] = []
        for at, item in enumerate(_drained(written)):
            self._path.append(f"[{at}]")
            value = self._read_element(item, shape.inner, before[at] if at < len(before) else _ABSENT)
            if self._mismatch is None:
                items.append(value)
            self._path.pop()
        return items

    def _read_element(self, written: Any, shape: Shape, earlier: Any) -> Any:
        """The value of an entry or item, which is always there: null is the earlier value, or the zero of its type."""
        value = self._read(written, shape, earlier)
        if value is not _ABSENT:
            return value
        if earlier is not _ABSENT and shape.kind not in NULLABLE:
            return earlier
        return {} if shape.kind in {"struct", "map"} else [] if shape.kind == "list" else _ZEROES.get(shape.kind)

    def _read_scalar(self, written: Any, shape: Shape) -> Any:  # noqa: PLR0911 - one case a kind
        kind = shape.kind
        is_text = isinstance(written, str) and not isinstance(written, Number)
        match kind:
            case "string" if is_text:
                return written
            case "bool" if isinstance(written, bool):
                return written
            case "int" if isinstance(written, Number):
                limit = _INT32 if shape.go == "int32" else _INT64
                value = _integer(written, limit)
                return self._mismatched(written, shape, f"number {written}") if value is None else value
            case "float" if isinstance(written, Number):
                value = _number_value(written)
                return value if math.isfinite(value) else self._mismatched(written, shape, f"number {written}")
            case "bytes" if is_text:
                return self._read_bytes(written)
            case "int-or-string":
                return written if is_text else self._read_small_integer(written)
            case "time" | "micro":
                if not is_text:
                    self._fail(_json_type(written), "string")
                return _parsed(partial(scalars.time, micro=kind == "micro"), written)
            case "quantity":
                return _parsed(scalars.quantity, "" if isinstance(written, list) else str(written))
            case _:
                return self._mismatched(written, shape)

    def _read_small_integer(self, written: Any) -> int:
        """An int-or-string that is not a string."""
        if not isinstance(written, Number):
            self._fail(_json_type(written), "int32")
        value = _integer(written, _INT32)
        if value is None:
            self._fail(f"number {written}", "int32")
        return value

    def _read_bytes(self, text: str) -> Any:
        if problem := base64_problem(text):
            self._mismatch = self._mismatch or Unreadable(problem, f"error decoding from json: {problem}")
            return _ABSENT
        return base64.b64encode(base64.b64decode(text)).decode()

    def _mismatched(self, written: Any, shape: Shape, what: str = "") -> Any:
        """Note a value of a wrong type, for the message after decoding the rest."""
        message = self._message(what or _json_type(written), shape.go)
        self._mismatch = self._mismatch or Unreadable(message, tree_words(_go_type(written), shape.kind, shape.go))
        return _ABSENT

    def _fail(self, what: str, go: str) -> NoReturn:
        """End the decoding: the type decodes its own values, and not this one."""
        raise Unreadable(self._message(what, go), cannot_unmarshal(what, go))

    def _message(self, what: str, go: str) -> str:
        return cannot_unmarshal(what, go, f"{self._struct}.{'.'.join(self._fields)}" if self._fields else "")


def _drained(values: list[_Item]) -> Iterator[_Item]:
    """The items of a list, which is emptied meanwhile."""
    for at, item in enumerate(values):
        values[at] = cast("_Item", None)
        yield item


def _plain(written: Any) -> Any:
    """A tree as Go decodes it without a type: of duplicate fields the last counts."""
    if isinstance(written, Pairs):
        return {name: _plain(inner) for name, inner in _drained(written)}
    if isinstance(written, list):
        return [_plain(item) for item in _drained(cast("list[Any]", written))]
    return _number_value(written) if isinstance(written, Number) else written


def _number_value(number: Number) -> int | float:
    """A number as Go decodes it without a type: an int64 if it is one."""
    whole = _integer(number, _INT64)
    if whole is not None:
        return whole
    value = float(number)
    return int(value) if value.is_integer() and abs(value) < _INT64 else value


def _integer(number: Number, limit: int) -> int | None:
    """The value of a whole number below a limit; None for other numbers."""
    if len(number) > _INT64_DIGITS or not number.lstrip("-").isdigit():
        return None
    value = int(number)
    return value if -limit <= value < limit else None


def _parsed(parse: Callable[[str], str], text: str) -> str:
    """A scalar as its own type prints it, which ends the decoding if it is invalid."""
    try:
        return parse(text)
    except ValueError as error:
        raise Unreadable(str(error)) from None


def _json_type(written: Any) -> str:
    """The JSON type of a value, as Go's messages name it."""
    if isinstance(written, Pairs):
        return "object"
    if isinstance(written, list):
        return "array"
    if isinstance(written, bool):
        return "bool"
    return "number" if isinstance(written, Number) else "string"


def _go_type(written: Any) -> str:
    """The Go type of a value decoded without a type."""
    word = _json_type(written)
    if word == "number":
        return "int64" if isinstance(_number_value(written), int) else "float64"
    return {"object": "map", "array": "slice"}.get(word, word)
