"""The stored form of an object, and read-only views of it.

Guarantees
- `StoredObject` is immutable. It holds the object's bytes and only those decoded fields that lookups need.
- A `StoredView` decodes on demand, once. Several callers may share a view: read its object, do not modify it.
- Resource versions are comparable as numbers only within one group-resource of one server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from steersman.objects import GroupVersionKind, Key, ObjectMeta, PartialObjectMetadata, decode, version_number

_NO_LABELS: Mapping[str, str] = {}


class StoredObject(msgspec.Struct, frozen=True, gc=False):
    """One object in the cache: its bytes, plus its decoded key, version, labels and owners."""

    key: Key
    resource_version: str
    raw: bytes
    uid: str = ""
    generation: int = 0
    own_labels: dict[str, str] | None = None
    #: The uids of its owners; the first is the controller's, if it has one.
    owners: tuple[str, ...] = ()
    #: Whether one of the owners is its controller.
    controlled: bool = False
    #: Whether it is marked for deletion and waits for finalizers or its grace period.
    deleting: bool = False
    #: Whether the bytes are incomplete: a transform dropped fields, or only metadata was requested.
    partial: bool = False
    #: Our own field manager's ``managedFields`` entries, as a JSON list without times; ``raw`` has none.
    managed_fields: bytes = b""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels; empty if the object has none."""
        return self.own_labels or _NO_LABELS


class StoredView:
    """A read-only view of a stored object. Identity and labels are decoded already, everything else on access."""

    __slots__ = ("_decode", "_metadata", "_object", "kind", "stored")

    def __init__(self, stored: StoredObject, kind: GroupVersionKind, decode: Callable[[StoredObject], Any]) -> None:
        self.stored = stored
        self.kind = kind
        self._decode = decode
        self._object: Any = None
        self._metadata: ObjectMeta | None = None

    def __repr__(self) -> str:
        return f"<StoredView of {self.kind.kind} {self.key} at {self.resource_version}>"

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.stored.key

    @property
    def uid(self) -> str:
        """The uid, which tells apart successive objects of the same name."""
        return self.stored.uid

    @property
    def resource_version(self) -> str:
        """The resource version of this state."""
        return self.stored.resource_version

    @property
    def generation(self) -> int:
        """The generation; 0 for kinds without generations."""
        return self.stored.generation

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels; empty if the object has none."""
        return self.stored.labels

    @property
    def owners(self) -> tuple[str, ...]:
        """The uids of the owners."""
        return self.stored.owners

    @property
    def controller_uid(self) -> str:
        """The uid of the controlling owner; empty without one."""
        stored = self.stored
        return stored.owners[0] if stored.controlled else ""

    @property
    def deleting(self) -> bool:
        """Whether the object is marked for deletion."""
        return self.stored.deleting

    @property
    def metadata(self) -> ObjectMeta:
        """The metadata, decoded without the rest."""
        if self._metadata is None:
            self._metadata = decode(PartialObjectMetadata, self.stored.raw, partial=True).metadata
        return self._metadata

    @property
    def object(self) -> Any:
        """The whole object, decoded once; raises `DecodeError` if it does not fit the type."""
        if self._object is None:
            self._object = self._decode(self.stored)
        return self._object


def is_same_version(old: StoredObject, new: StoredObject) -> bool:
    """Whether two states of a key are the same version of the same object."""
    return old.resource_version == new.resource_version and old.uid == new.uid


def is_older(one: str, other: str) -> bool:
    """Whether ``one`` is certainly older than ``other``; false if they are not comparable."""
    first, second = version_number(one), version_number(other)
    return first is not None and second is not None and first < second
