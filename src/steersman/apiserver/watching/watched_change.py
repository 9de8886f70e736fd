"""A change as watchers see it; derived values are shared by all of them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from steersman.apiserver.json_trees import decode_tree
from steersman.apiserver.registry.definition import Definition
from steersman.apiserver.storage import Record
from steersman.wire import shard_hash


class _Labels(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Labeled(msgspec.Struct):
    metadata: _Labels


class _Uid(msgspec.Struct):
    uid: str = ""


class _Identified(msgspec.Struct):
    metadata: _Uid


_decode_labels = msgspec.json.Decoder(_Labeled).decode
_decode_uid = msgspec.json.Decoder(_Identified).decode
_NONE: dict[str, str] = {}


def is_converted(definition: Definition) -> bool:
    """Whether a webhook makes the objects of a resource from the stored ones, which may have other labels."""
    return definition.conversion is not None and definition.conversion.webhook is not None


def labels_of(record: Record) -> dict[str, str]:
    """The labels of an object; nothing else is decoded."""
    if b'"labels"' not in record.value:
        return _NONE
    return _decode_labels(record.value).metadata.labels or _NONE


def uid_of(record: Record) -> str:
    """The uid of an object; nothing else is decoded."""
    return _decode_uid(record.value).metadata.uid


def fields_of(definition: Definition, record: Record) -> dict[str, str]:
    """The values of all selectable fields, other than name and namespace; the object is decoded once."""
    if not definition.selectable:
        return {}
    tree: dict[str, Any] = decode_tree(record.value)
    if definition.conversion is not None:
        definition.conversion.from_stored(tree)
    return {field: read(tree) for field, read in definition.selectable.items()}


class WatchedChange(msgspec.Struct, gc=False, eq=False):
    """A change of an object: `record` is the new state, `previous` the old one."""

    key: str
    revision: int
    record: Record | None
    previous: Record | None
    _labels: dict[bool, dict[str, str]] = msgspec.field(default_factory=dict[bool, dict[str, str]])
    _fields: dict[tuple[bool, Hashable], dict[str, str]] = msgspec.field(
        default_factory=dict[tuple[bool, Hashable], dict[str, str]]
    )
    _uid_hash: int = -1

    @property
    def size(self) -> int:
        """The size of the old state, which only the history holds."""
        return 0 if self.previous is None else len(self.previous.value)

    @property
    def uid_hash(self) -> int:
        """The hash of the object's uid: no change has another uid before than after it."""
        if self._uid_hash < 0:
            record = self.record or self.previous
            self._uid_hash = shard_hash("" if record is None else uid_of(record))
        return self._uid_hash

    def labels(self, *, previous: bool) -> dict[str, str]:
        """The labels after the change, or before it."""
        found = self._labels.get(previous)
        if found is None:
            record = self.previous if previous else self.record
            found = self._labels[previous] = _NONE if record is None else labels_of(record)
        return found

    def fields(self, definition: Definition, *, previous: bool) -> dict[str, str]:
        """The values of all selectable fields after the change, or before it."""
        key = (previous, definition.gvk)
        found = self._fields.get(key)
        if found is None:
            record = self.previous if previous else self.record
            found = self._fields[key] = {} if record is None else fields_of(definition, record)
        return found
