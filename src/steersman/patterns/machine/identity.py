"""The identity of a reconciled object, which no state may change. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from steersman.objects import Object, Unstructured

#: The metadata that a state must not change.
_FIELDS = ("name", "namespace", "uid", "resource_version", "generation", "deletion_timestamp")
_values = attrgetter(*_FIELDS)


class Identity:
    """The identity of an object before a state runs."""

    __slots__ = ("_metadata", "_values")

    def __init__(self, obj: Object) -> None:
        self._metadata = obj.metadata
        self._values = _values(obj.metadata)

    def check(self, obj: Object, state: str, children: Iterable[Object | Unstructured]) -> None:
        """Raise a TypeError if a state changed the identity, or gave it to a child; restores it first.

        Everything after the state, including the error message, is about the object that was read.
        """
        metadata = self._metadata
        if obj.metadata is not metadata or _values(metadata) != self._values:
            obj.metadata = metadata
            for field, value in zip(_FIELDS, self._values, strict=True):
                setattr(metadata, field, value)
            raise TypeError(
                f"{state} changed the metadata of {obj.kind} {obj.key}, which is read-only; create a new"
                " ObjectMeta(name=...) for a child"
            )
        if any(child.metadata is metadata for child in children):
            raise TypeError(
                f"{state} used the metadata of {obj.kind} {obj.key} for a child; create a new one: ObjectMeta(name=...)"
            )
