"""Writes Protobuf's wire format; `steersman.golang.protobuf` reads it."""

from __future__ import annotations

from typing import Final

VARINT, FIXED64, BYTES = 0, 1, 2
_WORD: Final = 2**64
#: Encoded small numbers: almost all lengths are small.
_SMALL: Final = [bytes((each,)) if each < 0x80 else bytes((each & 0x7F | 0x80, each >> 7)) for each in range(0x800)]


def varint(value: int) -> bytes:
    """An encoded number; negative numbers take ten bytes."""
    if 0 <= value < len(_SMALL):
        return _SMALL[value]
    value %= _WORD
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def delimited(tag: bytes, value: bytes) -> bytes:
    """A length-delimited field: its tag, the length and the value."""
    return b"%b%b%b" % (tag, varint(len(value)), value)
