"""Writes objects as protobuf, the way Kubernetes' Go clients do: for tests of what a server makes of it.

The table of fields is the server's own, so a wrong number in it shows only where a real server reads the same bytes:
in the scenarios of ``scenarios/protobuf*.py``.
"""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from steersman.apiserver.go_types.shapes import Shape, referred, shape_of
from steersman.apiserver.protobuf.table import rows
from steersman.objects import GroupVersionKind

PROTOBUF = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"

Tree = dict[str, Any]

_ZEROES: dict[str, Any] = {"string": "", "int": 0, "bool": False, "struct": {}, "quantity": "0", "int-or-string": 0}
_NO_TIME = object()


@dataclass(frozen=True)
class Protobuf:
    """A body: the object in a tree, written when all names in it are known."""

    tree: Tree
    #: The bytes of the message, in place of what the tree gives.
    message: bytes | None = None
    #: What comes behind the message, within it.
    more: bytes = b""

    def bytes_of(self, tree: Tree) -> bytes:
        """The bytes of the body, of the tree with its names filled in."""
        api_version, kind = tree.get("apiVersion", ""), tree.get("kind", "")
        message = self.message
        if message is None:
            message = encode(tree, shape_for(api_version, kind)) + self.more
        return envelope(api_version, kind, message)


def shape_for(api_version: str, kind: str) -> Shape:
    """The shape of a kind, or of the options of a deletion."""
    if kind == "DeleteOptions":
        return referred(DELETE_OPTIONS)
    group, _, version = api_version.rpartition("/")
    found = shape_of(GroupVersionKind(group, version, kind))
    assert found is not None, f"{kind} of {api_version} is no built-in kind"
    return found


def varint(value: int) -> bytes:
    """A number."""
    value %= 2**64
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def number_field(number: int, value: int) -> bytes:
    """A field that is a number."""
    return varint(number << 3) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """A field that has a length."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """What is around every object."""
    type_meta = bytes_field(1, api_version.encode()) + bytes_field(2, kind.encode())
    return MAGIC + bytes_field(1, type_meta) + bytes_field(2, message) + bytes_field(3, b"") + bytes_field(4, b"")


def encode(tree: Tree, shape: Shape, *, sparse: bool = False) -> bytes:
    """The message of an object. As Go's, it holds every field that is no pointer, zero or not, unless it is ``sparse``."""
    package, _, name = shape.definition.rpartition(".")
    return _message(package, name, shape, tree, sparse=sparse)


@cache
def _pointers() -> dict[str, frozenset[str]]:
    """The fields of Go types that may be nil, by the names of types without what all of them begin with."""
    raw = files("steersman.apiserver.registry.builtin").joinpath("data", "shapes.json").read_text()
    return {
        name: frozenset(field for field, type_, *_ in map(str.split, fields) if type_[0] in "*[{" or type_ == "bytes")
        for name, fields in json.loads(raw).items()
    }


def _message(package: str, name: str, shape: Shape, tree: Tree, *, sparse: bool) -> bytes:
    short = shape.definition.removeprefix("io.k8s.api.").removeprefix("io.k8s.apimachinery.pkg.apis.")
    pointers = _pointers().get(short)
    written = b""
    for number, field, *_ in rows(package, name):
        if field.startswith("+"):
            written += bytes_field(number, _message(package, field[1:], shape, tree, sparse=sparse))
            continue
        inner, value = shape.fields[field].shape, tree.get(field)
        if value is None:
            if sparse or pointers is None or field in pointers or inner.kind not in {*_ZEROES, "time", "micro", "any"}:
                continue
            value = _ZEROES.get(inner.kind, _NO_TIME)
        if inner.kind == "list":
            written += b"".join(_value(number, inner.inner, item, sparse=sparse) for item in value)
        elif inner.kind == "map":
            for key, item in value.items():
                entry = bytes_field(1, key.encode("utf-8", "surrogatepass"))
                written += bytes_field(number, entry + _value(2, inner.inner, item, sparse=sparse))
        else:
            written += _value(number, inner, value, sparse=sparse)
    return written


def _value(number: int, shape: Shape, value: Any, *, sparse: bool) -> bytes:  # noqa: C901, PLR0911, PLR0912 - one return a kind
    match shape.kind:
        case "int" | "bool":
            return number_field(number, int(value))
        case "float":
            return varint(number << 3 | 1) + struct.pack("<d", value)
        case "string":
            return bytes_field(number, value.encode())
        case "bytes":
            return bytes_field(number, base64.b64decode(value))
        case "struct":
            return bytes_field(number, encode(value, shape, sparse=sparse))
        case "list":
            return bytes_field(number, b"".join(bytes_field(1, item.encode()) for item in value))
        case "quantity":
            return bytes_field(number, bytes_field(1, str(value).encode()))
        case "int-or-string" if isinstance(value, str):
            return bytes_field(number, number_field(1, 1) + number_field(2, 0) + bytes_field(3, value.encode()))
        case "int-or-string":
            return bytes_field(number, number_field(1, 0) + number_field(2, value) + bytes_field(3, b""))
        case "any" if shape.name.startswith("JSONSchemaPropsOr"):
            return bytes_field(number, _schema_or(shape, value, sparse=sparse))
        case _ if value is _NO_TIME:
            return bytes_field(number, b"")
        case "any":
            return bytes_field(number, bytes_field(1, json.dumps(value).encode()))
        case _:
            return bytes_field(number, _timestamp(value))


def _timestamp(value: str) -> bytes:
    since = datetime.fromisoformat(value) - datetime(1970, 1, 1, tzinfo=UTC)
    return number_field(1, since.days * 86400 + since.seconds) + number_field(2, since.microseconds * 1000)


def _schema_or(shape: Shape, value: Any, *, sparse: bool) -> bytes:
    schema = referred(f"{shape.definition.rpartition('.')[0]}.JSONSchemaProps")
    if isinstance(value, bool):
        return number_field(1, value)
    if isinstance(value, list):
        return b"".join(_value(2, schema if isinstance(item, dict) else _STRING, item, sparse=sparse) for item in value)
    whole = bytes_field(2 if shape.name.endswith("OrBool") else 1, encode(value, schema, sparse=sparse))
    return number_field(1, 1) + whole if shape.name.endswith("OrBool") else whole


_STRING = Shape("string", "string")
