"""The size of a built-in object in etcd, where kube-apiserver stores it as protobuf.

Guarantees
- A body with more items than any stored object can have is rejected before its fields are filled in.
- The size is that of kube-apiserver's encoding, up to a few bytes for each time and quantity.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple, cast

import msgspec

from steersman.apiserver import protobuf
from steersman.apiserver.errors import too_large
from steersman.apiserver.go_types.shapes import Shape, object_meta, shape_of
from steersman.apiserver.json_trees import STORED_MAX
from steersman.apiserver.registry.definition import Definition, Tree

#: Groups of built-in kinds that kube-apiserver stores as JSON.
_AS_JSON: Final = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})
#: The size in bytes of a body that could become an object too large to be stored.
_LARGE: Final = 64 * 1024
#: The wire format of a 64-bit number, and about that of a time.
_DOUBLE: Final = 8
_TIME: Final = 8
#: Kinds of fields whose zero values are written, unless they are pointers.
_SCALARS: Final = frozenset({"string", "int", "bool"})


class _Struct(NamedTuple):
    #: The fields by name: the size of the tag, the shape, and whether its zero value is part of `zeroes`.
    fields: dict[str, tuple[int, Shape, bool]]
    #: The size of all zero values that are written.
    zeroes: int


def stored_size(definition: Definition, obj: Tree) -> int:
    """The size in bytes of an object in etcd, as protobuf or as JSON."""
    shape = _stored_as(definition)
    return len(msgspec.json.encode(obj)) if shape is None else protobuf_size(shape, obj)


def check_storable(definition: Definition, tree: Any, body: bytes) -> None:
    """413 if an object is larger than its body and than any stored object: absent fields of its items are stored, too."""
    if len(body) < _LARGE or not isinstance(tree, dict):
        return
    obj = cast("Tree", tree)
    shape = _stored_as(definition)
    size = protobuf_size(object_meta(), obj.get("metadata")) if shape is None else protobuf_size(shape, obj)
    if size > max(STORED_MAX, len(body)):
        raise too_large("etcdserver: request is too large")


def _stored_as(definition: Definition) -> Shape | None:
    """The shape of a kind that is stored as protobuf; None for a kind that is stored as JSON."""
    return None if definition.custom or definition.gvk.group in _AS_JSON else shape_of(definition.gvk)


def protobuf_size(shape: Shape, value: Any) -> int:  # noqa: PLR0911 - one return a type
    """The size in bytes of a value as kube-apiserver encodes it, without its tag. A value of a wrong type counts as zero."""
    match shape.kind:
        case "struct":
            return _struct_size(shape, cast("Tree", value) if isinstance(value, dict) else {})
        case "string":
            return _text_size(value) if isinstance(value, str) else 0
        case "int":
            return _number_size(value) if isinstance(value, int) else 1
        case "bool":
            return 1
        case "bytes":
            return len(value) * 3 // 4 if isinstance(value, str) else 0
        case "time" | "micro":
            return _TIME
        case "float":
            return _DOUBLE
        case "quantity":
            return 2 + len(str(value))
        case "int-or-string":
            return 6 + (_text_size(value) if isinstance(value, str) else 0)
        case _:
            return len(msgspec.json.encode(value)) + 2


def _struct_size(shape: Shape, value: Tree) -> int:
    known = _struct(shape)
    total = known.zeroes
    for name, inner in value.items():
        field = known.fields.get(name)
        if field is None or inner is None:
            continue
        tag, place, is_zeroed = field
        total -= (tag + 1) * is_zeroed
        if place.kind == "list":
            items = cast("list[Any]", inner) if isinstance(inner, list) else []
            total += sum(tag + _field_size(place.inner, item) for item in items)
        elif place.kind == "map":
            entries = cast("Tree", inner) if isinstance(inner, dict) else {}
            total += sum(
                tag + _delimited(2 + _delimited(_text_size(key)) + _field_size(place.inner, item))
                for key, item in entries.items()
            )
        else:
            total += tag + _field_size(place, inner)
    return total


def _field_size(shape: Shape, value: Any) -> int:
    size = protobuf_size(shape, value)
    return size if shape.kind in {"int", "bool", "float"} else _delimited(size)


def _delimited(size: int) -> int:
    return _number_size(size) + size


def _number_size(value: int) -> int:
    return 10 if value < 0 else max(1, -(-value.bit_length() // 7))


def _text_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


@cache
def _struct(shape: Shape) -> _Struct:
    fields: dict[str, tuple[int, Shape, bool]] = {}
    zeroes = _collect(protobuf.fields_of(shape), shape, fields)
    return _Struct(fields, zeroes)


def _collect(message: protobuf.Message, shape: Shape, fields: dict[str, tuple[int, Shape, bool]]) -> int:
    """Add the fields of a message and of its inline messages; return the size of the zero values that are written."""
    zeroes = 0
    for number, field in message.fields.items():
        tag = _number_size(number << 3)
        if field.inline is not None:
            zeroes += tag + 1 + _collect(field.inline, shape, fields)
            continue
        place = shape.fields[field.name]
        is_zeroed = place.shape.kind in _SCALARS and (place.omitted or field.name in shape.required)
        zeroes += (tag + 1) * is_zeroed
        fields[field.name] = tag, place.shape, is_zeroed
    return zeroes
