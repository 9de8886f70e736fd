"""Objects of kinds without a Python class."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from steersman.errors import DecodeError
from steersman.objects.identity import GroupVersionKind, Key


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
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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
