"""The messages of Go's scanner about invalid JSON: the first byte that is not allowed.

For a mistake beyond the first megabyte, the message is less exact: this bounds the cost.
"""

from __future__ import annotations

import json

_SPACE = b" \t\r\n"
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_LITERALS = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_SHOWN = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 39: "\\'", 92: "\\\\"}
_END = "unexpected end of JSON input"
_QUOTE, _BACKSLASH, _DOT, _MINUS, _ZERO = b'"\\.-0'
#: How many bytes are scanned one by one.
SCANNED_MAX = 1024 * 1024
#: The maximum nesting of JSON in Go.
DEPTH_MAX = 10_000


class _Wrong(Exception):
    pass


def json_syntax_problem(data: bytes, *, depth: int = DEPTH_MAX) -> str | None:
    """The problem with a text; None if it is JSON within the allowed nesting."""
    part = data[:SCANNED_MAX]
    try:
        # At the end, Go's scanner reads a space: an unfinished literal is an invalid character.
        _Scanner(part + b" " if len(part) == len(data) else part, depth).scan()
    except _Wrong as wrong:
        if len(part) == len(data) or str(wrong) != _END:
            return str(wrong)
    return _problem_far_away(data) if len(part) < len(data) else None


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _problem_far_away(data: bytes) -> str | None:
    text = data.decode("latin-1")
    try:
        json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        if error.pos >= len(text):
            return _END
        return f"invalid character {text[error.pos]!r} looking for beginning of value"
    except (RecursionError, ValueError):
        return _END
    return None


class _Scanner:
    def __init__(self, data: bytes, depth: int) -> None:
        self._data = data
        self._at = 0
        self._depth = depth
        #: The open brackets.
        self._open: list[int] = []

    def scan(self) -> None:
        self._value(self._next())
        while self._open:
            self._after_value()
        character = self._peek()
        if character is not None:
            raise self._invalid(character, "after top-level value")

    def _peek(self) -> int | None:
        data = self._data
        while self._at < len(data) and data[self._at] in _SPACE:
            self._at += 1
        return data[self._at] if self._at < len(data) else None

    def _next(self) -> int:
        character = self._peek()
        if character is None:
            raise _Wrong(_END)
        self._at += 1
        return character

    def _raw(self) -> int:
        if self._at >= len(self._data):
            raise _Wrong(_END)
        self._at += 1
        return self._data[self._at - 1]

    def _after_value(self) -> None:
        character = self._next()
        if self._open[-1] == ord("{"):
            if character == ord("}"):
                self._open.pop()
            elif character == ord(","):
                self._key(self._next())
            else:
                raise self._invalid(character, "after object key:value pair")
        elif character == ord("]"):
            self._open.pop()
        elif character == ord(","):
            self._value(self._next())
        else:
            raise self._invalid(character, "after array element")

    def _value(self, character: int) -> None:
        """Scan a scalar, or the beginning of a list or an object up to its first value."""
        while True:
            if character in b"{[":
                self._open.append(character)
                if len(self._open) > self._depth:
                    raise self._invalid(character, "exceeded max depth")
                following = self._next()
                if following == character + 2:  # its closing bracket
                    self._open.pop()
                    return
                if character == ord("["):
                    character = following
                    continue
                self._key_text(following)
                character = self._next()
                continue
            self._scalar(character)
            return

    def _key(self, character: int) -> None:
        self._key_text(character)
        self._value(self._next())

    def _key_text(self, character: int) -> None:
        if character != _QUOTE:
            raise self._invalid(character, "looking for beginning of object key string")
        self._string()
        colon = self._next()
        if colon != ord(":"):
            raise self._invalid(colon, "after object key")

    def _scalar(self, character: int) -> None:
        if character == _QUOTE:
            self._string()
        elif character in _LITERALS:
            word = _LITERALS[character]
            for expected in word[1:]:
                found = self._raw()
                if found != expected:
                    raise self._invalid(found, f"in literal {word.decode()} (expecting '{chr(expected)}')")
        elif character == _MINUS or character in _DIGITS:
            self._number(character)
        else:
            raise self._invalid(character, "looking for beginning of value")

    def _string(self) -> None:
        while (character := self._raw()) != _QUOTE:
            if character == _BACKSLASH:
                escaped = self._raw()
                if escaped == ord("u"):
                    for _ in range(4):
                        digit = self._raw()
                        if digit not in _HEX:
                            raise self._invalid(digit, "in \\u hexadecimal character escape")
                elif escaped not in b'bfnrt\\/"':
                    raise self._invalid(escaped, "in string escape code")
            elif character < ord(" "):
                raise self._invalid(character, "in string literal")

    def _number(self, character: int) -> None:
        if character == _MINUS:
            character = self._raw()
            if character not in _DIGITS:
                raise self._invalid(character, "in numeric literal")
        if character != _ZERO:
            self._digits()
        if self._follows(b"."):
            self._at += 1
            digit = self._raw()
            if digit not in _DIGITS:
                raise self._invalid(digit, "after decimal point in numeric literal")
            self._digits()
        if self._follows(b"eE"):
            self._at += 1
            digit = self._raw()
            if digit in b"+-":
                digit = self._raw()
            if digit not in _DIGITS:
                raise self._invalid(digit, "in exponent of numeric literal")
            self._digits()

    def _follows(self, characters: bytes) -> bool:
        return self._at < len(self._data) and self._data[self._at] in characters

    def _digits(self) -> None:
        while self._follows(_DIGITS):
            self._at += 1

    def _invalid(self, character: int, where: str) -> _Wrong:
        shown = _SHOWN.get(character) or chr(character)
        if not shown.isprintable():
            shown = f"\\x{character:02x}" if character <= 0x7F else f"\\u{character:04x}"
        return _Wrong(f"invalid character '{shown}' {where}")
