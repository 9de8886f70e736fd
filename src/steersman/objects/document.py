"""Decoding: turns bytes into a typed object that keeps every field.

Guarantees
- A decoded object keeps the bytes it was read from, and so does every part of it, wherever it is copied or moved.
- Decoding is lenient: it ignores constraints, required fields and enums, and reads an explicit null as absent where the
  type expects a value. An object that is still undecodable raises `DecodeError` for that object alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Raw

from steersman.errors import DecodeError
from steersman.objects.hints import (
    ListShape,
    MapShape,
    Shape,
    StructShape,
    declared_hints,
    field_shapes,
    narrowed,
    prepare,
    shape_of,
    unwrap,
    wire_names,
)
from steersman.objects.origins import ORIGIN_KEY, Origin, OriginSlot, Place, decoding, next_origin, origins_in, tracking
from steersman.objects.quantity import Quantity
from steersman.objects.struct import Struct
from steersman.objects.time import MicroTime, parse_time

S = TypeVar("S", bound=Struct)
#: A JSON object as a dict.
Tree: TypeAlias = dict[str, Any]


#: The exceptions of msgspec for unreadable bytes.
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Document:
    """The bytes an object was decoded from."""

    __slots__ = ("_places", "cls", "is_manifest", "partial", "raw", "readable")

    def __init__(self, cls: type[Struct], raw: bytes, *, partial: bool = False, is_manifest: bool = False) -> None:
        self.cls = cls
        self.raw = raw
        #: The bytes finally decoded: ``raw``, or ``raw`` without nulls that the types cannot hold.
        self.readable = raw
        #: Whether the bytes are incomplete (a metadata-only read, a transform): a full update would lose fields.
        self.partial = partial
        #: Whether a person wrote the bytes: the object is an intent, which no server has sent.
        self.is_manifest = is_manifest
        self._places: list[Place] | None = None

    def __copy__(self) -> Document:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Document:
        return self

    def __reduce__(self) -> tuple[Callable[..., Document], tuple[Any, ...]]:
        return _rebuild, (self.cls, self.raw, self.readable, self.partial, self.is_manifest)

    def __repr__(self) -> str:
        return f"<document of {len(self.raw)} bytes>"

    def place(self, ordinal: int) -> Place:
        """Return the JSON object that the ``ordinal``-th struct was decoded from."""
        if self._places is None:
            self._places = self._find_places()
        return self._places[ordinal]

    def decoded_again(self) -> Struct | None:
        """The object as it was read, with the same origins; None if it cannot be decoded on its own."""
        try:
            with tracking(self):
                return decoder_for(self.cls).decode(self.readable)
        except _UNREADABLE:
            return None

    def _find_places(self) -> list[Place]:
        """Decode again, visiting the structs in the same order, and record the place of each."""
        problem = ""
        places: dict[int, Place] = {}
        try:
            with tracking(self):
                seen = to_tree(decoder_for(self.cls).decode(self.readable))
            _walk(msgspec.json.decode(self.raw), seen, StructShape(self.cls), places)
        except _UNREADABLE as error:
            problem = str(error)
        # raised outside of the handler: a UnicodeDecodeError contains the text, which may be secret
        if problem:
            name = f"{self.cls.__name__}{_name_in(self.raw)}"
            raise DecodeError(f"cannot write {name}: it was read from bytes that cannot be decoded again: {problem}")
        nowhere = Place({}, {}, self.cls)
        return [places.get(ordinal, nowhere) for ordinal in range(max(places) + 1)]


def _rebuild(cls: type[Struct], raw: bytes, readable: bytes, partial: bool, is_manifest: bool) -> Document:  # noqa: FBT001 - for pickle
    document = Document(cls, raw, partial=partial, is_manifest=is_manifest)
    document.readable = readable
    return document


def _walk(raw: Any, seen: Any, shape: Shape, places: dict[int, Place]) -> None:
    """Walk a JSON value and its decoded form in parallel."""
    match narrowed(shape, seen):
        case StructShape(cls) if isinstance(raw, dict) and isinstance(seen, dict):
            raw, seen = cast("Tree", raw), cast("Tree", seen)
            origin = seen.pop(ORIGIN_KEY, None)
            if isinstance(origin, Origin):
                places[origin.ordinal] = Place(raw, seen, cls)
            for name, inner in field_shapes(cls).items():
                if name in seen and name in raw:
                    _walk(raw[name], seen[name], inner, places)
                elif name in seen:
                    strip_origins(seen[name])
        case ListShape(item) if isinstance(raw, list) and isinstance(seen, list):
            for raw_item, seen_item in zip(cast("list[Any]", raw), cast("list[Any]", seen), strict=True):
                _walk(raw_item, seen_item, item, places)
        case MapShape(item) if isinstance(raw, dict) and isinstance(seen, dict):
            for name, inner in cast("Tree", seen).items():
                _walk(raw[name], inner, item, places)
        case _:
            strip_origins(seen)


def strip_origins(tree: Any) -> None:
    """Remove every origin from a tree made by `to_tree`."""
    if isinstance(tree, dict):
        tree = cast("Tree", tree)
        if isinstance(tree.get(ORIGIN_KEY), Origin):
            del tree[ORIGIN_KEY]
        for value in tree.values():
            strip_origins(value)
    elif isinstance(tree, list):
        for value in cast("list[Any]", tree):
            strip_origins(value)


def encode_custom(value: Any) -> Any:
    """Encode the types that msgspec does not support."""
    if isinstance(value, (Quantity, MicroTime)):
        return str(value)
    if isinstance(value, Raw):
        return msgspec.json.decode(value)
    raise TypeError(f"{type(value).__name__} has no JSON form; use JSON values, structs, datetimes or quantities")


def decode_custom(kind: type[Any], value: Any) -> Any:
    """Decode the types that msgspec does not support."""
    if kind is OriginSlot:
        return next_origin()
    if issubclass(kind, Quantity) and isinstance(value, (str, int, float)):
        return kind(value if isinstance(value, (str, int)) else repr(value))
    if issubclass(kind, MicroTime) and isinstance(value, str):
        return MicroTime.of(parse_time(value))
    raise ValueError(f"expected {kind.__name__}, got {type(value).__name__}")


def to_tree(struct: Any) -> Any:
    """A struct or a field's value as a JSON tree; each object in it carries its `Origin` under a hidden key."""
    origins: dict[int, Document] = {}

    def encode(value: Any) -> Any:
        if isinstance(value, Document):
            origins[id(value)] = value
            return id(value)
        return encode_custom(value)

    tree = msgspec.to_builtins(struct, enc_hook=encode)
    if origins:
        _revive_origins(tree, origins)
    return tree


def _revive_origins(tree: Any, documents: dict[int, Document]) -> None:
    values: Any = ()
    if isinstance(tree, dict):
        values = cast("Tree", tree).values()
        mark: Any = cast("Tree", tree).get(ORIGIN_KEY)
        if isinstance(mark, dict):
            mark = cast("Tree", mark)
            # A user's own map may contain this key, too: then it names none of our documents.
            document = documents.get(mark["document"]) if isinstance(mark.get("document"), int) else None
            if document is not None:
                tree[ORIGIN_KEY] = Origin(document, mark["ordinal"])
    elif isinstance(tree, list):
        values = cast("list[Any]", tree)
    for value in values:
        if isinstance(value, (dict, list)):
            _revive_origins(value, documents)


@cache
def decoder_for(cls: type[S]) -> msgspec.json.Decoder[S]:
    """The decoder of a class, made on first use."""
    prepare(cls)
    return msgspec.json.Decoder(cls, dec_hook=decode_custom)


def decode(cls: type[S], raw: bytes, *, partial: bool = False) -> S:
    """Decode one object, which keeps ``raw``; pass its own bytes, not a view into a larger page."""
    document = Document(cls, raw, partial=partial)
    mismatch: msgspec.ValidationError | None = None
    problem = ""
    decoding.origins = origins_in(document)  # not `with tracking(...)`: this is the hot path of every read
    try:
        return decoder_for(cls).decode(raw)
    except msgspec.ValidationError as error:
        mismatch = error
    except _UNREADABLE as error:
        problem = f" from {len(raw)} bytes: {error}"
    finally:
        decoding.origins = None
    if mismatch is not None:
        try:
            return _decode_without_nulls(document, cls)
        except _UNREADABLE:
            problem = f"{_name_in(raw)}: {mismatch}; the server's schema may be newer than the type"
    # raised outside of the handlers: a UnicodeDecodeError contains the text, which may be secret
    raise DecodeError(f"cannot decode {cls.__name__}{problem}") from mismatch


def decode_manifest(cls: type[S], raw: bytes) -> S:
    """Decode an object that a person wrote: a write sends these bytes plus the program's changes, and no defaults.

    The object counts as one that the program made: it can be created and applied.
    """
    document = Document(cls, raw, is_manifest=True)
    try:
        with tracking(document):
            return decoder_for(cls).decode(raw)
    except _UNREADABLE:
        pass
    try:
        return _decode_without_nulls(document, cls)
    except _UNREADABLE as error:
        problem = str(error)
    raise DecodeError(f"cannot decode {cls.__name__}: {problem}")


def _decode_without_nulls(document: Document, cls: type[S]) -> S:
    """Decode again without nulls where the types expect a value, as Kubernetes reads them."""
    tree = msgspec.json.decode(document.raw)
    document.readable = msgspec.json.encode(_without_nulls(tree, StructShape(cls)))
    with tracking(document):
        return decoder_for(cls).decode(document.readable)


def _name_in(raw: bytes) -> str:
    try:
        metadata = msgspec.json.decode(raw)["metadata"]
        return f" {metadata.get('namespace', '')}/{metadata['name']}".replace(" /", " ")
    except (*_UNREADABLE, KeyError, TypeError, AttributeError):
        return ""


def _without_nulls(value: Any, shape: Shape) -> Any:
    match narrowed(shape, value):
        case StructShape(cls) if isinstance(value, dict):
            hints, names = declared_hints(cls), wire_names(cls)
            kept: Tree = dict(cast("Tree", value))
            for name, wire in names.items():
                if wire not in kept:
                    continue
                if kept[wire] is None and not unwrap(hints[name])[2]:
                    del kept[wire]
                else:
                    kept[wire] = _without_nulls(kept[wire], shape_of(hints[name]))
            return kept
        case ListShape(item) if isinstance(value, list):
            return [_without_nulls(inner, item) for inner in cast("list[Any]", value)]
        case MapShape(item) if isinstance(value, dict):
            return {name: _without_nulls(inner, item) for name, inner in cast("Tree", value).items()}
        case _:
            return value


def origin_of(struct: Struct) -> Origin | None:
    """Where a struct was read from; None if no server sent it."""
    origin: Any = getattr(struct, "_origin", None)
    return origin if isinstance(origin, Origin) and not origin.document.is_manifest else None


def raw_of(struct: Struct) -> bytes | None:
    """The bytes an object was read from; None if it was not read."""
    origin = origin_of(struct)
    return origin.document.raw if origin is not None else None


def is_partial(struct: Struct) -> bool:
    """Whether the object is only a part of what the server stores, so that a full update would lose fields."""
    origin = origin_of(struct)
    return origin is not None and origin.document.partial
