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
_METADATA_SIZE = len(_METADATA)
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


async def readable(definition: Definition, records: list[Record]) -> list[Record]:
    """Stored objects in the version of a definition, as far as only a webhook can convert them."""
    webhook = None if definition.conversion is None else definition.conversion.webhook
    return records if webhook is None else await webhook.readable(records)


def served(definition: Definition, record: Record) -> Record:
    """A stored object in the group-version of a definition. One that only a webhook can convert must be `readable`."""
    conversion = definition.conversion
    if conversion is None:
        return record
    if conversion.is_same(record):
        return record
    tree: dict[str, Any] = decode_tree(record.value)
    conversion.from_stored(tree)
    tree["kind"], tree["apiVersion"] = definition.gvk.kind, definition.gvk.api_version
    # The answer to a dry run may hold only its kind.
    return record.with_value(encode_stored(tree) if "metadata" in tree else _encode(tree))


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
    at = _after_metadata(value)
    return b'%b"resourceVersion":"%d",%b' % (value[:at], revision, value[at:])


def printed_items(records: Iterable[Record], *, kind: str = "") -> Iterator[bytes]:
    """Stored objects as items of a list.

    Items of built-in kinds do not repeat the kind of the list; ``kind`` is the prefix of all others.
    """
    template = _item_template(kind)
    for record in records:
        yield template % record.modified + record.value[_after_metadata(record.value) :]


def joined_items(records: Iterable[Record], before: bytes, after: bytes, *, kind: str = "") -> bytes:
    """The same, separated by commas, between two texts: each object is copied once."""
    parts: list[bytes | memoryview] = [before]
    template = _item_template(kind)
    following = b"," + template
    for record in records:
        # In this loop each call counts: lists are long.
        value = record.value
        parts += (template % record.modified, memoryview(value)[value.index(_METADATA) + _METADATA_SIZE :])
        template = following
    parts.append(after)
    return b"".join(parts)


def _item_template(kind: str) -> bytes:
    return b'%b"metadata":{"resourceVersion":"%%d",' % (kind.encode() or b"{").replace(b"%", b"%%")


def _after_metadata(value: bytes) -> int:
    """Where the first field of the metadata begins."""
    return value.index(_METADATA) + _METADATA_SIZE


def metadata_of(record: Record, *, revision: int = 0) -> bytes:
    """The metadata of a stored object as answered."""
    metadata = bytes(_decode_metadata(record.value).metadata)
    revision = revision or record.modified
    return b'{"resourceVersion":"%d",%b' % (revision, metadata[1:]) if revision else metadata
