"""Base64 as Go's ``encoding/base64`` decodes it: the standard alphabet, strict padding, line ends ignored.

A text is read in quanta of four characters. The last quantum may end with ``=`` or ``==``, and nothing follows it. Go reports
the offset of the byte at which the quantum stopped making sense.
"""

import re

_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_PAD = ord("=")
_LINE_ENDS = b"\r\n"
#: The first byte that is neither in the alphabet nor a line end: padding, or an error.
_OTHER = re.compile(rb"[^A-Za-z0-9+/\r\n]")


class _Illegal(Exception):
    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


def base64_problem(text: str) -> str:
    """Go's message about a text that is not base64; empty if it is. Line ends within the text are ignored."""
    data = text.encode()
    offset = _start_of_doubt(data)
    try:
        while offset < len(data):
            offset = _after_quantum(data, offset)
    except _Illegal as illegal:
        return f"illegal base64 data at input byte {illegal.offset}"
    return ""


def _start_of_doubt(data: bytes) -> int:
    """The offset of the first quantum that may be wrong: the one with the first other byte, or with the end of the text.

    All quanta before it consist of the alphabet, so they need no check: a long text is skipped at the speed of ``re``.
    """
    other = _OTHER.search(data)
    offset = other.start() if other is not None else len(data)
    line_ends = data.count(b"\n", 0, offset) + data.count(b"\r", 0, offset)
    into_quantum = (offset - line_ends) % 4
    while into_quantum:
        offset -= 1
        into_quantum -= data[offset] in _ALPHABET
    return offset


def _after_quantum(data: bytes, offset: int) -> int:
    """Check the quantum at an offset. Returns the offset of the next one. Raises `_Illegal`."""
    characters = 0
    while characters < 4:
        if offset == len(data):
            if characters == 0:
                return offset
            raise _Illegal(offset - characters)
        byte = data[offset]
        offset += 1
        if byte in _ALPHABET:
            characters += 1
        elif byte in _LINE_ENDS:
            continue
        elif byte != _PAD or characters < 2:
            raise _Illegal(offset - 1)
        else:
            return _after_padding(data, offset, characters)
    return offset


def _after_padding(data: bytes, offset: int, characters: int) -> int:
    """Check what follows the first ``=``: another one after two characters, then only line ends. Returns the end."""
    if characters == 2:
        offset = _after_line_ends(data, offset)
        if offset == len(data):
            raise _Illegal(offset)
        if data[offset] != _PAD:
            raise _Illegal(offset - 1)
        offset += 1
    offset = _after_line_ends(data, offset)
    if offset < len(data):
        raise _Illegal(offset)
    return offset


def _after_line_ends(data: bytes, offset: int) -> int:
    while offset < len(data) and data[offset] in _LINE_ENDS:
        offset += 1
    return offset
