"""Protobuf's wire format, decoded as by Kubernetes' generated Go code.

Guarantees
- Fields come in the order of the bytes; unknown ones are skipped. Malformed bytes raise only `Malformed`, with Go's
  message.
- The cost is bounded by the number of bytes: every length is compared with them first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol, TypeVar

VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 = range(6)
_WORD = 2**64
_SIGNED_MAX = 2**63
_INT32_SIGN = 2**31
#: The sizes of fixed-length numbers in bytes.
_SIZES = {FIXED64: 8, FIXED32: 4}
#: The bit that marks that another byte of a number follows.
_MORE = 0x80


class Malformed(Exception):
    """The bytes are not a message of their type; the message is Go's."""


class Described(Protocol):
    """What the decoder needs about a field."""

    @property
    def go(self) -> str:
        """Its name in Go."""
        ...

    @property
    def wire(self) -> int:
        """The wire type of its values."""
        ...

    @property
    def repeated(self) -> bool:
        """Whether its numbers may be packed."""
        ...


F = TypeVar("F", bound=Described)


class Budget:
    """The remaining number of fields of a body; exceeding it raises `Malformed`."""

    __slots__ = ("_left", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit

    def take(self) -> None:
        """Count a field."""
        self._left -= 1
        if self._left < 0:
            raise Malformed(f"proto: the message has more than {self._limit} fields")


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """An unsigned number of up to 64 bits, and the offset of the next byte."""
    if at < end and data[at] < _MORE:
        return data[at], at + 1
    value = shift = 0
    while True:
        if shift >= 64:
            raise Malformed("proto: integer overflow")
        if at >= end:
            raise Malformed("unexpected EOF")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < _MORE:
            return value % _WORD, at
        shift += 7


def span(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The bounds of the length-prefixed bytes at an offset."""
    length, at = varint(data, at, end)
    if at + length >= _SIGNED_MAX:
        raise Malformed("proto: negative length found during unmarshaling")
    if at + length > end:
        raise Malformed("unexpected EOF")
    return at, at + length


def int64(value: int) -> int:
    """A signed 64-bit number."""
    return value - _WORD if value >= _SIGNED_MAX else value


def int32(value: int) -> int:
    """The lower half of a number, signed."""
    value &= 2 * _INT32_SIGN - 1
    return value - 2 * _INT32_SIGN if value >= _INT32_SIGN else value


def walk(
    data: bytes, at: int, end: int, message: str, fields: Mapping[int, F], budget: Budget | None = None
) -> Iterator[tuple[F, int, int]]:
    """The known fields of a message: each with the bounds of its bytes, or with its number and -1.

    All fields count against the budget, including unknown ones.
    """
    while at < end:
        if budget is not None:
            budget.take()
        start = at
        tag, at = varint(data, at, end)
        wire = tag & 7
        field = fields.get(_number(tag, message))
        if field is None:
            at = skip(data, start, end, budget)
        elif wire != field.wire:
            if not (wire == BYTES and field.repeated and field.wire == VARINT):
                raise Malformed(f"proto: wrong wireType = {wire} for field {field.go}")
            at, stop = span(data, at, end)
            values, at = _packed(data, at, stop, end, budget)
            for value in values:
                yield field, value, -1
        elif wire == BYTES:
            start, at = span(data, at, end)
            yield field, start, at
        elif wire == VARINT:
            value, at = varint(data, at, end)
            yield field, value, -1
        else:
            start, at = at, at + _SIZES[wire]
            if at > end:
                raise Malformed("unexpected EOF")
            yield field, start, at


def _packed(data: bytes, at: int, stop: int, end: int, budget: Budget | None) -> tuple[list[int], int]:
    """The numbers of a packed field, and the offset of the next byte: as in Go, the last may reach beyond the field."""
    values: list[int] = []
    while at < stop:
        if budget is not None:
            budget.take()
        value, at = varint(data, at, end)
        values.append(value)
    return values, at


def _number(tag: int, message: str) -> int:
    """The number of a field."""
    if tag & 7 == END_GROUP:
        raise Malformed(f"proto: {message}: wiretype end group for non-group")
    number = tag >> 3
    if 0 < number < _INT32_SIGN:
        return number
    number = int32(number)
    if number <= 0:
        raise Malformed(f"proto: {message}: illegal tag {number} (wire type {tag})")
    return number


def skip(data: bytes, at: int, end: int, budget: Budget | None = None) -> int:
    """The offset of the next field."""
    depth = 0
    while at < end:
        if budget is not None:
            budget.take()
        tag, at = varint(data, at, end)
        wire = tag & 7
        if wire == VARINT:
            _, at = varint(data, at, end)
        elif wire == BYTES:
            _, at = span(data, at, end)
        elif wire == GROUP:
            depth += 1
        elif wire == END_GROUP:
            depth -= 1
        elif wire in _SIZES:
            at += _SIZES[wire]
        else:
            raise Malformed(f"proto: illegal wireType {wire}")
        if depth < 0:
            raise Malformed("proto: unexpected end of group")
        if depth == 0 and at <= end:
            return at
    raise Malformed("unexpected EOF")
