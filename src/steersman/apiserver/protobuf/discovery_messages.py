"""Writes discovery documents as protobuf. Their types have no schemas, so this module lists their fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from steersman.apiserver.protobuf.wire_format import BYTES, VARINT, delimited, varint

Tree: TypeAlias = dict[str, Any]
#: A function that writes a document or a part of one.
_Write: TypeAlias = Callable[[Any], bytes]


def _message(*fields: _Write) -> _Write:
    return lambda tree: b"".join([field(tree) for field in fields])


def _text(number: int, name: str) -> _Write:
    tag = varint(number << 3 | BYTES)
    return lambda tree: delimited(tag, tree.get(name, "").encode())


def _flag(number: int, name: str) -> _Write:
    tag = varint(number << 3 | VARINT)
    return lambda tree: tag + (b"\x01" if tree.get(name) else b"\x00")


def _texts(number: int, name: str) -> _Write:
    tag = varint(number << 3 | BYTES)
    return lambda tree: b"".join([delimited(tag, text.encode()) for text in tree.get(name) or ()])


def _part(number: int, name: str, write: _Write) -> _Write:
    tag = varint(number << 3 | BYTES)
    return lambda tree: delimited(tag, write(tree.get(name) or {}))


def _parts(number: int, name: str, write: _Write) -> _Write:
    tag = varint(number << 3 | BYTES)
    return lambda tree: b"".join([delimited(tag, write(item)) for item in tree.get(name) or ()])


_ADDRESS: Final = _message(_text(1, "clientCIDR"), _text(2, "serverAddress"))
_VERSION: Final = _message(_text(1, "groupVersion"), _text(2, "version"))
_VERBS: Final = varint(4 << 3 | BYTES)
_GROUP: Final = _message(
    _text(1, "name"),
    _parts(2, "versions", _VERSION),
    _part(3, "preferredVersion", _VERSION),
    _parts(4, "serverAddressByClientCIDRs", _ADDRESS),
)
_RESOURCE: Final = _message(
    _text(1, "name"),
    _flag(2, "namespaced"),
    _text(3, "kind"),
    # The verbs are a message that holds a list.
    lambda tree: delimited(_VERBS, _texts(1, "verbs")(tree)),
    _texts(5, "shortNames"),
    _text(6, "singularName"),
    _texts(7, "categories"),
    _text(8, "group"),
    _text(9, "version"),
    _text(10, "storageVersionHash"),
)
#: The function that writes a document, by kind.
DISCOVERY: Final[Mapping[str, _Write]] = {
    "APIVersions": _message(_texts(1, "versions"), _parts(2, "serverAddressByClientCIDRs", _ADDRESS)),
    "APIGroup": _GROUP,
    "APIGroupList": _message(_parts(1, "groups", _GROUP)),
    "APIResourceList": _message(_text(1, "groupVersion"), _parts(2, "resources", _RESOURCE)),
}
