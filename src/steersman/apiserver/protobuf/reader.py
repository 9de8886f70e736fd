"""Reads protobuf bodies of built-in kinds into the tree that the same object has in JSON.

Guarantees
- The tree is what kube-apiserver decodes. Fields that Go does not print as JSON are absent. Quantities, times and bytes
  have their printed form. Repeated messages merge; of other repeated values, the last one applies.
- Any input gives a tree or raises `Malformed` with kube-apiserver's message. The size of the input bounds work and
  memory, and nothing nests deeper than `steersman.patches.MAX_DEPTH`.

Types are those of `steersman.apiserver.go_types.shapes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from steersman.apiserver.go_types.shapes import Place, Shape, referred
from steersman.apiserver.json_trees import ITEM, LIST, OBJECT, TEXT, VALUES_MAX, check_memory, tree_memory
from steersman.apiserver.protobuf import values
from steersman.apiserver.protobuf.table import rows
from steersman.apiserver.protobuf.values import Plain
from steersman.golang.protobuf import BYTES, FIXED64, VARINT, Budget, Malformed, int32, skip, span, varint, walk
from steersman.patches import MAX_DEPTH

__all__ = ["Envelope", "Malformed", "fields_of", "read_envelope", "read_message"]

Tree: TypeAlias = dict[str, Any]
#: A function that decodes a value, given the bytes between two offsets (or a number), the previous value and the level.
_Read: TypeAlias = Callable[[bytes, int, int, Any, "_Level"], Any]

_MAGIC = b"k8s\x00"
_UNKNOWN = {1: Plain("TypeMeta"), 2: Plain("Raw"), 3: Plain("ContentEncoding"), 4: Plain("ContentType")}
_TYPE_META = {1: Plain("APIVersion"), 2: Plain("Kind")}
#: Bytes of memory that an entry of a map takes.
_ENTRY = 2 * TEXT


class _Memory:
    """An estimate of the memory that the tree of a message takes; raises 413 if it is too much."""

    __slots__ = ("_size", "_taken")

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = 0

    def take(self, count: int) -> None:
        """Add bytes to the estimate."""
        self._taken += count
        check_memory(self._taken, self._size)


class _Level(NamedTuple):
    """The depth of a message, the remaining number of fields, and the memory of the tree."""

    depth: int
    budget: Budget
    memory: _Memory

    def below(self) -> _Level:
        """The level of a nested message."""
        if self.depth >= MAX_DEPTH:
            raise Malformed(f"proto: messages nest deeper than {MAX_DEPTH}")
        return _Level(self.depth + 1, self.budget, self.memory)


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
    #: Returns the value of a map entry that has none.
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
    _fill(data, 0, len(data), fields_of(shape), tree, _Level(0, Budget(VALUES_MAX), _Memory(len(data))))
    return tree


def _fill(data: bytes, at: int, end: int, message: Message, tree: Tree, level: _Level) -> None:
    for field, start, stop in walk(data, at, end, message.name, message.fields, level.budget):
        name = field.name
        is_new = name not in tree
        if is_new or field.role == "list":
            level.memory.take(_cost(field, stop - start, is_first=not tree, is_new=is_new))
        if field.role == "list":
            tree.setdefault(name, []).append(field.read(data, start, stop, None, level))
        elif field.role == "map":
            key, value = _entry(data, start, stop, field, level)
            entries: Tree = tree.setdefault(name, {})
            if key not in entries:
                level.memory.take(_ENTRY)
            entries[key] = value
        elif field.inline is not None:
            _fill(data, start, stop, field.inline, tree, level)
        else:
            value = field.read(data, start, stop, tree.get(name), level)
            if value is None or (field.omitted and not value):
                tree.pop(name, None)
            else:
                tree[name] = value


def _cost(field: Field, size: int, *, is_first: bool, is_new: bool) -> int:
    """The approximate memory of a value in bytes, without the values that it contains."""
    # Python shares strings of at most one character.
    cost = ITEM if field.read is values.text and size <= 1 else ITEM + TEXT
    if is_new and field.role != "one":
        cost += LIST if field.role == "list" else OBJECT
    return cost + OBJECT * is_first


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


def _document(data: bytes, start: int, stop: int, _: Any, level: _Level, *, message: str) -> Any:
    """JSON that a message holds as bytes."""
    level.memory.take(tree_memory(data[start:stop]))
    return values.document(data, start, stop, message=message)


def _struct(data: bytes, start: int, stop: int, before: Any, level: _Level, *, shape: Shape) -> Tree:
    tree = cast("Tree", before) if isinstance(before, dict) else {}
    _fill(data, start, stop, fields_of(shape), tree, level.below())
    return tree


# --- tables


@cache
def fields_of(shape: Shape) -> Message:
    """The message of a struct."""
    package, _, name = shape.definition.rpartition(".")
    return _message(package, name, shape)


def _message(package: str, name: str, shape: Shape) -> Message:
    fields: dict[int, Field] = {}
    for number, field, go, _ in rows(package, name):
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
    return Message(name, {number: either[field] for number, field, *_ in rows(package, name)})


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
            return partial(_document, message=shape.name)
        case kind:
            return _READERS.get(kind, values.text)
