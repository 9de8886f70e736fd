"""The table of protobuf fields: ``fields.json``, made by ``tools/shapes``, which describes its format."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec


@cache
def _table() -> dict[str, dict[str, str]]:
    raw = Path(__file__).with_name("fields.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, dict[str, str]])


class Row(NamedTuple):
    """A field of a message."""

    number: int
    #: Its name in JSON. For an inline message: ``+`` and the name of the message.
    name: str
    #: Its name in Go.
    go: str
    #: Whether it is written only if it is set. Other fields are always written, except lists and maps.
    optional: bool


def rows(package: str, message: str) -> Iterator[Row]:
    """The fields of a message, by number."""
    number = 0
    for word in _table()[package][message].split():
        position, equals, rest = word.partition("=")
        number = int(position) if equals else number + 1
        name, _, go = (rest if equals else word).partition(":")
        optional = name.endswith("?")
        name = name.removesuffix("?")
        usual = "ObjectMeta" if name == "metadata" else name[:1].upper() + name[1:]
        yield Row(number, name, go or usual.removeprefix("+"), optional)
