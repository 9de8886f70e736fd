"""What the cache keeps of an object, and how a reader looks at it.

Guarantees
- `Stored` holds the object's bytes and, beside them, only what finding it needs; it is immutable.
- A `View` decodes on demand, once. It is shared by everyone who was handed the same view: read it, do not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from steersman.objects import GroupVersionKind, Key, ObjectMeta, PartialObjectMetadata, decode

_NO_LABELS: Mapping[str, str] = {}


class Stored(msgspec.Struct, frozen=True, gc=False):
    """One object in the cache: its bytes, and its key, version, labels and owners read out of them."""

    key: Key
    resource_version: str
    raw: bytes
    uid: str = ""
    generation: int = 0
    own_labels: dict[str, str] | None = None
    #: The uids of its owners; the first is the controller's, if it has one.
    owners: tuple[str, ...] = ()
    #: One of its owners controls it.
    controlled: bool = False
    #: It is marked for deletion and waits for its finalizers or its grace period.
    deleting: bool = False
    #: The bytes hold less than the server does: a transform dropped fields, or only metadata was asked for.
    partial: bool = False
    #: The ``managedFields`` entries of our own manager, a JSON list without times; the object's bytes hold none.
    managed_fields: bytes = b""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels; empty if it has none."""
        return self.own_labels or _NO_LABELS


class View:
    """A stored object to look at: identity and labels at once, everything else decoded when it is asked for."""

    __slots__ = ("_decode", "_metadata", "_object", "kind", "stored")

    def __init__(self, stored: Stored, kind: GroupVersionKind, decode: Callable[[Stored], Any]) -> None:
        self.stored = stored
        self.kind = kind
        self._decode = decode
        self._object: Any = None
        self._metadata: ObjectMeta | None = None

    def __repr__(self) -> str:
        return f"<View of {self.kind.kind} {self.key} at {self.resource_version}>"

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.stored.key

    @property
    def uid(self) -> str:
        """The uid: another object under the same name has another one."""
        return self.stored.uid

    @property
    def resource_version(self) -> str:
        """The version of this state."""
        return self.stored.resource_version

    @property
    def generation(self) -> int:
        """The generation; 0 for kinds that count none."""
        return self.stored.generation

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels; empty if it has none."""
        return self.stored.labels

    @property
    def owners(self) -> tuple[str, ...]:
        """The uids of its owners."""
        return self.stored.owners

    @property
    def controller_uid(self) -> str:
        """The uid of the owner that controls it; empty if none does."""
        stored = self.stored
        return stored.owners[0] if stored.controlled else ""

    @property
    def deleting(self) -> bool:
        """Whether it is marked for deletion."""
        return self.stored.deleting

    @property
    def metadata(self) -> ObjectMeta:
        """The metadata, decoded without the rest."""
        if self._metadata is None:
            self._metadata = decode(PartialObjectMetadata, self.stored.raw, partial=True).metadata
        return self._metadata

    @property
    def object(self) -> Any:
        """The whole object, decoded once; `DecodeError` if our type cannot hold it."""
        if self._object is None:
            self._object = self._decode(self.stored)
        return self._object
