"""JSON texts as trees.

Guarantee: decoding a large text holds the interpreter for no longer than building its tree takes.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from steersman.aio import collector_paused

#: The size in bytes of a text whose values are many.
_LARGE: Final = 32 * 1024
_decode = msgspec.json.Decoder().decode


def decode_tree(text: bytes) -> Any:
    """The tree of a JSON text. Raises `msgspec.DecodeError` and `UnicodeDecodeError`."""
    if len(text) < _LARGE:
        return _decode(text)
    with collector_paused():
        return _decode(text)
