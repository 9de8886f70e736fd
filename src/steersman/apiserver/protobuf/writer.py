"""Writes JSON objects as protobuf messages, with the same bytes as kube-apiserver.

Guarantees
- The bytes are those of Kubernetes' generated Go code: fields are sorted by number and maps by key. Zero values are
  written for all fields that are neither optional nor lists nor maps.
- `to_protobuf` returns None for an object without a message type, such as a custom resource or a Table.
- The cost of a message depends on the fields that are set, not on the fields of its type.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias, cast

import msgspec

from steersman.apiserver.go_types.shapes import Shape, object_meta, referred, shape_of
from steersman.apiserver.json_trees import decode_tree
from steersman.apiserver.protobuf.discovery_messages import DISCOVERY
from steersman.apiserver.protobuf.table import Row, rows
from steersman.apiserver.protobuf.wire_format import BYTES, FIXED64, VARINT, delimited, varint
from steersman.objects import GroupVersionKind

Tree: TypeAlias = dict[str, Any]
#: A function that writes a value, without its tag.
_Write: TypeAlias = Callable[[Any], bytes]

_MAGIC: Final = b"k8s\x00"
_ENVELOPE_END: Final = b"\x1a\x00\x22\x00"
#: The tag of a list's items.
_ITEM: Final = b"\x12"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_META_GROUP: Final = "meta.k8s.io/"
#: The type whose schema permits any fields, and whose message has none.
_WITHOUT_FIELDS: Final = "CustomResourceSubresourceStatus"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_encode = msgspec.json.Encoder().encode


def to_protobuf(body: bytes) -> bytes | None:
    """Convert a JSON object to protobuf in an envelope. Returns None if its kind has no message type."""
    tree: Tree = decode_tree(body)
    kind, api_version = tree.get("kind", ""), tree.get("apiVersion", "")
    write = _found_writer(api_version, kind)
    return None if write is None else envelope(api_version, kind, write(tree))


def has_protobuf(kind: GroupVersionKind) -> bool:
    """Whether objects of a kind have a protobuf form."""
    return _found_writer(kind.api_version, kind.kind) is not None


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """A message wrapped in the envelope that names its type."""
    return b"".join((_MAGIC, _type_meta(api_version, kind), delimited(b"\x12", message), _ENVELOPE_END))


def _type_meta(api_version: str, kind: str) -> bytes:
    return delimited(b"\x0a", delimited(b"\x0a", api_version.encode()) + delimited(b"\x12", kind.encode()))


def watch_frame(type_: str, obj: bytes) -> bytes:
    """A frame of a watch: its length, and an event that contains an object in its envelope."""
    event = delimited(b"\x0a", type_.encode()) + delimited(b"\x12", delimited(b"\x0a", obj))
    return len(event).to_bytes(4, "big") + event


def _found_writer(api_version: str, kind: str) -> _Write | None:
    try:
        return _writer_of(api_version, kind)
    except LookupError:
        return None


@cache
def _writer_of(api_version: str, kind: str) -> _Write:
    """Raises LookupError if there is none: clients name custom kinds, so the cache must not keep them."""
    if api_version.startswith(_META_GROUP) or kind == "Status":
        return _meta_writer(kind)
    if api_version in {"", "v1"} and kind in DISCOVERY:
        return DISCOVERY[kind]
    group, _, version = api_version.rpartition("/")
    shape = shape_of(GroupVersionKind(group, version, kind))
    if shape is not None and shape.kind == "struct":
        return _struct(shape)
    return _list(_item_writer(api_version, kind))


def _item_writer(api_version: str, kind: str) -> _Write:
    """The function that writes an item of a list. Raises LookupError if the list has no message type."""
    if api_version.startswith(_META_GROUP) and kind == "PartialObjectMetadataList":
        return _partial
    group, _, version = api_version.rpartition("/")
    item = shape_of(GroupVersionKind(group, version, kind.removesuffix("List"))) if kind.endswith("List") else None
    if item is None:
        raise LookupError(f"{api_version} {kind} has no message type")
    return _struct(item)


def _meta_writer(kind: str) -> _Write:
    match kind:
        case "Status":
            return _struct(referred(f"{_META}.Status"))
        case "PartialObjectMetadata":
            return _partial
        case "PartialObjectMetadataList":
            return _list(_partial)
        case _:
            raise LookupError(f"{_META_GROUP} {kind} has no message type")


def _partial(tree: Tree) -> bytes:
    return delimited(b"\x0a", _struct(object_meta())(tree.get("metadata") or {}))


def _list(item: _Write) -> _Write:
    def write(tree: Tree) -> bytes:
        parts = [_list_metadata(tree)]
        parts += [delimited(_ITEM, item(each)) for each in tree.get("items") or ()]
        return b"".join(parts)

    return write


def _list_metadata(tree: Tree) -> bytes:
    return delimited(b"\x0a", _struct(referred(f"{_META}.ListMeta"))(tree.get("metadata") or {}))


class ListWriter:
    """Writes a list in its envelope, item by item. The bytes are those of `to_protobuf`.

    ``tree`` is the list without its items. Raises LookupError if it has no message type.
    """

    def __init__(self, tree: Tree) -> None:
        self._api_version, self._kind = tree["apiVersion"], tree["kind"]
        self._metadata = _list_metadata(tree)
        self._item = _item_writer(self._api_version, self._kind)

    def begin(self, length: int) -> bytes:
        """What comes before the items, given the length of all of them."""
        size = varint(len(self._metadata) + length)
        return b"".join((_MAGIC, _type_meta(self._api_version, self._kind), b"\x12", size, self._metadata))

    def item(self, tree: Tree) -> bytes:
        """An item."""
        return delimited(_ITEM, self._item(tree))

    def end(self) -> bytes:
        """What comes after the items."""
        return _ENVELOPE_END


# --- messages


class _Slot(NamedTuple):
    """The position of a field in a message, and the function that writes the field with its tag."""

    at: int
    write: _Write


def _struct(shape: Shape) -> _Write:
    """The function that writes a struct. Prepared on first use, because types refer to each other."""
    known = _STRUCTS.get(shape.definition)
    if known is not None:
        return known
    prepared: list[_Write] = []

    def write(tree: Tree) -> bytes:
        if not prepared:
            package, _, name = shape.definition.rpartition(".")
            prepared.append(_message(package, name, shape))
        return prepared[0](tree)

    return _STRUCTS.setdefault(shape.definition, write)


_STRUCTS: Final[dict[str, _Write]] = {}


def _message(package: str, name: str, shape: Shape) -> _Write:
    blank: list[bytes] = []
    slots: dict[str, _Slot] = {}
    inline: list[_Slot] = []
    for row in rows(package, name):
        tag = varint(row.number << 3 | BYTES)
        if row.name.startswith("+"):
            inline.append(_Slot(len(blank), _tagged(tag, _message(package, row.name[1:], shape))))
            blank.append(b"")
        elif row.name in shape.fields:
            field = shape.fields[row.name].shape
            write = _field(row.number, field)
            slots[row.name] = _Slot(len(blank), write)
            blank.append(b"" if row.optional else _zero(row, field))
    find = slots.get

    def write_message(tree: Tree) -> bytes:
        parts = blank.copy()
        for field_name, value in tree.items():
            slot = find(field_name)
            if slot is not None and value is not None:
                parts[slot[0]] = slot[1](value)
        for at, write_inline in inline:
            parts[at] = write_inline(tree)
        return b"".join(parts)

    return write_message


def _zero(row: Row, shape: Shape) -> bytes:
    """The bytes of a field that is neither set nor optional."""
    if shape.kind in {"list", "map", "bytes"}:
        return b""
    if shape.kind in {"time", "micro"} or (shape.kind == "any" and not shape.name.startswith("JSONSchemaPropsOr")):
        return varint(row.number << 3 | BYTES) + b"\x00"
    return _field(row.number, shape)(_ZEROES.get(shape.kind))


_ZEROES: Final[dict[str, Any]] = {
    "struct": {},
    "string": "",
    "int": 0,
    "float": 0.0,
    "bool": False,
    "quantity": "0",
    "int-or-string": 0,
    "any": None,
}


def _tagged(tag: bytes, write: _Write) -> _Write:
    return lambda value: delimited(tag, write(value))


def _field(number: int, shape: Shape) -> _Write:
    """The function that writes a field with its tag: one value, a list or a map."""
    if shape.kind == "list":
        item = _one(number, shape.inner)
        return lambda values: b"".join([item(value) for value in values])
    if shape.kind == "map":
        tag, value_of = varint(number << 3 | BYTES), _one(2, shape.inner)
        return lambda entries: b"".join(
            [
                delimited(tag, delimited(b"\x0a", key.encode()) + value_of(entries[key]))
                for key in sorted(cast("Tree", entries))
            ]
        )
    return _one(number, shape)


def _one(number: int, shape: Shape) -> _Write:
    match shape.kind:
        case "int":
            tag = varint(number << 3 | VARINT)
            return lambda value: tag + varint(value)
        case "bool":
            tag = varint(number << 3 | VARINT)
            yes, no = tag + b"\x01", tag + b"\x00"
            return lambda value: yes if value else no
        case "float":
            tag = varint(number << 3 | FIXED64)
            return lambda value: tag + struct.pack("<d", value)
        case "struct":
            return _tagged(varint(number << 3 | BYTES), _struct(shape))
        case "any":
            return _tagged(varint(number << 3 | BYTES), _any(shape))
        case kind:
            return _tagged(varint(number << 3 | BYTES), _WRITERS[kind])


def _text(value: str) -> bytes:
    return value.encode()


def _moment(value: str) -> bytes:
    since = datetime.fromisoformat(value) - _EPOCH
    seconds = since.days * 86400 + since.seconds
    return b"".join((b"\x08", varint(seconds), b"\x10", varint(since.microseconds * 1000)))


def _quantity(value: Any) -> bytes:
    return delimited(b"\x0a", str(value).encode())


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01\x10\x00" + delimited(b"\x1a", value.encode())
    return b"".join((b"\x08\x00\x10", varint(value), b"\x1a\x00"))


def _document(value: Any) -> bytes:
    return delimited(b"\x0a", _encode(value))


def _strings(values: list[str]) -> bytes:
    """A list that is not itself a field, as a message of strings."""
    return b"".join([delimited(b"\x0a", value.encode()) for value in values])


_WRITERS: Final[dict[str, _Write]] = {
    "string": _text,
    "bytes": base64.b64decode,
    "time": _moment,
    "micro": _moment,
    "quantity": _quantity,
    "int-or-string": _int_or_string,
    "list": _strings,
}


def _any(shape: Shape) -> _Write:
    if shape.name.startswith("JSONSchemaPropsOr"):
        return _schema_or(shape)
    return (lambda _: b"") if shape.name == _WITHOUT_FIELDS else _document


def _schema_or(shape: Shape) -> _Write:
    """The function that writes a schema or its alternative: a boolean, schemas or names."""
    schema = _struct(referred(f"{shape.definition.rpartition('.')[0]}.JSONSchemaProps"))
    has_flag = shape.name.endswith("OrBool")

    def write(value: Any) -> bytes:
        if isinstance(value, dict):
            return b"\x08\x01" + delimited(b"\x12", schema(value)) if has_flag else delimited(b"\x0a", schema(value))
        if isinstance(value, list):
            items = cast("list[Any]", value)
            return b"".join(
                [delimited(b"\x12", _text(item) if isinstance(item, str) else schema(item)) for item in items]
            )
        return (b"\x08\x01" if value else b"\x08\x00") if has_flag else b""

    return write
