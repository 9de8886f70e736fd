"""Shards: parts of a collection, as ranges of a hash, for lists and watches.

All text of Kubernetes' alpha feature `ShardedListAndWatch` (KEP-5866) is in this module, so that a change of the format
is a change of one file. A server without the feature ignores the parameter and answers with everything: a client checks
each object with `ShardSelector.selects`, and does not send the parameter with a DELETE.

Guarantees
- `shard_hash` is the server's hash, and `selects` is the server's choice.
- Every hash is in exactly one part of a `split`, and a `HashRange` is never empty.
- `ShardSelector.parse` is the inverse of `str`. A server also accepts other spellings of the same expression.
- An invalid bound, range, field or mixture of fields is an `InvalidShardSelector` with the server's message.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Literal, Self

import msgspec

from steersman.golang import quoted

#: The feature gate, and the parameter of lists and watches.
SHARD_GATE: Final = "ShardedListAndWatch"
SHARD_PARAMETER: Final = "shardSelector"
#: The number of hashes: the end of the last range.
HASHES: Final = 2**64

ShardField = Literal["uid", "namespace"]

_PATHS: Final[dict[str, ShardField]] = {"object.metadata.uid": "uid", "object.metadata.namespace": "namespace"}
_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = HASHES - 1
_DIGITS: Final = 16
_TERM: Final = re.compile(r"shardRange\((object\.metadata\.\w+), '(0x[0-9a-f]{16,17})', '(0x[0-9a-f]{16,17})'\)")
_WRONG_DIGIT: Final = re.compile("[^0-9a-f]")
#: The number of namespaces whose hashes are cached.
_NAMESPACES_MAX: Final = 50_000


class InvalidShardSelector(ValueError):
    """A shard selector, or a part of it, is invalid."""


def shard_hash(value: str) -> int:
    """The hash of a field's value: FNV-1a with 64 bits. Similar values have similar hashes."""
    found = _OFFSET
    for byte in value.encode():
        found = (found ^ byte) * _PRIME & _MASK
    return found


#: The hash of a namespace, cached.
namespace_hash = lru_cache(_NAMESPACES_MAX)(shard_hash)


class HashRange(msgspec.Struct, frozen=True, order=True):
    """The hashes from `start` up to, but without, `end`."""

    start: int = 0
    end: int = HASHES

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise InvalidShardSelector(
                f"shard range start {_printed(self.start)} must be less than end {_printed(self.end)}"
            )
        if self.start < 0 or self.end > HASHES:
            raise InvalidShardSelector(f"the shard range {self} is not within 0 and 2^64")

    @property
    def width(self) -> int:
        """The number of hashes."""
        return self.end - self.start

    def contains(self, hash_: int) -> bool:
        """Whether a hash is in the range."""
        return self.start <= hash_ < self.end

    def split(self, at: int) -> tuple[Self, Self]:
        """The parts before and from a hash, which must be inside the range and not its start."""
        if not self.start < at < self.end:
            raise InvalidShardSelector(f"{_printed(at)} does not divide the shard range {self}")
        return type(self)(self.start, at), type(self)(at, self.end)

    def without(self, others: "Iterable[HashRange]") -> list[Self]:
        """The parts of the range that are in none of the others."""
        left = [self]
        for each in others:
            left = [
                type(self)(start, end)
                for one in left
                for start, end in ((one.start, min(one.end, each.start)), (max(one.start, each.end), one.end))
                if start < end
            ]
        return left

    def is_adjacent(self, other: "HashRange") -> bool:
        """Whether one of the ranges begins where the other ends."""
        return self.end == other.start or other.end == self.start

    def overlaps(self, other: "HashRange") -> bool:
        """Whether a hash is in both ranges."""
        return self.start < other.end and other.start < self.end

    def __str__(self) -> str:
        return f"{_printed(self.start)}-{_printed(self.end)}"


class ShardSelector(msgspec.Struct, frozen=True):
    """Selects the objects whose field hashes into one of the ranges; there is at least one range."""

    field: ShardField
    ranges: tuple[HashRange, ...]

    def __post_init__(self) -> None:
        if not self.ranges:
            raise InvalidShardSelector("a shard selector needs a range; omit it to select everything")

    def selects(self, *, namespace: str, uid: str) -> bool:
        """Whether the selector selects an object; ``namespace`` is empty for a cluster-scoped one."""
        found = namespace_hash(namespace) if self.field == "namespace" else shard_hash(uid)
        return any(each.contains(found) for each in self.ranges)

    def __str__(self) -> str:
        return " || ".join(
            f"shardRange(object.metadata.{self.field}, '{_printed(each.start)}', '{_printed(each.end)}')"
            for each in self.ranges
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text that ``str`` and a server's ``shardInfo`` have."""
        terms = [_TERM.fullmatch(term) for term in text.split(" || ")]
        found = [read_shard_range(*term.groups()) for term in terms if term is not None]
        if len(found) < len(terms):
            raise InvalidShardSelector(f"{quoted(text)} is not a shard selector as a server prints it")
        return cls.of(found)

    @classmethod
    def of(cls, terms: Iterable[tuple[ShardField, HashRange]]) -> Self:
        """The selector of several ranges, which must be of one field."""
        fields, ranges = zip(*terms, strict=True)
        for other in fields:
            if other != fields[0]:
                raise InvalidShardSelector(
                    f'all shard ranges must use the same field, got "object.metadata.{fields[0]}" and '
                    f'"object.metadata.{other}"'
                )
        return cls(fields[0], ranges)


def read_shard_range(path: str, start: str, end: str) -> tuple[ShardField, HashRange]:
    """The field and the range of the three arguments of ``shardRange``, checked in the server's order."""
    return read_shard_field(path), HashRange(read_shard_bound("hexStart", start), read_shard_bound("hexEnd", end))


def read_shard_field(path: str) -> ShardField:
    """The field of a path such as ``object.metadata.uid``."""
    field = _PATHS.get(path)
    if field is None:
        raise InvalidShardSelector(f"unsupported field path {quoted(path)}; supported: {', '.join(_PATHS)}")
    return field


def read_shard_bound(name: str, text: str) -> int:
    """The number of a bound, such as ``0x00000000000000ff``; ``name`` is what the message calls it."""
    if not text.startswith("0x"):
        raise InvalidShardSelector(f"{name} must have '0x' prefix, got {quoted(text)}")
    digits = text[2:]
    length = len(digits.encode())
    if not digits:
        raise InvalidShardSelector(f"{name}: hex value is required after '0x'")
    if length > _DIGITS + 1:
        raise InvalidShardSelector(f"{name}: hex value too long ({length} chars, max 17): {quoted(digits)}")
    if wrong := _WRONG_DIGIT.search(digits):
        raise InvalidShardSelector(f"{name}: invalid hex character {quoted(wrong[0])} in {quoted(text)}")
    number = int(digits, 16)
    if length > _DIGITS and number != HASHES:
        words = "17-digit hex value must be '0x10000000000000000' (2^64)"
        raise InvalidShardSelector(f"{name}: {words}, got {quoted(text)}")
    if length < _DIGITS:
        words = f'must be a 0x-prefixed 16-digit hex value, got "{text}" (did you mean "{_printed(number)}"?)'
        raise InvalidShardSelector(f"{name} {words}")
    return number


def _printed(bound: int) -> str:
    return f"0x{bound:016x}"
