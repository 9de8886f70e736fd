"""Reads answers in protobuf as the JSON that holds the same: scenarios compare both media types alike."""

from __future__ import annotations

import json
from typing import Any

from conformance.protobuf_encoding import MAGIC, PROTOBUF, shape_for

from steersman.apiserver.go_types.shapes import object_meta, referred
from steersman.apiserver.protobuf import read_envelope, read_message
from steersman.golang.protobuf import BYTES, walk

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
#: The bytes of the length before each frame.
_LENGTH = 4


class _Field:
    def __init__(self, go: str) -> None:
        self.go = go
        self.wire = BYTES
        self.repeated = False


_LIST = {1: _Field("ListMeta"), 2: _Field("Items")}
_EVENT = {1: _Field("Type"), 2: _Field("Object")}
_RAW = {1: _Field("Raw")}


def is_protobuf(content_type: str) -> bool:
    """Whether an answer is protobuf."""
    return content_type.partition(";")[0] == PROTOBUF


def tree_of(body: bytes) -> dict[str, Any]:
    """An object in its envelope, as the tree that JSON would give."""
    api_version, kind, message = read_envelope(body)
    return {"kind": kind, "apiVersion": api_version, **_message(api_version, kind, message)}


def json_of(body: bytes) -> bytes:
    """An answer as JSON; what is no message, as it came."""
    return json.dumps(tree_of(body)).encode() if body.startswith(MAGIC) else body


def _message(api_version: str, kind: str, message: bytes) -> dict[str, Any]:
    if kind.endswith("List"):
        return _list(api_version, kind.removesuffix("List"), message)
    if kind == "Status":
        return read_message(message, referred(f"{META}.Status"))
    if kind == "PartialObjectMetadata":
        fields = {1: _Field("ObjectMeta")}
        found = [message[start:stop] for _, start, stop in walk(message, 0, len(message), kind, fields)]
        return {"metadata": read_message(found[0], object_meta())}
    return read_message(message, shape_for(api_version, kind))


def _list(api_version: str, kind: str, message: bytes) -> dict[str, Any]:
    tree: dict[str, Any] = {"items": []}
    for field, start, stop in walk(message, 0, len(message), f"{kind}List", _LIST):
        if field.go == "ListMeta":
            tree["metadata"] = read_message(message[start:stop], referred(f"{META}.ListMeta"))
        else:
            tree["items"].append(_message(api_version, kind, message[start:stop]))
    return tree


def _part(data: bytes, fields: dict[int, _Field], go: str) -> bytes:
    return next(data[start:stop] for field, start, stop in walk(data, 0, len(data), "", fields) if field.go == go)


class ProtobufSplitter:
    """Cuts a watch in protobuf into its frames, as JSON."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The frames that are complete."""
        self._rest += chunk
        found: list[bytes] = []
        while len(self._rest) >= _LENGTH and len(self._rest) >= _LENGTH + int.from_bytes(self._rest[:_LENGTH], "big"):
            end = _LENGTH + int.from_bytes(self._rest[:_LENGTH], "big")
            event, self._rest = self._rest[_LENGTH:end], self._rest[end:]
            obj = tree_of(_part(_part(event, _EVENT, "Object"), _RAW, "Raw"))
            type_ = _part(event, _EVENT, "Type").decode()
            found.append(json.dumps({"type": type_, "object": obj}, separators=(",", ":")).encode())
        return found
