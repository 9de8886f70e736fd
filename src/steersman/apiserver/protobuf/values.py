"""Protobuf values that are scalars in JSON: strings, numbers, bytes, times, quantities.

Guarantees
- A value has kube-apiserver's printed form; None is a value that it does not print.
- An invalid value raises `Malformed`, with Go's message.
- NaN and infinite numbers are rejected: JSON cannot hold them. As in kube-apiserver, the answer is a 500.

Each function takes the bytes and the bounds of the value; for a number, the number itself in place of its start.
"""

from __future__ import annotations

import base64
import re
import struct
from datetime import UTC, datetime, timedelta
from math import isfinite, isnan
from typing import Any, NamedTuple

from steersman.apiserver.errors import unnamed
from steersman.apiserver.go_types import scalars
from steersman.apiserver.json_trees import decode_tree
from steersman.errors import UNREADABLE
from steersman.golang.protobuf import BYTES, VARINT, Malformed, int32, int64, walk
from steersman.objects import format_time
from steersman.patches import TooDeep, check_depth

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Go's zero time, in Unix seconds.
_NO_TIME = -62135596800
_ESCAPED_BYTES = re.compile("[\ud800-\udfff]")


class Plain(NamedTuple):
    """A field of a message that is decoded by hand."""

    go: str
    wire: int = BYTES
    repeated: bool = False


_TIMESTAMP = {1: Plain("Seconds", VARINT), 2: Plain("Nanos", VARINT)}
_QUANTITY = {1: Plain("String_")}
_INT_OR_STRING = {1: Plain("Type", VARINT), 2: Plain("IntVal", VARINT), 3: Plain("StrVal")}
_RAW = {1: Plain("Raw")}
_ITEMS = {1: Plain("Items")}


def text(data: bytes, start: int, stop: int, *_: Any) -> str:
    """A string. As in Go's JSON, every invalid UTF-8 byte is a replacement character."""
    try:
        return data[start:stop].decode()
    except UnicodeDecodeError:
        return _ESCAPED_BYTES.sub("\ufffd", data[start:stop].decode("utf-8", "surrogateescape"))


def binary(data: bytes, start: int, stop: int, *_: Any) -> str:
    """Bytes, as base64."""
    return base64.b64encode(data[start:stop]).decode()


def whole(_: bytes, value: int, *__: Any) -> int:
    """A 64-bit integer."""
    return int64(value)


def half(_: bytes, value: int, *__: Any) -> int:
    """A 32-bit integer."""
    return int32(value)


def flag(_: bytes, value: int, *__: Any) -> bool:
    """A boolean."""
    return value != 0


def double(data: bytes, start: int, stop: int, *_: Any) -> float | int:
    """A floating-point number."""
    value: float = struct.unpack("<d", data[start:stop])[0]
    if not isfinite(value):
        # JSON has no words for it: it would be stored as null, and the limit of a schema would be lost.
        shown = "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"
        raise unnamed(f"json: unsupported value: {shown}")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def moment(data: bytes, start: int, stop: int, *_: Any, micro: bool) -> str | None:
    """A time, in seconds or microseconds; None for Go's zero time."""
    if start == stop:
        return None
    seconds = nanos = 0
    for field, value, __ in walk(data, start, stop, "Timestamp", _TIMESTAMP):
        if field.go == "Seconds":
            seconds = int64(value)
        else:
            nanos = int32(value)
    micros = int(nanos / 1000) if micro else 0
    if seconds == _NO_TIME and not micros:
        return None
    try:
        when = _EPOCH + timedelta(seconds=seconds, microseconds=micros)
    except OverflowError:
        raise Malformed(f"proto: Timestamp: {seconds} seconds are in no year of four digits") from None
    printed = format_time(when)
    return f"{printed[:-1]}.{when.microsecond:06}Z" if micro else printed


def quantity(data: bytes, start: int, stop: int, *_: Any) -> str:
    """A quantity."""
    printed = "0"
    for _, first, last in walk(data, start, stop, "Quantity", _QUANTITY):
        said = text(data, first, last)
        try:
            # Only JSON allows spaces around a quantity.
            printed = scalars.quantity(said if said == said.strip() else "")
        except ValueError as error:
            raise Malformed(str(error)) from None
    return printed


def int_or_string(data: bytes, start: int, stop: int, *_: Any) -> int | str:
    """An integer or a string."""
    kind, number, said = 0, 0, ""
    for field, first, last in walk(data, start, stop, "IntOrString", _INT_OR_STRING):
        if field.go == "Type":
            kind = int64(first)
        elif field.go == "IntVal":
            number = int32(first)
        else:
            said = text(data, first, last)
    return said if kind else number


def document(data: bytes, start: int, stop: int, *_: Any, message: str) -> Any:
    """JSON that a message holds as bytes; None if it is empty."""
    raw = b""
    for _, first, last in walk(data, start, stop, message, _RAW):
        raw = data[first:last]
    if not raw:
        return None
    try:
        tree = decode_tree(raw)
        check_depth(tree)
    except (*UNREADABLE, TooDeep) as error:
        raise Malformed(f"proto: {message}: {error}") from None
    return tree


def strings(data: bytes, start: int, stop: int, *_: Any) -> list[str]:
    """The strings of a message that is a list of them."""
    return [text(data, first, last) for _, first, last in walk(data, start, stop, "ExtraValue", _ITEMS)]
