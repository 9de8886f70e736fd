"""What Go says of a regular expression that it does not take.

Guarantee: `expression_problem` gives the words of Go's own parser, or nothing where that one takes the expression. Only the
limit on the size of what is compiled is not looked at: it takes expressions of a megabyte to reach it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from steersman.schemas.go_character_classes import UNICODE_CLASSES

_CLASSES: Final = frozenset("dDsSwW")
_SIMPLE_ESCAPES: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_POSIX: Final = frozenset(
    f"[:{sign}{name}:]"
    for sign in ("", "^")
    for name in (
        "alnum",
        "alpha",
        "ascii",
        "blank",
        "cntrl",
        "digit",
        "graph",
        "lower",
        "print",
        "punct",
        "space",
        "upper",
        "word",
        "xdigit",
    )
)
_COUNT: Final = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_OCTAL: Final = frozenset("01234567")
_NAME: Final = re.compile(r"[A-Za-z0-9_]+")
_REPEATS_MAX: Final = 1000
_DEPTH_MAX: Final = 1000
_LAST_CHARACTER: Final = 0x10FFFF

_BAD_ESCAPE: Final = "invalid escape sequence"
_BAD_RANGE: Final = "invalid character class range"
_BAD_COUNT: Final = "invalid repeat count"
_BAD_GROUP: Final = "invalid or unsupported Perl syntax"


class _Refused(Exception):
    """Go does not take the expression."""


@lru_cache(maxsize=1024)
def expression_problem(expression: str) -> str:
    """What is wrong with an expression, as Go tells it; empty if nothing is."""
    try:
        _Parser(expression).run()
    except _Refused as refused:
        return f"error parsing regexp: {refused}"
    return ""


def _refused(why: str, shown: str) -> _Refused:
    return _Refused(f"{why}: `{shown}`")


class _Parser:
    """Reads an expression as Go does, and keeps of it only what can still be refused."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        #: For every open group, how often what stands in it repeats at most, and how deep it is.
        self.groups: list[tuple[int, int]] = [(1, 0)]
        #: How often the last part repeats, and its depth; None where there is none to repeat.
        self.part: tuple[int, int] | None = None
        #: Where the repetition before began, if the last thing was one.
        self.repeated: int | None = None

    def run(self) -> None:
        text = self.text
        while self.at < len(text):
            start, repeats = self.at, False
            match text[start]:
                case "(":
                    self._open()
                case "|":
                    self.at += 1
                    self.part = None
                case ")":
                    self._close()
                case "[":
                    self._class()
                    self._push()
                case "*" | "+" | "?":
                    self.at += 1
                    self._repeat(start, 1, counted=False)
                    repeats = True
                case "{":
                    repeats = self._count(start)
                case "\\":
                    self._escaped()
                case _:
                    self.at += 1
                    self._push()
            self.repeated = start if repeats else None
        if len(self.groups) > 1:
            raise _refused("missing closing )", text)

    def _push(self, times: int = 1, depth: int = 1) -> None:
        self.part = (times, depth)
        most, deepest = self.groups[-1]
        self.groups[-1] = (max(most, times), max(deepest, depth))

    def _open(self) -> None:
        if self.text.startswith("(?", self.at):
            if not self._flags():
                # Flags stand for nothing that could be repeated, and leave what could.
                return
        else:
            self.at += 1
        self.groups.append((1, 0))
        self.part = None
        if len(self.groups) > _DEPTH_MAX:
            raise _refused("expression nests too deeply", self.text)

    def _flags(self) -> bool:
        """Read what follows ``(?``; whether it opens a group."""
        start, text = self.at, self.text
        named = text.startswith("(?P<", start) and len(text) - start > len("(?P<")
        if named or (text.startswith("(?<", start) and len(text) - start > len("(?<")):
            end = text.find(">", start)
            if end < 0:
                raise _refused("invalid named capture", text[start:])
            if not _NAME.fullmatch(text[start + (4 if named else 3) : end]):
                raise _refused("invalid named capture", text[start : end + 1])
            self.at = end + 1
            return True
        self.at += 2
        negated = seen = False
        while self.at < len(text):
            sign = text[self.at]
            self.at += 1
            if sign in "imsU":
                seen = True
            elif sign == "-" and not negated:
                negated, seen = True, False
            elif sign in ":)" and (seen or not negated):
                return sign == ":"
            else:
                break
        raise _refused(_BAD_GROUP, text[start : self.at])

    def _close(self) -> None:
        if len(self.groups) == 1:
            raise _refused("unexpected )", self.text)
        self.at += 1
        times, depth = self.groups.pop()
        self._push(times, depth + 1)

    def _count(self, start: int) -> bool:
        found = _COUNT.match(self.text, start)
        if found is None:
            self.at += 1
            self._push()
            return False
        self.at = found.end()
        # Python refuses to read thousands of digits.
        least = int(found[1][:9])
        most = int(found[3][:9]) if found[3] else -1 if found[2] else least
        if least > _REPEATS_MAX or most > _REPEATS_MAX or 0 <= most < least:
            raise _refused(_BAD_COUNT, found[0])
        times = most if most >= 0 else least
        self._repeat(start, times, counted=least > 1 or most > 1)
        return True

    def _repeat(self, start: int, times: int, *, counted: bool) -> None:
        if self.text.startswith("?", self.at):
            self.at += 1
        if self.repeated is not None:
            raise _refused("invalid nested repetition operator", self.text[self.repeated : self.at])
        if self.part is None:
            raise _refused("missing argument to repetition operator", self.text[start : self.at])
        inner, depth = self.part
        total = max(times, 1) * inner
        if counted and total > _REPEATS_MAX:
            raise _refused(_BAD_COUNT, self.text[start : self.at])
        self._push(0 if times == 0 and counted else total, depth + 1)

    def _escaped(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following == "C":
            raise _refused(_BAD_ESCAPE, "\\C")
        if following == "Q":
            end = self.text.find("\\E", self.at + 2)
            quoted = self.text[self.at + 2 : end if end >= 0 else len(self.text)]
            self.at = end + 2 if end >= 0 else len(self.text)
            if quoted:
                self._push()
            return
        if following and following in "AbBz":
            self.at += 2
        elif following and following in "pP":
            self._unicode_class()
        elif following and following in _CLASSES:
            self.at += 2
        else:
            self._character_escape()
        self._push()

    def _character_escape(self) -> int:
        """Read an escape that stands for one character."""
        start, text = self.at, self.text
        if start + 1 >= len(text):
            raise _refused("trailing backslash at end of expression", "")
        sign = text[start + 1]
        self.at = start + 2
        if sign in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[sign]
        if sign == "x":
            code = self._hexadecimal()
            if code is not None:
                return code
        elif sign in _OCTAL and (sign == "0" or text[self.at : self.at + 1] in _OCTAL):
            while self.at < min(start + 4, len(text)) and text[self.at] in _OCTAL:
                self.at += 1
            return int(text[start + 1 : self.at], 8)
        elif sign.isascii() and not sign.isalnum():
            return ord(sign)
        raise _refused(_BAD_ESCAPE, text[start : self.at])

    def _hexadecimal(self) -> int | None:
        r"""Read the digits behind ``\x``; None if they are none, and all that was looked at is read."""
        text = self.text
        if self.at >= len(text):
            return None
        if text[self.at] != "{":
            digits = text[self.at : self.at + 2]
            self.at += len(digits)
            return int(digits, 16) if len(digits) == 2 and _HEX.issuperset(digits) else None
        self.at += 1
        code, count = 0, 0
        while self.at < len(text):
            sign = text[self.at]
            self.at += 1
            if sign == "}":
                return code if count else None
            if sign not in _HEX:
                return None
            code, count = code * 16 + int(sign, 16), count + 1
            if code > _LAST_CHARACTER:
                return None
        return None

    def _unicode_class(self) -> None:
        start, text = self.at, self.text
        if text[start + 2 : start + 3] != "{":
            end = min(start + 3, len(text))
            name = text[start + 2 : end]
        else:
            close = text.find("}", start)
            if close < 0:
                raise _refused(_BAD_RANGE, text[start:])
            end = close + 1
            name = text[start + 3 : close]
        if _canonical(name.removeprefix("^")) not in UNICODE_CLASSES:
            raise _refused(_BAD_RANGE, text[start:end])
        self.at = end

    def _class(self) -> None:
        start, text = self.at, self.text
        self.at += 1
        if text.startswith("^", self.at):
            self.at += 1
        first = True
        while first or not text.startswith("]", self.at):
            first = False
            if text.startswith("[:", self.at) and len(text) - self.at > 2:
                end = text.find(":]", self.at + 2)
                if end >= 0:
                    name = text[self.at : end + 2]
                    if name not in _POSIX:
                        raise _refused(_BAD_RANGE, name)
                    self.at = end + 2
                    continue
            if text.startswith(("\\p", "\\P"), self.at):
                self._unicode_class()
                continue
            if text.startswith("\\", self.at) and text[self.at + 1 : self.at + 2] in _CLASSES:
                self.at += 2
                continue
            self._range(start)
        self.at += 1

    def _range(self, start: int) -> None:
        text, begin = self.text, self.at
        low = self._member(start)
        if len(text) - self.at >= 2 and text[self.at] == "-" and text[self.at + 1] != "]":
            self.at += 1
            if self._member(start) < low:
                raise _refused(_BAD_RANGE, text[begin : self.at])

    def _member(self, start: int) -> int:
        if self.at >= len(self.text):
            raise _refused("missing closing ]", self.text[start:])
        if self.text[self.at] == "\\":
            return self._character_escape()
        self.at += 1
        return ord(self.text[self.at - 1])


def _canonical(name: str) -> str:
    """A name of a class as Go looks it up: without regard to case, spaces, dashes and underscores."""
    return re.sub(r"[-_ ]", "", name).lower()
