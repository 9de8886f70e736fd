"""Encoding: the bytes an object was read from plus the program's changes.

Guarantees
- A field that our types do not declare is written back as read, in place, wherever its object was moved.
- A default that decoding filled in is not written by an update that did not change it.
- List items are matched by where they were decoded, else by the list's map keys, else by index. If these cannot decide
  and a field could be lost, `AmbiguousItem` is raised; nothing is guessed.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from steersman.errors import AmbiguousItem, ApiError
from steersman.objects.document import Document, Tree, encode_custom, origin_of, strip_origins, to_tree
from steersman.objects.hints import ListShape, MapShape, Shape, StructShape, field_shapes, narrowed, wire_names
from steersman.objects.origins import ORIGIN_KEY, Origin
from steersman.objects.struct import Struct

_ABSENT: Any = object()


class _HoldsOrigin(Exception):
    """The struct, or a part of it, was decoded from a document."""


def _refuse_documents(value: Any) -> Any:
    if type(value).__name__ == "Document":
        raise _HoldsOrigin
    return encode_custom(value)


_encoder = msgspec.json.Encoder(enc_hook=_refuse_documents)


def encode(struct: Struct) -> bytes:
    """Encode for writing: an intent as declared, a read object as its bytes plus the difference."""
    try:
        return _encoder.encode(struct)
    except _HoldsOrigin:
        pass
    except RecursionError:
        raise _too_deep(struct) from None
    try:
        return msgspec.json.encode(_resolve(to_tree(struct), _ABSENT, _ABSENT, StructShape(type(struct)), ""))
    except RecursionError:
        raise _too_deep(struct) from None


def _too_deep(struct: Struct) -> ApiError:
    return ApiError(f"cannot write {type(struct).__name__}: it is nested too deeply")


def to_json(struct: Struct) -> Tree:
    """Like `encode`, but returns a JSON tree that the caller owns."""
    return msgspec.json.decode(encode(struct))


def as_read(struct: Struct) -> Tree | None:
    """The JSON tree a struct was read from, without later changes; None if it was not read."""
    origin = origin_of(struct)
    return msgspec.json.decode(msgspec.json.encode(origin.document.place(origin.ordinal)[0])) if origin else None


def _mark_documents(value: Any) -> Any:
    return id(value) if isinstance(value, Document) else encode_custom(value)


#: Also encodes origins: equal bytes mean equal values read from the same places.
_marking_encoder = msgspec.json.Encoder(enc_hook=_mark_documents)
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MARK = ORIGIN_KEY.encode()


def fingerprint(value: Any) -> bytes | None:
    """Bytes that stay the same while a value, or a part of it, does not change; None if it cannot be encoded."""
    try:
        return _marking_encoder.encode(value)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        return None


def differing_fields(before: Struct, after: Struct) -> tuple[Tree, Tree] | None:
    """The fields in which two states of an object differ, as each would be written; treat the result as read-only.

    Passing the same object twice compares its bytes as read with its current state. Equal fields are skipped, which is
    far cheaper than building two whole trees. Returns None if only whole trees can tell.
    """
    origin, other = origin_of(after), origin_of(before)
    if origin is None or other is None or (origin.document, origin.ordinal) != (other.document, other.ordinal):
        return None
    read = origin.document.decoded_again()
    root = origin_of(read) if read is not None and type(read) is type(before) is type(after) else None
    if read is None or root is None or root.ordinal != origin.ordinal:
        return None
    written = (after,) if before is after else (before, after)
    try:
        fields = [_fields_decoder.decode(_marking_encoder.encode(state)) for state in (*written, read)]
        raw: Tree = msgspec.json.decode(origin.document.raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    now, was = fields[len(written) - 1], fields[-1] if before is after else fields[0]
    names = {name: wire for name, wire in wire_names(type(after)).items() if was.get(wire) != now.get(wire)}
    parts = [bytes(field[wire]) for field in fields[:-1] for wire in names.values() if wire in field]
    moved = any(_MARK in part for part in parts)
    if moved:
        # A decoded part is among the changes: it is matched by its place in the document.
        raw, seen, _ = origin.document.place(origin.ordinal)
    else:
        seen = _trees(read, names, fields[-1])
        strip_origins(seen)
    raw = {wire: raw[wire] for wire in names.values() if wire in raw}
    seen = {wire: seen[wire] for wire in names.values() if wire in seen}
    states = [_trees(state, names, there) for state, there in zip(written, fields, strict=False)]
    if raw or seen or moved:
        states = [_resolve_object(state, raw, seen, field_shapes(type(after)), "") for state in states]
    return (raw if before is after else states[0]), states[-1]


def _trees(struct: Struct, names: dict[str, str], there: dict[str, msgspec.Raw]) -> Tree:
    """The given fields as trees, by wire name, without those that would not be written."""
    return {wire: to_tree(getattr(struct, name)) for name, wire in names.items() if wire in there}


def _resolve(now: Any, raw: Any, seen: Any, shape: Shape, path: str) -> Any:
    """Merge one value: ``raw`` as read, ``seen`` as our types decoded it, ``now`` as the program left it."""
    match narrowed(shape, now):
        case StructShape(cls) if isinstance(now, dict):
            origin = cast("Tree", now).pop(ORIGIN_KEY, None)
            if isinstance(origin, Origin):
                raw, seen, _ = origin.document.place(origin.ordinal)
            return _resolve_object(cast("Tree", now), raw, seen, field_shapes(cls), path)
        case MapShape(item) if isinstance(now, dict):
            shapes: dict[str, Shape] = dict.fromkeys(cast("Tree", now), item)
            return _resolve_object(cast("Tree", now), raw, seen, shapes, path)
        case ListShape(item, keys) if isinstance(now, list):
            return _Items(cast("list[Any]", now), raw, seen, item, keys, path).resolve()
        case _:
            return _as_read(_settled(now, path), raw, seen)


def _settled(now: Any, path: str) -> Any:
    """Resolve structs inside free-form JSON; those that were read are merged as everywhere else."""
    if type(now) is str:
        return now
    if isinstance(now, dict):
        now = cast("Tree", now)
        if isinstance(origin := now.get(ORIGIN_KEY), Origin):
            return _resolve(now, _ABSENT, _ABSENT, StructShape(origin.document.place(origin.ordinal).cls), path)
        return {
            name: _settled(value, f"{path}.{name}") if isinstance(value, (dict, list)) else value
            for name, value in now.items()
        }
    if isinstance(now, list):
        return [_settled(value, f"{path}[{index}]") for index, value in enumerate(cast("list[Any]", now))]
    return now


def _as_read(now: Any, raw: Any, seen: Any) -> Any:
    """Write unchanged values as they were read: ``1`` stays ``1`` where our type made it the quantity "1"."""
    if raw is _ABSENT:
        return now
    if same_json(now, seen):
        return raw
    if isinstance(now, dict) and isinstance(raw, dict) and isinstance(seen, dict):
        return _entries_as_read(cast("Tree", now), cast("Tree", raw), cast("Tree", seen))
    if isinstance(now, list) and isinstance(raw, list) and isinstance(seen, list):
        return _items_as_read(cast("list[Any]", now), cast("list[Any]", raw), cast("list[Any]", seen))
    return cast("Any", now)


def _entries_as_read(now: Tree, raw: Tree, seen: Tree) -> Tree:
    return {name: _as_read(value, raw.get(name, _ABSENT), seen.get(name, _ABSENT)) for name, value in now.items()}


def _items_as_read(now: list[Any], raw: list[Any], seen: list[Any]) -> list[Any]:
    """Each item as it was read at its index, else as an equal item was read elsewhere in the list."""
    known = {msgspec.json.encode(item): there for item, there in zip(seen, raw, strict=False)}
    return [
        raw[index]
        if index < len(seen) and same_json(value, seen[index])
        else known.get(msgspec.json.encode(value), value)
        for index, value in enumerate(now)
    ]


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; in Python ``True == 1``, in JSON not."""
    if type(one) is str:
        return one == other
    if isinstance(one, dict) and isinstance(other, dict):
        one, other = cast("Tree", one), cast("Tree", other)
        if one.keys() != other.keys():
            return False
        for name, value in one.items():
            there = other[name]
            if value is not there and not (value == there if type(value) is str else same_json(value, there)):
                return False
        return True
    if isinstance(one, list) and isinstance(other, list):
        one, other = cast("list[Any]", one), cast("list[Any]", other)
        return len(one) == len(other) and all(map(same_json, one, other))
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _resolve_object(now: Tree, raw: Any, seen: Any, shapes: dict[str, Shape], path: str) -> Tree:
    if not isinstance(raw, dict) or not isinstance(seen, dict):
        raw, seen = {}, {}
    raw, seen = cast("Tree", raw), cast("Tree", seen)
    merged: Tree = {name: value for name, value in raw.items() if name not in seen or name in now}
    for name, value in now.items():
        before = seen.get(name, _ABSENT)
        # A null has nothing to merge with; it stays unless the program set a value.
        there = _ABSENT if raw.get(name) is None else raw[name]
        resolved = _resolve(value, there, before, shapes.get(name), f"{path}.{name}")
        if there is not _ABSENT or not same_json(resolved, before):
            merged[name] = resolved
    return merged


class _Items:
    """Merges a list whose items contain structs."""

    def __init__(self, now: list[Any], raw: Any, seen: Any, item: Shape, keys: tuple[str, ...], path: str) -> None:
        self.now, self.item, self.keys, self.path = now, item, keys, path
        known = isinstance(raw, list) and isinstance(seen, list)
        self.raw: list[Any] = cast("list[Any]", raw) if known else []
        self.seen: list[Any] = cast("list[Any]", seen) if known else []

    def resolve(self) -> list[Any]:
        claimed = {id(place) for place in map(self._place_of, self.now) if place is not None}
        free = [index for index, place in enumerate(self.raw) if id(place) not in claimed]
        matches = self._matches(free)
        self._check_ambiguity(matches, free)
        return [
            _resolve(
                value,
                _ABSENT if match is None else self.raw[match],
                _ABSENT if match is None else self.seen[match],
                self.item,
                f"{self.path}[{index}]",
            )
            for index, (value, match) in enumerate(zip(self.now, matches, strict=True))
        ]

    def _place_of(self, value: Any) -> Tree | None:
        origin = cast("Tree", value).get(ORIGIN_KEY) if isinstance(value, dict) else None
        return origin.document.place(origin.ordinal).raw if isinstance(origin, Origin) else None

    def _matches(self, free: list[int]) -> list[int | None]:
        """For each current item, the index of the item it replaces; items with an origin need none."""
        left = list(free)
        matches: list[int | None] = []
        for index, value in enumerate(self.now):
            match: int | None = None
            if self._place_of(value) is None:
                match = self._match_by_key(index, value, left) if self.keys else index if index in left else None
            if match is not None:
                left.remove(match)
            matches.append(match)
        return matches

    def _match_by_key(self, index: int, value: Any, left: list[int]) -> int | None:
        """Find the item with the same key, ignoring key parts that ``value`` leaves to the server's defaults."""
        if not isinstance(value, dict):
            return None
        key = {name: part for name in self.keys if (part := cast("Tree", value).get(name)) is not None}
        found = [other for other in left if key and self._has_key(self.seen[other], key)]
        if len(found) > 1 and any(map(self._holds_unknown, found)):
            raise AmbiguousItem(
                f"{self.path.lstrip('.')}: item {index} matches both item {found[0]} and item {found[1]}, which contain"
                f" fields that the type does not declare: {' and '.join(self.keys)} do not distinguish them; change the"
                " items that were read in place"
            )
        return found[0] if found else None

    @staticmethod
    def _has_key(item: Any, key: Tree) -> bool:
        return isinstance(item, dict) and all(cast("Tree", item).get(name) == part for name, part in key.items())

    def _check_ambiguity(self, matches: list[int | None], free: list[int]) -> None:
        """Raise if a new item may replace a removed one that had undeclared fields: do not guess."""
        if self.keys:
            return
        made_anew = [
            index for index, value in enumerate(self.now) if matches[index] is None and self._place_of(value) is None
        ]
        gone = [index for index in free if index not in matches and self._holds_unknown(index)]
        if made_anew and gone:
            raise AmbiguousItem(
                f"{self.path.lstrip('.')}: item {made_anew[0]} is new, and item {gone[0]}, which contains fields that"
                " the type does not declare, is gone; change the items that were read in place, or use a patch"
            )

    def _holds_unknown(self, index: int) -> bool:
        return _unknown_fields(self.raw[index], self.seen[index])


def _unknown_fields(raw: Any, seen: Any) -> bool:
    if isinstance(raw, dict) and isinstance(seen, dict):
        raw, seen = cast("Tree", raw), cast("Tree", seen)
        return any(name not in seen or _unknown_fields(value, seen[name]) for name, value in raw.items())
    if isinstance(raw, list) and isinstance(seen, list):
        pairs = zip(cast("list[Any]", raw), cast("list[Any]", seen), strict=False)
        return any(_unknown_fields(one, other) for one, other in pairs)
    return False
