"""Base64 as Go's ``encoding/base64`` decodes it."""

import re

_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_PAD = ord("=")
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/\r\n]")


class _Illegal(Exception):
    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def base64_problem(text: str) -> str:
    """Go's message about a text that is not base64; empty if it is. Line ends within the text are ignored."""
    data = text.encode()
    at = _last_quantum(data)
    try:
        while at < len(data):
            at = _quantum(data, at)
    except _Illegal as illegal:
        return f"illegal base64 data at input byte {illegal.at}"
    return ""


def _last_quantum(data: bytes) -> int:
    """The offset of the last four characters that can be checked before an error is found."""
    odd = _NOT_BASE64.search(data)
    at = odd.start() if odd is not None else len(data)
    breaks = data.count(b"\n", 0, at) + data.count(b"\r", 0, at)
    begun = (at - breaks) % 4
    while begun:
        at -= 1
        begun -= data[at] in _ALPHABET
    return at


def _quantum(data: bytes, at: int) -> int:
    """Decode four characters. Returns the offset of the next ones."""
    count = 0
    while count < 4:
        if at == len(data):
            if count == 0:
                return at
            raise _Illegal(at - count)
        character = data[at]
        at += 1
        if character in _ALPHABET:
            count += 1
        elif character in b"\r\n":
            continue
        elif character != _PAD or count < 2:
            raise _Illegal(at - 1)
        else:
            return _padding(data, at, count)
    return at


def _padding(data: bytes, at: int, count: int) -> int:
    def skipped(place: int) -> int:
        while place < len(data) and data[place] in b"\r\n":
            place += 1
        return place

    if count == 2:
        at = skipped(at)
        if at == len(data):
            raise _Illegal(at)
        if data[at] != _PAD:
            raise _Illegal(at - 1)
        at += 1
    at = skipped(at)
    if at < len(data):
        raise _Illegal(at)
    return at
