"""Bindings: the paths of a kind, and how the client decodes and encodes its objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec
from msgspec import UNSET

from steersman.errors import UNREADABLE, DecodeError
from steersman.objects import GroupVersionKind, Key, Kind, Object, PartialObjectMetadata, Unstructured, decode
from steersman.wire import group_version_path, key_of, quote_segment

T = TypeVar("T")
ObjectT = TypeVar("ObjectT", bound=Object)


class Binding(Generic[T]):
    """A kind as the client uses it. Made once per class; its methods are the hot path of every verb."""

    __slots__ = ("_prefix", "decode", "gvk", "namespaced", "reads", "resource")

    def __init__(
        self,
        gvk: GroupVersionKind,
        resource: str,
        *,
        namespaced: bool,
        decode: Callable[[bytes], T],
        reads: str | None = None,
    ) -> None:
        self.gvk = gvk
        self.resource = resource
        self.namespaced = namespaced
        self.decode = decode
        #: The kind that responses carry; empty if any kind may come.
        self.reads = gvk.kind if reads is None else reads
        self._prefix = group_version_path(gvk.group, gvk.version)

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """The path of an object, a collection, or a subresource."""
        path = self._prefix
        if namespace and self.namespaced:
            path += f"/namespaces/{quote_segment(namespace)}"
        path += f"/{self.resource}"
        if name:
            path += f"/{quote_segment(name)}"
        if subresource:
            path += f"/{subresource}"
        return path

    def decode_item(self, raw: bytes) -> T:
        """Decode an object of a list or watch; raise DecodeError if it has another kind."""
        item = self.decode(raw)
        kind = getattr(item, "kind", "")
        if self.reads and kind and kind != self.reads:
            key = key_of(raw)
            raise DecodeError(
                f"cannot decode {self.gvk.kind} {key}: the server sent an object of kind {str(kind)[:100]}"
            )
        return item

    def reading(self, decode: Callable[[bytes], Any], *, reads: str = "") -> Binding[Any]:
        """The same kind with another decoder for its responses."""
        return Binding(self.gvk, self.resource, namespaced=self.namespaced, decode=decode, reads=reads)

    def metadata_only(self) -> Binding[PartialObjectMetadata]:
        """The same kind, read as metadata only."""
        return self.reading(
            lambda raw: _checked(decode(PartialObjectMetadata, raw, partial=True)), reads=PartialObjectMetadata.__name__
        )


def _checked(obj: ObjectT) -> ObjectT:
    """Reject an object without metadata: no later step could tell its key."""
    metadata: Any = obj.metadata
    if metadata is UNSET:
        raise DecodeError(f"cannot decode {type(obj).__name__}: it has no metadata")
    return obj


class _Described(msgspec.Struct):
    metadata: dict[str, msgspec.Raw]
    kind: str = ""


_described_decoder = msgspec.json.Decoder(_Described)


def holds_object(body: bytes, kind: str = "") -> bool:
    """Whether the bytes are a Kubernetes object, of ``kind`` if one is given."""
    try:
        described = _described_decoder.decode(body)
    except UNREADABLE:
        return False
    return not kind or described.kind in {kind, ""}


class _Metadata(msgspec.Struct, rename="camel", frozen=True):
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None


class _Deleted(msgspec.Struct):
    kind: str = ""
    metadata: _Metadata = _Metadata()
    spec: msgspec.Raw = msgspec.Raw(b"")


_deleted_decoder = msgspec.json.Decoder(_Deleted)


def is_gone(body: bytes) -> bool:
    """Whether the response to a deletion says that the object is gone, not merely marked for deletion.

    Most kinds answer with a Status once they are gone; some answer with their last state. A marked object still waits
    for its grace period or its finalizers; a Namespace waits for those in its spec.
    """
    try:
        last = _deleted_decoder.decode(body)
    except UNREADABLE:
        return False
    metadata = last.metadata
    if last.kind == "Status" or metadata.deletion_timestamp is None:
        return True
    waits = metadata.finalizers or b'"finalizers"' in bytes(last.spec)
    return metadata.deletion_grace_period_seconds == 0 and not waits


def no_kind(given: object) -> TypeError:
    """The error for an argument that is not a kind."""
    if isinstance(given, Object):
        return TypeError(f"expected a kind, got the object {given.kind} {given.key}; write {type(given).__name__}")
    if isinstance(given, type) and issubclass(cast("type[Any]", given), type):
        return TypeError(
            "expected an object, got a class; pass an instance, such as Site(metadata=ObjectMeta(name=...), ...)"
        )
    return TypeError(
        f"{getattr(given, '__name__', given)!r} is not a kind: use a class declared with group= and version=, "
        'Kind("group/version", "Kind"), or an Unstructured for a JSON tree'
    )


def bind_class(cls: type[Object]) -> Binding[Any]:
    """The binding of a typed kind."""
    options = getattr(cls, "__resource__", None)
    if options is None:
        raise no_kind(cls)
    return Binding(
        cls.gvk(), options.plural, namespaced=options.namespaced, decode=lambda raw: _checked(decode(cls, raw))
    )


_IDENTITY = ("name", "namespace", "uid", "resourceVersion")


def _check_identity(tree: dict[str, Any], kind: Kind) -> None:
    """Reject a tree without a usable key: every caller reads names and versions as strings."""
    metadata = tree.get("metadata")
    if not isinstance(metadata, dict):
        raise DecodeError(f"cannot decode {kind.kind}: it has no metadata")
    for field in _IDENTITY:
        value = cast("dict[str, Any]", metadata).get(field)
        if not isinstance(value, str | None):
            raise DecodeError(f"cannot decode {kind.kind}: metadata.{field} must be a string (got {value!r:.40})")


def bind_kind(kind: Kind, resource: str, *, namespaced: bool) -> Binding[Unstructured]:
    """The binding of an untyped kind."""

    def decode_whole(raw: bytes) -> Unstructured:
        obj = Unstructured.decode(raw)
        _check_identity(obj.tree, kind)
        if "kind" not in obj.tree:  # items in lists of built-in kinds carry neither kind nor apiVersion
            obj.tree = {"apiVersion": kind.api_version, "kind": kind.kind, **obj.tree}
            obj.raw = msgspec.json.encode(obj.tree)
        return obj

    return Binding(kind.gvk(), resource, namespaced=namespaced, decode=decode_whole)


class VerbCall(NamedTuple):
    """The operation in progress; formatted only for an error message."""

    verb: str
    kind: GroupVersionKind | None = None
    key: Key | str = ""
    subresource: str = ""

    def __str__(self) -> str:
        verb = f"{self.verb} {self.subresource} of" if self.subresource else self.verb
        return " ".join(str(part) for part in (verb, self.kind.kind if self.kind else "", self.key) if part)
