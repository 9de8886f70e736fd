"""Objects of kinds without a Python class, and what typed and untyped objects have in common."""

from __future__ import annotations

from types import NoneType
from typing import Any, TypeVar, cast

import msgspec

from steersman.errors import UNREADABLE, DecodeError
from steersman.objects.difference import as_read, encode, to_json
from steersman.objects.document import is_partial, origin_of, raw_of
from steersman.objects.hints import declared_hints
from steersman.objects.identity import GroupVersionKind, Key
from steersman.objects.resource import Object

#: The digits of a resource version that counts as a number. Python refuses to convert thousands of them.
_DIGITS_MAX = 100


class Kind(msgspec.Struct, frozen=True):
    """Names a kind without a class: ``client.get(Kind("example.com/v1", "Widget"), key)`` reads an `Unstructured`.

    The client looks up its resource and its scope in the server's discovery.
    """

    api_version: str
    kind: str

    def gvk(self) -> GroupVersionKind:
        """Group, version and kind."""
        return GroupVersionKind.of(self.api_version, self.kind)


class Unstructured:
    """An object as a JSON tree: keeps everything, checks nothing."""

    __slots__ = ("partial", "raw", "tree")

    def __init__(self, tree: dict[str, Any], *, raw: bytes | None = None, partial: bool = False) -> None:
        self.tree = tree
        #: The bytes it was read from; None if it was not read.
        self.raw = raw
        self.partial = partial

    @classmethod
    def decode(cls, raw: bytes, *, partial: bool = False) -> Unstructured:
        """Decode one object."""
        problem = ""
        tree: Any = None
        try:
            tree = msgspec.json.decode(raw)
        except UNREADABLE as error:
            problem = str(error)
        # raised outside of the handler: a UnicodeDecodeError contains the text, which may be secret
        if problem:
            raise DecodeError(f"cannot decode an object from {len(raw)} bytes: {problem}")
        if not isinstance(tree, dict):
            raise DecodeError(f"cannot decode an object: the server sent {type(tree).__name__}, not a JSON object")
        return cls(cast("dict[str, Any]", tree), raw=raw, partial=partial)

    def __repr__(self) -> str:
        return f"Unstructured({self.api_version} {self.kind} {self.key})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unstructured) and self.tree == other.tree

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, name: str) -> Any:
        return self.tree[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.tree[name] = value

    def get(self, *path: str, default: Any = None) -> Any:
        """Walk into the tree: ``widget.get("spec", "size")``."""
        value: Any = self.tree
        for name in path:
            if not isinstance(value, dict) or name not in value:
                return default
            value = cast("dict[str, Any]", value)[name]
        return value

    @property
    def api_version(self) -> str:
        """Group and version."""
        return self.tree.get("apiVersion", "")

    @property
    def kind(self) -> str:
        """The kind."""
        return self.tree.get("kind", "")

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata as a tree."""
        return self.tree.setdefault("metadata", {})

    @property
    def key(self) -> Key:
        """Namespace and name."""
        metadata: dict[str, Any] = self.tree.get("metadata") or {}
        return Key(metadata.get("namespace") or "", metadata.get("name") or "")

    @property
    def uid(self) -> str:
        """The uid; empty until it is created."""
        return self.get("metadata", "uid") or ""

    @property
    def generation(self) -> int:
        """How often the desired state has changed; 0 before creation, and for kinds without a generation."""
        return self.get("metadata", "generation") or 0

    @property
    def deleting(self) -> bool:
        """Whether its deletion has begun."""
        return bool(self.get("metadata", "deletionTimestamp"))


def kind_name(kind: type[Object] | Kind) -> str:
    """The name of a kind for messages."""
    return kind.kind if isinstance(kind, Kind) else kind.__name__


#: Type variable of an object, with or without a Python class.
AnyObject = TypeVar("AnyObject", bound=Object | Unstructured)


def encode_any(obj: Object | Unstructured) -> bytes:
    """The bytes to write for an object."""
    return msgspec.json.encode(obj.tree) if isinstance(obj, Unstructured) else encode(obj)


def tree_of(obj: Object | Unstructured) -> dict[str, Any]:
    """The object as it would be written, as a JSON tree."""
    return obj.tree if isinstance(obj, Unstructured) else to_json(obj)


def tree_as_read(obj: Object | Unstructured) -> dict[str, Any] | None:
    """The JSON tree the object was read from, without later changes; None if the object was not read."""
    if isinstance(obj, Unstructured):
        return msgspec.json.decode(obj.raw) if obj.raw else None
    return as_read(obj)


def has_status_subresource(cls: type[Object]) -> bool:
    """Whether a class declares a status with its own subresource."""
    declared = cls.__resource__.status_subresource
    return declared_hints(cls).get("status", NoneType) is not NoneType if declared is None else declared


def was_read(obj: Object | Unstructured) -> bool:
    """Whether the object came from the server."""
    return obj.raw is not None if isinstance(obj, Unstructured) else origin_of(obj) is not None


def read_in_part(obj: Object | Unstructured) -> bool:
    """Whether the object holds only a part of what the server stores."""
    return obj.partial if isinstance(obj, Unstructured) else is_partial(obj)


def raw_bytes(obj: Object | Unstructured) -> bytes | None:
    """The bytes the server sent for an object; None if the object was not read."""
    return obj.raw if isinstance(obj, Unstructured) else raw_of(obj)


def uid_of(obj: Object | Unstructured) -> str | None:
    """The object's uid, if it has been created."""
    return obj.metadata.get("uid") if isinstance(obj, Unstructured) else obj.metadata.uid


def resource_version_of(obj: Object | Unstructured) -> str | None:
    """The version the object was read at."""
    return obj.metadata.get("resourceVersion") if isinstance(obj, Unstructured) else obj.metadata.resource_version


def version_number(resource_version: str) -> int | None:
    """A resource version as a number; None if it is not decimal, or longer than any server's, and so not comparable."""
    is_number = resource_version.isascii() and resource_version.isdigit() and len(resource_version) <= _DIGITS_MAX
    return int(resource_version) if is_number else None
