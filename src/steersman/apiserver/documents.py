"""Stored and answered objects: the same bytes, plus a resourceVersion in answers.

Guarantees
- Stored bytes hold no resourceVersion: it is the store's revision of the last change.
- Answering an object costs one copy of its bytes, without decoding.
- Kind and apiVersion come first and the metadata next, so that list items can omit the former.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from steersman.apiserver.json_trees import decode_tree
from steersman.apiserver.registry.definition import Definition
from steersman.apiserver.storage import Record

_METADATA = b'"metadata":{'
#: How many bytes of a list are printed at a time.
_PIECE = 128 * 1024
_encode = msgspec.json.Encoder().encode


class _MetadataOnly(msgspec.Struct):
    #: Stored objects always have metadata, but some dry run answers do not.
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_decode_metadata = msgspec.json.Decoder(_MetadataOnly).decode


def copied(tree: Any) -> Any:
    """A copy of a JSON tree that shares nothing with it. Raises if a value is not JSON."""
    return decode_tree(_encode(tree))


def encode_stored(tree: dict[str, Any]) -> bytes:
    """The bytes of an object to store."""
    metadata: dict[str, Any] = tree["metadata"].copy()
    metadata.pop("resourceVersion", None)
    # The order of the first three makes reading cheap.
    ordered = {"kind": tree["kind"], "apiVersion": tree["apiVersion"], "metadata": metadata} | tree
    ordered["metadata"] = metadata
    # A copy: msgspec's own bytes keep the memory of a larger buffer.
    return bytes(memoryview(_encode(ordered)))


def decode_stored(record: Record) -> dict[str, Any]:
    """The tree of a stored object, with its resourceVersion."""
    tree: dict[str, Any] = decode_tree(record.value)
    tree.setdefault("metadata", {})["resourceVersion"] = str(record.modified)
    return tree


def served(definition: Definition, record: Record) -> Record:
    """A stored object in the group-version of a definition."""
    conversion = definition.conversion
    if conversion is None:
        return record
    if conversion.webhook is not None:
        record = conversion.webhook.known(record) or record
    if conversion.is_same(record):
        return record
    tree: dict[str, Any] = decode_tree(record.value)
    conversion.from_stored(tree)
    tree["kind"], tree["apiVersion"] = definition.gvk.kind, definition.gvk.api_version
    # The answer to a dry run may hold only its kind.
    return record._replace(value=encode_stored(tree) if "metadata" in tree else _encode(tree))


def decode_served(definition: Definition, record: Record) -> dict[str, Any]:
    """The tree of a stored object in the group-version of a definition."""
    return decode_stored(served(definition, record))


def encode_served(definition: Definition, tree: dict[str, Any]) -> bytes:
    """The bytes to store for an object in the group-version of a definition. The tree is consumed."""
    if definition.conversion is not None:
        definition.conversion.to_stored(tree)
    return encode_stored(tree)


def whole(record: Record, *, revision: int = 0) -> bytes:
    """A stored object as answered: with its resourceVersion, or that of an event.

    A record at revision 0 was not stored, in a dry run; it has no resourceVersion.
    """
    revision = revision or record.modified
    if not revision:
        return record.value
    value = record.value
    at = value.index(_METADATA) + len(_METADATA)
    return b'%b"resourceVersion":"%d",%b' % (value[:at], revision, value[at:])


def item_pieces(head: bytes, records: Iterable[Record], *, kind: str = "") -> Iterator[bytes]:
    """A list of stored objects after its head, in pieces: each object is copied once, when its piece is requested.

    Items of built-in kinds do not repeat the kind of the list; ``kind`` is the prefix of all others.
    """
    opening = kind.encode() or b"{"
    parts: list[bytes | memoryview] = [head]
    first = b'%b"metadata":{"resourceVersion":"%%d",' % opening.replace(b"%", b"%%")
    following, template = b"," + first, first
    size = 0
    for record in records:
        value = record.value
        at = value.index(_METADATA) + len(_METADATA)
        parts += (template % record.modified, memoryview(value)[at:])
        template = following
        size += len(value)
        if size > _PIECE:
            yield b"".join(parts)
            parts, size = [], 0
    parts.append(b"]}\n")
    yield b"".join(parts)


def metadata_of(record: Record, *, revision: int = 0) -> bytes:
    """The metadata of a stored object as answered."""
    metadata = bytes(_decode_metadata(record.value).metadata)
    revision = revision or record.modified
    return b'{"resourceVersion":"%d",%b' % (revision, metadata[1:]) if revision else metadata
