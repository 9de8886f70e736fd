"""JSON texts as Go's decoder reads them.

Replacing by an expression takes two hundred bytes of memory for each match: texts of megabytes are replaced otherwise.
"""

from __future__ import annotations

import codecs
import re

#: How many bytes are decoded and replaced at a time.
_PIECE = 64 * 1024
_ESCAPED_BYTES = re.compile("[\ud800-\udfff]")
#: An escaped backslash, a surrogate pair, or (in a group) half of one.
_ESCAPES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def readable_json(raw: bytes) -> bytes:
    """A JSON text with a replacement character for each invalid byte and each half of a surrogate pair."""
    decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
    pieces = [
        _ESCAPED_BYTES.sub("\ufffd", decode(raw[at : at + _PIECE], at + _PIECE >= len(raw))).encode()
        for at in range(0, len(raw), _PIECE)
    ]
    return _with_pairs(b"".join(pieces))


def _with_pairs(text: bytes) -> bytes:
    done, out = 0, bytearray()
    for found in _ESCAPES.finditer(text):
        if found[1]:
            out += text[done : found.start()]
            out += rb"\ufffd"
            done = found.end()
    return bytes(out + text[done:]) if done else text
