"""Messages of protobuf by chance: an envelope that is right or nearly, and fields that may mean something."""

from __future__ import annotations

from random import Random  # noqa: TID251 - seeded by the test, which says with what

from hostile import strange
from hostile.catalog import Served

MAGIC = b"k8s\x00"


def varint(number: int) -> bytes:
    """A number as protobuf writes it."""
    number &= 2**64 - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def part(number: int, content: bytes) -> bytes:
    """A field with a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def message(rng: Random, depth: int = 0) -> bytes:
    """Some fields, some of them messages."""
    out = b""
    for _ in range(rng.randrange(5)):
        number = rng.choice([1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 11, 16, 20, 40, 2**29 - 1, 0])
        kind = rng.randrange(10)
        if kind < 4 and depth < 7:
            out += part(number, message(rng, depth + 1))
        elif kind < 7:
            out += part(number, rng.choice(strange.TEXTS).encode())
        elif kind == 7:
            out += varint(number << 3) + varint(rng.choice([0, 1, 5, 2**31, 2**63, 2**64 - 1]))
        elif kind == 8:
            out += varint(number << 3 | rng.choice([1, 3, 4, 5, 6, 7])) + rng.randbytes(rng.choice([4, 8]))
        else:
            out += rng.choice(
                [b"\xff" * 11, b"\x80" * 10, varint(number << 3 | 2) + varint(2**40), part(number, b"\xff")]
            )
    return out


def body(rng: Random, served: Served, name: str) -> bytes:
    """An object of a kind, as far as its metadata says it."""
    metadata = part(1, part(1, name.encode("utf-8", "replace")))
    content = metadata + b"".join(part(rng.choice([2, 2, 3, 4]), message(rng)) for _ in range(rng.randrange(3)))
    if rng.random() < 0.05:
        content = metadata
        for _ in range(rng.choice([90, 300, 3000])):
            content = part(2, content)
    type_meta = part(1, served.api_version.encode()) + part(2, served.kind.encode())
    envelope = MAGIC + part(1, type_meta) + part(2, content) + part(3, b"") + part(4, b"")
    if rng.random() < 0.3:
        at = rng.randrange(len(envelope))
        envelope = rng.choice([envelope[:at], envelope[:at] + rng.randbytes(2) + envelope[at + 1 :], envelope[4:]])
    return envelope
