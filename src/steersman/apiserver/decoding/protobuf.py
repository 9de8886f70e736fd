"""Protobuf bodies of built-in kinds: bytes in, the same tree as from JSON out.

Guarantees
- The tree is what kube-apiserver decodes: fields that Go does not print as JSON are absent, quantities, times and bytes
  have its printed form, repeated messages merge, and of other repeated values the last counts.
- Any bytes give a tree or `Malformed`, with kube-apiserver's message. The work is bounded by their number, and nothing
  nests deeper than `steersman.patches.MAX_DEPTH`.

Field numbers are data (``protobuf.json``, made by ``tools/shapes``); types are those of
`steersman.apiserver.go_types.shapes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.resources import files
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import msgspec

from steersman.apiserver.decoding import protobuf_values as values
from steersman.apiserver.decoding.bounds import VALUES_MAX
from steersman.apiserver.decoding.protobuf_values import Plain
from steersman.apiserver.go_types.shapes import Place, Shape, referred
from steersman.golang.protobuf import (
    BYTES,
    FIXED64,
    VARINT,
    Budget,
    Malformed,
    int32,
    skip,
    span,
    varint,
    walk,
)
from steersman.patches import MAX_DEPTH

__all__ = ["Envelope", "Malformed", "fields_of", "read_envelope", "read_message", "rows"]

Tree: TypeAlias = dict[str, Any]
#: Decodes a value: from the bytes between two offsets (or a number), the previous value, and the level in the message.
_Read: TypeAlias = Callable[[bytes, int, int, Any, "_Level"], Any]

_MAGIC = b"k8s\x00"
_UNKNOWN = {1: Plain("TypeMeta"), 2: Plain("Raw"), 3: Plain("ContentEncoding"), 4: Plain("ContentType")}
_TYPE_META = {1: Plain("APIVersion"), 2: Plain("Kind")}


class _Level(NamedTuple):
    """The depth of a message, and the remaining number of fields."""

    depth: int
    budget: Budget

    def below(self) -> _Level:
        """The level of a nested message."""
        if self.depth >= MAX_DEPTH:
            raise Malformed(f"proto: messages nest deeper than {MAX_DEPTH}")
        return _Level(self.depth + 1, self.budget)


class Envelope(NamedTuple):
    """The declared type of a body, and its content."""

    api_version: str
    kind: str
    message: bytes


class Field(NamedTuple):
    """A field of a message."""

    name: str
    go: str
    wire: int
    #: "one" value, a "list", a "map", or "inline": a message whose fields take the place of this one.
    role: Literal["one", "list", "map", "inline"]
    read: _Read
    #: Whether the server omits its zero value.
    omitted: bool = False
    #: Makes the value of a map entry without one.
    zero: Callable[[], Any] = str
    inline: Message | None = None

    @property
    def repeated(self) -> bool:
        """Whether it may occur more than once."""
        return self.role == "list"


class Message(NamedTuple):
    """A message type."""

    name: str
    fields: Mapping[int, Field]


def read_envelope(raw: bytes) -> Envelope:
    """The envelope of every object. Raises `Malformed` if it is missing."""
    if not raw:
        raise Malformed("empty data")
    if not raw.startswith(_MAGIC):
        expected = " ".join(map(str, _MAGIC))
        raise Malformed(f"provided data does not appear to be a protobuf message, expected prefix [{expected}]")
    if len(raw) == len(_MAGIC):
        raise Malformed("empty body")
    said = {"APIVersion": "", "Kind": ""}
    message = b""
    for field, start, stop in walk(raw, len(_MAGIC), len(raw), "Unknown", _UNKNOWN):
        if field.go == "TypeMeta":
            for inner, first, last in walk(raw, start, stop, "TypeMeta", _TYPE_META):
                said[inner.go] = values.text(raw, first, last)
        elif field.go == "Raw":
            message = raw[start:stop]
    return Envelope(said["APIVersion"], said["Kind"], message)


def read_message(data: bytes, shape: Shape) -> Tree:
    """The tree of a message. Raises `Malformed` if it does not have this shape."""
    tree: Tree = {}
    _fill(data, 0, len(data), fields_of(shape), tree, _Level(0, Budget(VALUES_MAX)))
    return tree


def _fill(data: bytes, at: int, end: int, message: Message, tree: Tree, level: _Level) -> None:
    for field, start, stop in walk(data, at, end, message.name, message.fields, level.budget):
        name = field.name
        if field.role == "list":
            tree.setdefault(name, []).append(field.read(data, start, stop, None, level))
        elif field.role == "map":
            key, value = _entry(data, start, stop, field, level)
            tree.setdefault(name, {})[key] = value
        elif field.inline is not None:
            _fill(data, start, stop, field.inline, tree, level)
        else:
            value = field.read(data, start, stop, tree.get(name), level)
            if value is None or (field.omitted and not value):
                tree.pop(name, None)
            else:
                tree[name] = value


def _entry(data: bytes, at: int, end: int, field: Field, level: _Level) -> tuple[str, Any]:
    """A key and its value. As in Go, wire types are not checked."""
    key, value = "", field.zero()
    while at < end:
        level.budget.take()
        start = at
        tag, at = varint(data, at, end)
        number = int32(tag >> 3)
        if number == 1:
            start, at = span(data, at, end)
            key = values.text(data, start, at)
        elif number == 2:
            start, at = span(data, at, end)
            value = field.read(data, start, at, None, level)
        else:
            at = skip(data, start, end, level.budget)
    return key, value


# --- values that hold messages


def _schema_or(data: bytes, start: int, stop: int, _: Any, level: _Level, *, shape: Shape) -> Any:
    """A schema, or an alternative in its place: a boolean, schemas, or names."""
    tree: Tree = {}
    _fill(data, start, stop, _alternatives(shape), tree, level.below())
    for name in ("jSONSchemas", "property", "schema"):
        if name in tree:
            return tree[name]
    return tree.get("allows", False) if shape.name.endswith("OrBool") else None


def _struct(data: bytes, start: int, stop: int, before: Any, level: _Level, *, shape: Shape) -> Tree:
    tree = cast("Tree", before) if isinstance(before, dict) else {}
    _fill(data, start, stop, fields_of(shape), tree, level.below())
    return tree


# --- tables


@cache
def _table() -> dict[str, dict[str, str]]:
    raw = files("steersman.apiserver.decoding").joinpath("protobuf.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, dict[str, str]])


def rows(package: str, message: str) -> Iterator[tuple[int, str, str]]:
    """The fields of a message: number, name (``+`` and a message for an inline one), name in Go."""
    number = 0
    for word in _table()[package][message].split():
        told, equals, rest = word.partition("=")
        number = int(told) if equals else number + 1
        name, _, go = (rest if equals else word).partition(":")
        usual = "ObjectMeta" if name == "metadata" else name[:1].upper() + name[1:]
        yield number, name, go or usual.removeprefix("+")


@cache
def fields_of(shape: Shape) -> Message:
    """The message of a struct."""
    package, _, name = shape.definition.rpartition(".")
    return _message(package, name, shape)


def _message(package: str, name: str, shape: Shape) -> Message:
    fields: dict[int, Field] = {}
    for number, field, go in rows(package, name):
        if field.startswith("+"):
            inline = _message(package, field[1:], shape)
            fields[number] = Field("", go, BYTES, "inline", values.text, inline=inline)
        elif field in shape.fields:
            fields[number] = _field(field, go, shape.fields[field])
    return Message(name, fields)


@cache
def _alternatives(shape: Shape) -> Message:
    package, _, name = shape.definition.rpartition(".")
    read = partial(_struct, shape=referred(f"{package}.JSONSchemaProps"))
    either = {
        "schema": Field("schema", "Schema", BYTES, "one", read),
        "allows": Field("allows", "Allows", VARINT, "one", values.flag),
        "jSONSchemas": Field("jSONSchemas", "JSONSchemas", BYTES, "list", read),
        "property": Field("property", "Property", BYTES, "list", values.text),
    }
    return Message(name, {number: either[field] for number, field, _ in rows(package, name)})


def _field(name: str, go: str, place: Place) -> Field:
    shape = place.shape
    if shape.kind == "list":
        return Field(name, go, _wire(shape.inner), "list", _reader(shape.inner))
    if shape.kind == "map":
        return Field(name, go, BYTES, "map", _reader(shape.inner), zero=_ZEROES.get(shape.inner.kind, str))
    return Field(name, go, _wire(shape), "one", _reader(shape), place.omitted)


def _wire(shape: Shape) -> int:
    return VARINT if shape.kind in {"int", "bool"} else FIXED64 if shape.kind == "float" else BYTES


_ZEROES: dict[str, Callable[[], Any]] = {"quantity": lambda: "0", "struct": dict, "list": list, "any": dict}
_READERS: dict[str, _Read] = {
    "string": values.text,
    "bytes": values.binary,
    "bool": values.flag,
    "float": values.double,
    "time": partial(values.moment, micro=False),
    "micro": partial(values.moment, micro=True),
    "quantity": values.quantity,
    "int-or-string": values.int_or_string,
    # A list that is not a field itself is a message of strings.
    "list": values.strings,
}


def _reader(shape: Shape) -> _Read:
    match shape.kind:
        case "struct":
            return partial(_struct, shape=shape)
        case "int":
            return values.half if shape.go == "int32" else values.whole
        case "any" if shape.name.startswith("JSONSchemaPropsOr"):
            return partial(_schema_or, shape=shape)
        case "any":
            return partial(values.document, message=shape.name)
        case kind:
            return _READERS.get(kind, values.text)
