"""The messages of Go's scanner about invalid JSON: the first byte that is not allowed.

Guarantees
- Scanning holds the interpreter for a few milliseconds at a time, whatever the text.
- After `STEPS_MAX` steps the message is less exact, which bounds the cost. A run of flat values is one step.
"""

from __future__ import annotations

import itertools
import re

import msgspec

from steersman.golang.json_text import readable_json

_SPACE = b" \t\r\n"
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_LITERALS = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_SHOWN = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 39: "\\'", 92: "\\\\"}
_END = "unexpected end of JSON input"
_QUOTE, _BACKSLASH, _DOT, _MINUS, _ZERO = b'"\\.-0'
#: How many values are scanned one by one.
STEPS_MAX = 500_000
#: The maximum nesting of JSON in Go.
DEPTH_MAX = 10_000


_numbers = itertools.count()


def _atomic(pattern: bytes) -> bytes:
    """A pattern that gives nothing back, and keeps no memory of its repetitions once it has matched.

    A possessive group would say so more shortly, but before Python 3.11.5 it keeps what its last, failed repetition consumed.
    """
    name = b"_%d" % next(_numbers)
    return rb"(?=(?P<%s>%s))(?P=%s)" % (name, pattern, name)


_CHARACTERS = rb'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})'
_BLANK = rb"[ \t\r\n]*+"
_COMMA = _BLANK + rb"," + _BLANK


def _text() -> bytes:
    return rb'"' + _atomic(_CHARACTERS + rb"{0,1000}") + rb'"'


def _scalar() -> bytes:
    return rb"(?:" + _text() + rb"|true|false|null|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)"


def _member() -> bytes:
    return _text() + _BLANK + rb":" + _BLANK + _scalar()


def _flat() -> bytes:
    """A value that holds no more than scalars."""
    items = _scalar() + rb"(?:" + _COMMA + _scalar() + rb"){0,1000}"
    members = _member() + rb"(?:" + _COMMA + _member() + rb"){0,1000}"
    blank = _BLANK
    return rb"(?:%s|\[%s(?:%s%s)?\]|\{%s(?:%s%s)?\})" % (_scalar(), blank, items, blank, blank, members, blank)


#: Many characters of a text in a row, up to its end or a mistake.
_RUN = re.compile(_CHARACTERS + rb"{1,1000}")
#: Many items or members in a row that hold no more than scalars, each with its comma.
_ITEMS = re.compile(rb"(?:" + _atomic(_BLANK + _flat() + _BLANK + rb",") + rb"){1,1000}")
_MEMBERS = re.compile(
    rb"(?:" + _atomic(_BLANK + _text() + _BLANK + rb":" + _BLANK + _flat() + _BLANK + rb",") + rb"){1,1000}"
)
_POSITION = re.compile(r"\(byte (\d+)\)$")
_is_json = msgspec.json.Decoder(msgspec.Raw).decode


class _Wrong(Exception):
    pass


def json_syntax_problem(data: bytes, *, depth: int = DEPTH_MAX) -> str | None:
    """The problem with a text; None if it is JSON within the allowed nesting."""
    # At the end, Go's scanner reads a space: an unfinished literal is an invalid character.
    try:
        is_complete = _Scanner(data + b" ", depth).scan()
    except _Wrong as wrong:
        return str(wrong)
    return None if is_complete else _problem_far_away(data)


def _problem_far_away(data: bytes) -> str | None:
    text = readable_json(data)
    try:
        _is_json(text)
    except msgspec.DecodeError as error:
        found = _POSITION.search(str(error))
        at = int(found[1]) if found else len(text)
        return f"invalid character {chr(text[at])!r} looking for beginning of value" if at < len(text) else _END
    except RecursionError:
        return _END
    return None


class _Scanner:
    def __init__(self, data: bytes, depth: int) -> None:
        self._data = data
        self._at = 0
        self._depth = depth
        #: The open brackets.
        self._open: list[int] = []

    def scan(self) -> bool:
        """Whether the text was scanned to its end. Raises `_Wrong`."""
        self._value(self._next())
        for _ in range(STEPS_MAX):
            if not self._open:
                break
            self._after_value()
        if self._open:
            return False
        character = self._peek()
        if character is not None:
            raise self._invalid(character, "after top-level value")
        return True

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
                self._skip(_MEMBERS)
                self._key(self._next())
            else:
                raise self._invalid(character, "after object key:value pair")
        elif character == ord("]"):
            self._open.pop()
        elif character == ord(","):
            self._skip(_ITEMS)
            self._value(self._next())
        else:
            raise self._invalid(character, "after array element")

    def _skip(self, run: re.Pattern[bytes]) -> None:
        # What is in a run is one level deeper.
        if len(self._open) < self._depth and (found := run.match(self._data, self._at)):
            self._at = found.end()

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
        while (character := self._after_run()) != _QUOTE:
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

    def _after_run(self) -> int:
        while run := _RUN.match(self._data, self._at):
            self._at = run.end()
        return self._raw()

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
