"""Results of the verbs: lists, watch events, outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from steersman.errors import DecodeError
from steersman.objects import Key

T = TypeVar("T")


class Undecodable(msgspec.Struct, frozen=True):
    """An object that its type cannot decode. Only its key is affected, not the rest of a list or watch."""

    key: Key
    error: DecodeError
    raw: bytes

    def __repr__(self) -> str:
        return f"Undecodable({self.key}, {self.error})"


def _none_undecodable() -> list[Undecodable]:
    return []


class ListOf(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """Objects read together, at one resource version."""

    items: list[T]
    resource_version: str
    continue_: str | None = None
    remaining_item_count: int | None = None
    undecodable: list[Undecodable] = msgspec.field(default_factory=_none_undecodable)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> T:
        return self.items[index]


class Added(msgspec.Struct, Generic[T], frozen=True):
    """The object appeared, or existed when the watch began."""

    object: T


class Modified(msgspec.Struct, Generic[T], frozen=True):
    """The object changed."""

    object: T


class Deleted(msgspec.Struct, Generic[T], frozen=True):
    """The object is gone; contains its last state."""

    object: T


class Bookmark(msgspec.Struct, frozen=True):
    """Everything up to this version has been delivered."""

    resource_version: str
    #: The initial objects of a watch with ``initial_events=True`` are complete.
    initial_events_end: bool = False


#: What a watch yields.
WatchEvent: TypeAlias = Added[T] | Modified[T] | Deleted[T] | Bookmark | Undecodable


class OperationResult(msgspec.Struct, Generic[T], frozen=True):
    """The result of `create_or_update`, `create_or_patch` and `save`."""

    operation: Literal["created", "updated", "unchanged"]
    object: T


class ServerWarning(msgspec.Struct, frozen=True):
    """A ``Warning`` header of the server: a deprecated API, an unknown field."""

    text: str
    tried: str

    def __str__(self) -> str:
        return f"{self.tried}: {self.text}"


Tree: TypeAlias = dict[str, Any]
